//! Examples of classes that are the leaves of a tree.

use std::io::{self, Write};

use super::{Hidden, Sizes, rounded, write_examples};
use crate::error::{Error, Result};

/// How much data, of what kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaxonomySizes {
    /// Number of examples, at least 1.
    pub examples: u64,
    /// Number of features, at least 1.
    pub features: u32,
    /// Features in each example; 0, or `features` and more, gives dense examples.
    pub nonzeros: u32,
    /// From the root to the leaves, at least 1.
    pub depth: u32,
    /// Children of each inner node, at least 2; at most 2^20 leaves.
    pub branching: u32,
    /// Standard deviation of the features, 0 or more; what a node adds to those of the leaves below it is uniform from -1 to 1.
    pub noise: f64,
}

impl Default for TaxonomySizes {
    fn default() -> Self {
        Self { examples: 1000, features: 50, nonzeros: 0, depth: 3, branching: 3, noise: 3.0 }
    }
}

impl TaxonomySizes {
    /// Are all sizes within their ranges?
    pub fn check(&self) -> Result<()> {
        const MOST_LEAVES: u64 = 1 << 20;
        self.of_examples().check()?;
        if self.depth == 0 {
            return Err(Error::setting("depth", "must be at least 1"));
        }
        if self.branching < 2 {
            return Err(Error::setting("branching", "must be at least 2"));
        }
        if u64::from(self.branching).checked_pow(self.depth).is_none_or(|leaves| leaves > MOST_LEAVES) {
            return Err(Error::setting("depth", format!("and branching must give at most {MOST_LEAVES} leaves")));
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            return Err(Error::setting("noise", format!("{} is not a standard deviation (0 or more)", self.noise)));
        }
        Ok(())
    }

    /// What all generators of examples have in common.
    fn of_examples(&self) -> Sizes {
        let Self { examples, features, nonzeros, .. } = *self;
        Sizes { examples, features, nonzeros, ..Sizes::default() }
    }
}

/// Writes examples in SVM-light text whose labels are leaves of a tree, ways down such as `2/1/3`. Every node adds its hidden
/// direction to the features of the leaves below it, so that neighbours are alike. `name` stands for `out` in errors.
pub fn taxonomy(sizes: &TaxonomySizes, seed: u64, out: &mut impl Write, name: &str) -> Result<()> {
    sizes.check()?;
    let hidden = Hidden { seed };
    let (mut way, mut nodes) = (Vec::new(), Vec::new());
    write_examples(&sizes.of_examples(), seed, out, name, |random, columns, values| {
        way.clear();
        way.extend((0..sizes.depth).map(|_| random.below(sizes.branching)));
        // Nodes are numbered level by level, as those of a heap.
        nodes.clear();
        let number = |above: &mut u32, &child: &u32| {
            *above = above.wrapping_mul(sizes.branching).wrapping_add(child + 1);
            Some(*above)
        };
        nodes.extend(way.iter().scan(0, number));
        for &j in columns {
            let centre: f64 = nodes.iter().map(|&node| hidden.number(node, j)).sum();
            values.push(rounded(centre + sizes.noise * random.gaussian()));
        }
        word(&way)
    })
}

/// Writes the tree of those labels, `CHILD PARENT` a line, below the root `root`.
pub fn taxonomy_tree(sizes: &TaxonomySizes, out: &mut impl Write, name: &str) -> Result<()> {
    sizes.check()?;
    let mut way = Vec::new();
    let written = descend(sizes, &mut way, out).and_then(|()| out.flush());
    written.map_err(|e| Error::io(name, e))
}

/// At most twenty levels, each with two children or more.
fn descend(sizes: &TaxonomySizes, way: &mut Vec<u32>, out: &mut impl Write) -> io::Result<()> {
    for child in 0..sizes.branching {
        let parent = if way.is_empty() { "root".to_owned() } else { word(way) };
        way.push(child);
        writeln!(out, "{} {parent}", word(way))?;
        if (way.len() as u32) < sizes.depth {
            descend(sizes, way, out)?;
        }
        way.pop();
    }
    Ok(())
}

fn word(way: &[u32]) -> String {
    way.iter().map(|child| (child + 1).to_string()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::input::Input;
    use crate::data::svmlight::{LabelRule, read};
    use crate::data::taxonomy;
    use crate::parallel::Pool;

    fn text(sizes: &TaxonomySizes, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        super::taxonomy(sizes, seed, &mut out, "memory").unwrap();
        out
    }

    #[test]
    fn the_same_seed_gives_these_bytes_for_ever() {
        let sparse = TaxonomySizes { examples: 50, nonzeros: 9, branching: 5, ..TaxonomySizes::default() };
        let sums = [(TaxonomySizes::default(), 1), (TaxonomySizes::default(), 2), (sparse, 1)]
            .map(|(sizes, seed)| crc32fast::hash(&text(&sizes, seed)));
        assert_eq!(sums, [3_626_635_501, 4_292_038_061, 3_437_731_254]);
    }

    #[test]
    fn labels_are_leaves_of_the_tree() {
        let sizes = TaxonomySizes { examples: 500, depth: 2, branching: 4, features: 7, ..TaxonomySizes::default() };
        let mut tree = Vec::new();
        taxonomy_tree(&sizes, &mut tree, "memory").unwrap();
        let tree = taxonomy::read(Input::new("tree", tree.as_slice()).unwrap()).unwrap();
        assert_eq!((tree.len(), tree.max_depth()), (1 + 4 + 16, 2));
        let data = text(&sizes, 3);
        let data =
            read(Input::new("data", data.as_slice()).unwrap(), LabelRule::Required, &Pool::new(1).unwrap()).unwrap();
        let nodes = taxonomy::nodes(&data, &tree, "data").unwrap();
        assert!(nodes.iter().all(|&node| tree.height(node) == 0));
        assert_eq!((data.labels.names.len(), data.matrix.columns()), (16, 7));
    }

    #[test]
    fn bad_sizes_are_refused_by_name() {
        let good = TaxonomySizes::default();
        for (sizes, name) in [
            (TaxonomySizes { examples: 0, ..good }, "examples"),
            (TaxonomySizes { depth: 0, ..good }, "depth"),
            (TaxonomySizes { branching: 1, ..good }, "branching"),
            (TaxonomySizes { branching: 2, depth: 21, ..good }, "depth"),
            (TaxonomySizes { branching: u32::MAX, depth: u32::MAX, ..good }, "depth"),
            (TaxonomySizes { noise: -1.0, ..good }, "noise"),
        ] {
            let error = super::taxonomy(&sizes, 0, &mut Vec::new(), "memory").unwrap_err();
            assert!(matches!(error, Error::Setting { name: n, .. } if n == name), "{error}");
        }
    }
}
