//! The checkerboard, which no hyperplane separates.

use std::io::Write;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::{Random, rounded};
use crate::data::svmlight;
use crate::error::{Error, Result};
use crate::sparse::SparseView;

/// Writes a two-class problem with labels `+1` and `-1` in SVM-light text: points, uniform on a board of 4 x 4 cells whose
/// classes alternate, as in the experiments of Yu and Joachims (2008). Two features from -2 to 2, cells of side 1; the one at
/// the lower left is positive. After its class is fixed, a point is displaced by nearly normal numbers with standard deviation
/// `noise` in both features. `name` stands for `out` in errors.
pub fn checkers(examples: u64, noise: f64, seed: u64, out: &mut impl Write, name: &str) -> Result<()> {
    if examples == 0 {
        return Err(Error::setting("examples", "must be at least 1"));
    }
    if !(noise >= 0.0 && noise.is_finite()) {
        return Err(Error::setting("noise", format!("{noise} is not a standard deviation (0 or more)")));
    }
    let mut random = Random { source: Xoshiro256PlusPlus::seed_from_u64(seed) };
    let mut text = Vec::new();
    for _ in 0..examples {
        let place = [0, 1].map(|_| 4.0 * random.uniform());
        let is_positive = place.iter().map(|x| x.floor()).sum::<f64>() % 2.0 == 0.0;
        let values = place.map(|x| inside(x, if noise > 0.0 { noise * random.gaussian() } else { 0.0 }));
        text.clear();
        let label = if is_positive { "+1" } else { "-1" };
        let written: std::io::Result<()> =
            svmlight::write(&mut text, Some(label), None, SparseView::new(&[0, 1], &values));
        written.and_then(|()| out.write_all(&text)).map_err(|e| Error::io(name, e))?;
    }
    out.flush().map_err(|e| Error::io(name, e))
}

/// A place on the board, displaced, around the middle of the board and in four places, which must not carry it over the
/// upper side of its cell.
fn inside(place: f64, displacement: f64) -> f32 {
    /// The last number of four places below 1.
    const LAST: f64 = 0.9999;
    let cell = place.floor();
    let place = cell + (place - cell).min(LAST);
    rounded(place - 2.0 + displacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(examples: u64, noise: f64, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        checkers(examples, noise, seed, &mut out, "memory").unwrap();
        out
    }

    /// Label and both features of each line; a feature of 0 is left out there.
    fn points(text: &[u8]) -> Vec<(bool, [f64; 2])> {
        let line = |line: &str| {
            let (label, features) = line.split_once(' ').unwrap();
            let mut point = [0.0; 2];
            for pair in features.split(' ') {
                let (index, value) = pair.split_once(':').unwrap();
                point[index.parse::<usize>().unwrap() - 1] = value.parse().unwrap();
            }
            (label == "+1", point)
        };
        std::str::from_utf8(text).unwrap().lines().map(line).collect()
    }

    fn cell(point: [f64; 2]) -> [usize; 2] {
        point.map(|x| (x + 2.0).floor() as usize)
    }

    #[test]
    fn the_same_seed_gives_these_bytes_for_ever() {
        let sums = [(0.0, 1), (0.02, 1), (0.02, 2)].map(|(noise, seed)| crc32fast::hash(&text(200, noise, seed)));
        assert_eq!(sums, [3_439_940_512, 2_620_249_043, 2_552_759_058]);
    }

    #[test]
    fn classes_alternate_from_cell_to_cell() {
        let mut seen = [[0; 4]; 4];
        for (is_positive, point) in points(&text(16_000, 0.0, 3)) {
            let [x, y] = cell(point);
            assert_eq!(is_positive, (x + y) % 2 == 0, "{point:?}");
            seen[x][y] += 1;
        }
        assert!(seen.iter().flatten().all(|n| (850..1150).contains(n)), "{seen:?}");
    }

    #[test]
    fn noise_moves_points_and_not_classes() {
        let (clean, moved) = (points(&text(5000, 0.0, 4)), points(&text(5000, 0.02, 4)));
        assert_ne!(clean, moved);
        // Uniform over cells of side 1, a displacement of mean 0.016 in each of two directions leaves a cell in 3 of 100 cases.
        let strayed = |points: &[(bool, [f64; 2])]| {
            let is_astray = |(is_positive, point): &&(bool, [f64; 2])| {
                let parity = point.map(|x| (x + 2.0).floor()).iter().sum::<f64>().rem_euclid(2.0);
                *is_positive != (parity == 0.0)
            };
            points.iter().filter(is_astray).count()
        };
        assert_eq!(strayed(&clean), 0);
        assert!((80..250).contains(&strayed(&moved)), "{}", strayed(&moved));
    }

    #[test]
    fn bad_sizes_are_refused_by_name() {
        for (examples, noise, name) in [(0, 0.0, "examples"), (1, -0.1, "noise"), (1, f64::NAN, "noise")] {
            let error = checkers(examples, noise, 0, &mut Vec::new(), "memory").unwrap_err();
            assert!(matches!(error, Error::Setting { name: n, .. } if n == name), "{error}");
        }
    }
}
