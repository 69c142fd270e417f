//! Grids of regions.

use std::io::Write;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::{Hidden, Random, rounded};
use crate::data::graphs;
use crate::error::{Error, Result};
use crate::sparse::SparseMatrix;
use crate::tasks::factor_graph::{Factors, Graph, Shape, Template};

/// How many grids, of what kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphSizes {
    /// Number of grids, at least 1.
    pub examples: u64,
    /// Rows of cells, from 1 to 4096.
    pub height: u32,
    /// Columns of cells, from 1 to 4096.
    pub width: u32,
    /// Number of labels, from 2 to 4096.
    pub labels: u32,
    /// Number of features of a cell, from 1 to 4096.
    pub features: u32,
    /// Standard deviation of the features, 0 or more; the centres of labels are uniform from -1 to 1.
    pub noise: f64,
}

impl Default for GraphSizes {
    fn default() -> Self {
        Self { examples: 100, height: 20, width: 20, labels: 6, features: 8, noise: 2.0 }
    }
}

impl GraphSizes {
    /// Are all sizes within their ranges?
    pub fn check(&self) -> Result<()> {
        let most = 4096;
        let sizes = [
            ("height", self.height, 1),
            ("width", self.width, 1),
            ("labels", self.labels, 2),
            ("features", self.features, 1),
        ];
        for (name, value, least) in sizes {
            if !(least..=most).contains(&value) {
                return Err(Error::setting(name, format!("must be from {least} to {most}")));
            }
        }
        let values = u64::from(self.height) * u64::from(self.width) * u64::from(self.features);
        if values > 1 << 28 {
            return Err(Error::setting(
                "features",
                format!("{values} of all cells of a grid (the most is {})", 1 << 28),
            ));
        }
        if self.examples == 0 {
            return Err(Error::setting("examples", "must be at least 1"));
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            return Err(Error::setting("noise", format!("{} is not a standard deviation (0 or more)", self.noise)));
        }
        Ok(())
    }
}

/// A region has about the square of so many cells.
const SIDE: u32 = 5;

/// Writes grids as graphs in JSON lines: a cell is a variable, row by row, joined to its neighbours by factors of the templates
/// `right` and `down`. Cells have the label of the nearest of some random points, about 25 cells for each. Half of these labels
/// are any, the others ascend from the top to the bottom: so neighbours tell something about a cell, and those above something
/// else than those below. Features lie around the hidden centre of their label. `name` stands for `out` in errors.
pub fn graph(sizes: &GraphSizes, seed: u64, out: &mut impl Write, name: &str) -> Result<()> {
    sizes.check()?;
    let mut random = Random { source: Xoshiro256PlusPlus::seed_from_u64(seed) };
    let hidden = Hidden { seed };
    let (shape, mut graph) = grid(sizes);
    let (mut labels, mut text) = (Vec::new(), Vec::new());
    for _ in 0..sizes.examples {
        regions(sizes, &mut random, &mut labels);
        graph.features = SparseMatrix::new();
        for &label in &labels {
            for j in 0..sizes.features {
                let value = rounded(hidden.number(label, j) + sizes.noise * random.gaussian());
                if value != 0.0 {
                    graph.features.push(j, value);
                }
            }
            graph.features.end_row();
        }
        graph.features.set_columns(sizes.features);
        text.clear();
        graphs::write(&mut text, &shape, &graph, Some(&labels))
            .and_then(|()| out.write_all(&text))
            .map_err(|e| Error::io(name, e))?;
    }
    out.flush().map_err(|e| Error::io(name, e))
}

/// The grid without features.
fn grid(sizes: &GraphSizes) -> (Shape, Graph) {
    let GraphSizes { height, width, labels, .. } = *sizes;
    let (mut down, mut right) = (Factors::default(), Factors::default());
    for cell in 0..height * width {
        if cell + width < height * width {
            down.scopes.extend([cell, cell + width]);
        }
        if (cell + 1) % width != 0 {
            right.scopes.extend([cell, cell + 1]);
        }
    }
    let template = |name: &str| Template { name: name.to_owned(), domains: vec![labels; 2], features: None };
    let templates = vec![template("down"), template("right")];
    let domains = vec![labels; (height * width) as usize];
    let graph = Graph { domains, features: SparseMatrix::new(), factors: vec![down, right] };
    (Shape { domains: vec![labels], features: sizes.features, templates }, graph)
}

/// Draws the labels of a grid, row by row.
fn regions(sizes: &GraphSizes, random: &mut Random, labels: &mut Vec<u32>) {
    let GraphSizes { height, width, labels: count, .. } = *sizes;
    // A point in each square of SIDE x SIDE cells: the nearest one to a cell is at most two squares away.
    let (down, across) = (height.div_ceil(SIDE), width.div_ceil(SIDE));
    let mut points = Vec::with_capacity((down * across) as usize);
    for square in 0..down * across {
        let row = square / across * SIDE + random.below(SIDE);
        let column = square % across * SIDE + random.below(SIDE);
        let band = (row.min(height - 1) * count / height).min(count - 1);
        let label = if random.happens(0.5) { band } else { random.below(count) };
        points.push((row, column, label));
    }
    labels.clear();
    for row in 0..height {
        for column in 0..width {
            let near = |at: u32, end: u32| (at / SIDE).saturating_sub(2)..(at / SIDE + 3).min(end);
            let squares = near(row, down).flat_map(|r| near(column, across).map(move |c| r * across + c));
            let distance = |square: &u32| {
                let (r, c, _) = points[*square as usize];
                row.abs_diff(r).pow(2) + column.abs_diff(c).pow(2)
            };
            // Of several the first.
            let nearest = squares.min_by_key(distance).expect("its own square is near");
            labels.push(points[nearest as usize].2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::graphs::{Graphs, read};
    use crate::data::input::Input;
    use crate::parallel::Pool;

    fn text(sizes: &GraphSizes, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        graph(sizes, seed, &mut out, "memory").unwrap();
        out
    }

    fn parsed(text: &[u8]) -> (Graphs, Shape) {
        read(Input::new("synthetic", text).unwrap(), &Pool::new(1).unwrap()).unwrap()
    }

    #[test]
    fn the_same_seed_gives_these_bytes_for_ever() {
        let small = GraphSizes { examples: 3, height: 7, width: 9, labels: 4, features: 3, noise: 0.5 };
        let sums = [(small, 1), (small, 2), (GraphSizes { examples: 2, ..GraphSizes::default() }, 1)]
            .map(|(sizes, seed)| crc32fast::hash(&text(&sizes, seed)));
        assert_eq!(sums, [3_031_436_328, 325_041_809, 3_171_899_104]);
    }

    #[test]
    fn sizes_are_kept() {
        let sizes = GraphSizes { examples: 4, height: 6, width: 11, labels: 3, features: 5, noise: 1.0 };
        let (data, shape) = parsed(&text(&sizes, 3));
        assert_eq!((data.len(), shape.domains.as_slice(), shape.features), (4, &[3][..], 5));
        assert_eq!(shape, grid(&sizes).0);
        for (graph, labels) in data.graphs.iter().zip(&data.labels) {
            assert_eq!((labels.len(), graph.features.rows()), (66, 66));
            assert_eq!(graph.factors, grid(&sizes).1.factors);
            assert_eq!(graph.factors[0].scopes.len(), 2 * 5 * 11);
            assert_eq!(graph.factors[1].scopes.len(), 2 * 6 * 10);
        }
        // A single cell, a row, a column.
        for (height, width) in [(1, 1), (1, 8), (8, 1)] {
            let (data, _) = parsed(&text(&GraphSizes { height, width, ..sizes }, 1));
            assert_eq!(data.graphs[0].domains.len() as u32, height * width);
        }
    }

    #[test]
    fn neighbours_are_alike_and_labels_ascend_downwards() {
        let (data, _) = parsed(&text(&GraphSizes { examples: 30, ..GraphSizes::default() }, 5));
        let (mut alike, mut ascends, mut descends, mut all) = (0, 0, 0, 0);
        for (graph, labels) in data.graphs.iter().zip(&data.labels) {
            for pair in graph.factors[0].scopes.chunks(2) {
                let [above, below] = [labels[pair[0] as usize], labels[pair[1] as usize]];
                alike += u32::from(above == below);
                ascends += u32::from(above < below);
                descends += u32::from(above > below);
                all += 1;
            }
        }
        assert!(f64::from(alike) > 0.7 * f64::from(all), "{alike} of {all}");
        assert!(ascends > descends + descends / 4, "{ascends} {descends}");
    }

    #[test]
    fn bad_sizes_are_refused_by_name() {
        let good = GraphSizes::default();
        for (sizes, name) in [
            (GraphSizes { examples: 0, ..good }, "examples"),
            (GraphSizes { height: 0, ..good }, "height"),
            (GraphSizes { width: 5000, ..good }, "width"),
            (GraphSizes { labels: 1, ..good }, "labels"),
            (GraphSizes { features: 0, ..good }, "features"),
            (GraphSizes { height: 4096, width: 4096, features: 17, ..good }, "features"),
            (GraphSizes { noise: f64::NAN, ..good }, "noise"),
        ] {
            let error = graph(&sizes, 0, &mut Vec::new(), "memory").unwrap_err();
            assert!(matches!(error, Error::Setting { name: n, .. } if n == name), "{error}");
        }
    }
}
