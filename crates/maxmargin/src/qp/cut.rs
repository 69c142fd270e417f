//! One cutting plane.

use serde::{Deserialize, Serialize};

use crate::sparse;

/// One cut `<w, lhs> >= rhs - xi`.
///
/// Sparse when under a quarter full, dense above: a sparse entry takes twice the room of a dense one and its
/// product is slower to fetch. Values are f32 when the rounding is affordable, f64 otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    lhs: Lhs,
    rhs: f64,
    /// With a kernel: the inner products of the left side with all atoms in all slots. None: the left side itself.
    image: Option<Vec<f64>>,
    /// `|e|`, the length of what rounding took from the left side, and the radius for which the right side has paid.
    error: f64,
    radius: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Lhs {
    Dense32(Vec<f32>),
    Dense64(Vec<f64>),
    Sparse32(Vec<u32>, Vec<f32>),
    Sparse64(Vec<u32>, Vec<f64>),
}

impl Cut {
    /// The cut with this left side, given densely.
    ///
    /// With e the error of rounding `lhs` to f32, the stored right side is `rhs - |e| * radius`: whoever
    /// satisfies the true cut with `|w| <= radius` satisfies the stored one too, so that bounds stay bounds.
    /// Where `|e| * radius` exceeds `budget` the values are kept in f64, and `rhs` as it is.
    ///
    /// # Panics
    /// If `lhs` has more than 2^32 coordinates.
    pub fn from_dense(lhs: &[f64], rhs: f64, radius: f64, budget: f64) -> Self {
        let error = lhs.iter().map(|&v| v - f64::from(v as f32)).map(|e| e * e).sum::<f64>().sqrt();
        let spent = if error == 0.0 { 0.0 } else { error * radius };
        // A value beyond f32 makes the error infinite or NaN; such a cut stays in f64 as well.
        if spent <= budget {
            Self { lhs: narrow(lhs), rhs: rhs - spent, image: None, error, radius }
        } else {
            Self::exact(lhs, rhs)
        }
    }

    /// The cut in f64, without any rounding.
    pub fn exact(lhs: &[f64], rhs: f64) -> Self {
        let nonzeros = lhs.iter().filter(|&&v| v != 0.0).count();
        let lhs = if is_sparse(nonzeros, lhs.len()) {
            let (indices, values) = gather(lhs, nonzeros);
            Lhs::Sparse64(indices, values)
        } else {
            Lhs::Dense64(lhs.to_vec())
        };
        Self { lhs, rhs, image: None, error: 0.0, radius: f64::INFINITY }
    }

    /// The cut whose left side has these entries, coordinates ascending, in f64.
    ///
    /// # Panics
    /// If a coordinate is 2^32 or more.
    pub fn from_entries(entries: &[(u64, f64)], rhs: f64) -> Self {
        let index = |&(at, _): &(u64, f64)| u32::try_from(at).expect("fewer than 2^32 coordinates");
        let lhs = Lhs::Sparse64(entries.iter().map(index).collect(), entries.iter().map(|e| e.1).collect());
        Self { lhs, rhs, image: None, error: 0.0, radius: f64::INFINITY }
    }

    /// A mean of cuts, in f64: with the left and right sides of the mean, and the `members` with their shares.
    pub(super) fn mean<'c>(lhs: &[f64], rhs: f64, members: impl Iterator<Item = (&'c Self, f64)>) -> Self {
        let mut mean = Self::exact(lhs, rhs);
        for (cut, share) in members {
            mean.error += share * cut.error;
            mean.radius = mean.radius.min(cut.radius);
            if let Some(image) = &cut.image {
                sparse::axpy(share, image, mean.image.get_or_insert_with(|| vec![0.0; image.len()]));
            }
        }
        mean
    }

    /// The same cut where a kernel gives the inner products: `image` has those of its left side with all atoms in all slots.
    #[must_use]
    pub fn with_image(self, image: Vec<f64>) -> Self {
        Self { image: Some(image), ..self }
    }

    /// The inner products with all atoms in all slots, where there is a kernel.
    pub(super) fn image(&self) -> Option<&[f64]> {
        self.image.as_deref()
    }

    /// Makes the cut one that holds for `|w| <= radius`, at the price of its right side.
    pub(super) fn widen(&mut self, radius: f64) {
        if self.error > 0.0 && radius > self.radius {
            self.rhs -= self.error * (radius - self.radius);
            self.radius = radius;
        }
    }

    /// Is this a cut of `dimension` coordinates, all numbers at most `largest`?
    pub(super) fn is_sound(&self, dimension: usize, largest: f64) -> bool {
        let fits = |&j: &u32| (j as usize) < dimension;
        let small = |v: f64| v.abs() <= largest;
        let lhs_is_sound = match &self.lhs {
            Lhs::Dense32(values) => values.len() == dimension && values.iter().all(|&v| small(f64::from(v))),
            Lhs::Dense64(values) => values.len() == dimension && values.iter().all(|&v| small(v)),
            Lhs::Sparse32(indices, values) => {
                indices.len() == values.len() && indices.iter().all(fits) && values.iter().all(|&v| small(f64::from(v)))
            }
            Lhs::Sparse64(indices, values) => {
                indices.len() == values.len() && indices.iter().all(fits) && values.iter().all(|&v| small(v))
            }
        };
        let image_is_sound =
            self.image.as_ref().is_none_or(|image| image.len() == dimension && image.iter().all(|&v| small(v)));
        lhs_is_sound && image_is_sound && small(self.rhs) && small(self.error) && self.radius >= 0.0
    }

    /// The right side, less what the rounding of the left side took.
    pub fn rhs(&self) -> f64 {
        self.rhs
    }

    /// `<lhs, w>`
    pub fn dot_dense(&self, w: &[f64]) -> f64 {
        match &self.lhs {
            Lhs::Dense32(values) => dot_widening(values, w),
            Lhs::Dense64(values) => sparse::dot(values, w),
            Lhs::Sparse32(indices, values) => dot_sparse(indices, values, w),
            Lhs::Sparse64(indices, values) => dot_sparse(indices, values, w),
        }
    }

    /// The inner product of the left side with the vector whose coefficients are `lhs`.
    pub(super) fn inner(&self, lhs: &[f64]) -> f64 {
        self.image.as_ref().map_or_else(|| self.dot_dense(lhs), |image| sparse::dot(image, lhs))
    }

    /// `w += scale * lhs`
    pub fn add_to(&self, scale: f64, w: &mut [f64]) {
        match &self.lhs {
            Lhs::Dense32(values) => w.iter_mut().zip(values).for_each(|(w, &v)| *w += scale * f64::from(v)),
            Lhs::Dense64(values) => sparse::axpy(scale, values, w),
            Lhs::Sparse32(indices, values) => add_sparse(scale, indices, values, w),
            Lhs::Sparse64(indices, values) => add_sparse(scale, indices, values, w),
        }
    }

    /// Sets the coordinates of `w` where this cut has entries back to zero.
    pub(super) fn clear_from(&self, w: &mut [f64]) {
        match &self.lhs {
            Lhs::Dense32(_) | Lhs::Dense64(_) => w.fill(0.0),
            Lhs::Sparse32(indices, _) | Lhs::Sparse64(indices, _) => {
                for &j in indices {
                    w[j as usize] = 0.0;
                }
            }
        }
    }

    /// Number of stored entries: the multiply-adds of one inner product.
    pub fn entries(&self) -> usize {
        self.image.as_ref().map_or_else(|| self.stored(), Vec::len)
    }

    fn stored(&self) -> usize {
        match &self.lhs {
            Lhs::Dense32(values) | Lhs::Sparse32(_, values) => values.len(),
            Lhs::Dense64(values) | Lhs::Sparse64(_, values) => values.len(),
        }
    }

    /// Memory taken by the entries.
    pub fn bytes(&self) -> usize {
        let entry = match &self.lhs {
            Lhs::Dense32(_) => 4,
            Lhs::Dense64(_) | Lhs::Sparse32(..) => 8,
            Lhs::Sparse64(..) => 12,
        };
        entry * self.stored() + self.image.as_ref().map_or(0, |image| 8 * image.len())
    }
}

fn is_sparse(nonzeros: usize, dimension: usize) -> bool {
    nonzeros * 4 < dimension
}

fn narrow(lhs: &[f64]) -> Lhs {
    let nonzeros = lhs.iter().filter(|&&v| v as f32 != 0.0).count();
    if is_sparse(nonzeros, lhs.len()) {
        let (indices, values) = gather(lhs, nonzeros);
        Lhs::Sparse32(indices, values)
    } else {
        Lhs::Dense32(lhs.iter().map(|&v| v as f32).collect())
    }
}

/// An entry's number type.
trait Value: Copy {
    fn round(v: f64) -> Self;
    fn widen(self) -> f64;
}

impl Value for f32 {
    fn round(v: f64) -> Self {
        v as Self
    }
    fn widen(self) -> f64 {
        f64::from(self)
    }
}

impl Value for f64 {
    fn round(v: f64) -> Self {
        v
    }
    fn widen(self) -> f64 {
        self
    }
}

fn gather<V: Value>(lhs: &[f64], nonzeros: usize) -> (Vec<u32>, Vec<V>) {
    assert!(u32::try_from(lhs.len()).is_ok(), "indices are u32");
    let (mut indices, mut values) = (Vec::with_capacity(nonzeros), Vec::with_capacity(nonzeros));
    for (j, &v) in lhs.iter().enumerate() {
        let v = V::round(v);
        if v.widen() != 0.0 {
            indices.push(j as u32);
            values.push(v);
        }
    }
    (indices, values)
}

/// Eight running sums, as [`sparse::dot`], so that the loop vectorises.
fn dot_widening(values: &[f32], w: &[f64]) -> f64 {
    debug_assert_eq!(values.len(), w.len());
    let (v8, v_rest) = values.as_chunks::<8>();
    let (w8, w_rest) = w.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (v, w) in v8.iter().zip(w8) {
        for k in 0..8 {
            sums[k] += f64::from(v[k]) * w[k];
        }
    }
    let rest: f64 = v_rest.iter().zip(w_rest).map(|(&v, w)| f64::from(v) * w).sum();
    sums.iter().sum::<f64>() + rest
}

/// Four running sums, so that a product does not wait for the sum before it.
fn dot_sparse<V: Value>(indices: &[u32], values: &[V], w: &[f64]) -> f64 {
    let (i4, i_rest) = indices.as_chunks::<4>();
    let (v4, v_rest) = values.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (i, v) in i4.iter().zip(v4) {
        for k in 0..4 {
            sums[k] += v[k].widen() * w[i[k] as usize];
        }
    }
    let rest: f64 = i_rest.iter().zip(v_rest).map(|(&i, v)| v.widen() * w[i as usize]).sum();
    sums.iter().sum::<f64>() + rest
}

fn add_sparse<V: Value>(scale: f64, indices: &[u32], values: &[V], w: &mut [f64]) {
    for (&j, v) in indices.iter().zip(values) {
        w[j as usize] += scale * v.widen();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(d: usize, every: usize) -> Vec<f64> {
        (0..d).map(|j| if j % every == 0 { (j as f64 * 0.37).sin() } else { 0.0 }).collect()
    }

    #[test]
    fn every_representation_has_the_same_products() {
        let w: Vec<f64> = (0..103).map(|j| (f64::from(j) * 0.7).cos()).collect();
        for every in [1, 3, 4, 5, 17] {
            let lhs = vector(103, every);
            for budget in [0.0, 1.0] {
                let cut = Cut::from_dense(&lhs, 1.0, 2.0, budget);
                assert!((cut.dot_dense(&w) - sparse::dot(&lhs, &w)).abs() < 1e-5);
                let mut sum = w.clone();
                cut.add_to(-2.0, &mut sum);
                assert!(sum.iter().zip(&w).zip(&lhs).all(|((s, w), l)| (s - w + 2.0 * l).abs() < 1e-6));
                let mut scattered = vec![0.0; 103];
                cut.add_to(1.0, &mut scattered);
                cut.clear_from(&mut scattered);
                assert_eq!(scattered, vec![0.0; 103]);
            }
        }
    }

    #[test]
    fn room_follows_fill_and_budget() {
        assert_eq!(Cut::from_dense(&vector(100, 1), 1.0, 1.0, 1.0).bytes(), 400);
        assert_eq!(Cut::from_dense(&vector(100, 1), 1.0, 1.0, 0.0).bytes(), 800);
        assert_eq!(Cut::from_dense(&vector(100, 10), 1.0, 1.0, 1.0).bytes(), 8 * 9); // sin 0 = 0
        assert_eq!(Cut::from_dense(&vector(100, 10), 1.0, 1.0, 0.0).bytes(), 12 * 9);
    }

    #[test]
    fn values_beyond_f32_stay_exact() {
        for lhs in [[1e300, 1.0], [1e-30, 1.1]] {
            let cut = Cut::from_dense(&lhs, 1.0, f64::INFINITY, 1.0);
            assert_eq!((cut.rhs(), cut.bytes()), (1.0, 16));
        }
        // Nothing to round: f32 even for an unknown radius.
        assert_eq!(Cut::from_dense(&[0.5, 1.0], 1.0, f64::INFINITY, 0.0).bytes(), 8);
    }

    /// Whoever satisfies the true cut satisfies the stored one, within the radius that was paid for.
    #[test]
    fn a_wider_radius_is_paid_for() {
        let (a, b) = (vector(50, 1), vec![0.1; 50]);
        let stored = |lhs: &[f64], radius| Cut::from_dense(lhs, 1.0, radius, 1.0);
        let mut cut = stored(&a, 2.0);
        cut.widen(1.0);
        assert_eq!(cut, stored(&a, 2.0));
        cut.widen(7.0);
        assert!((cut.rhs() - stored(&a, 7.0).rhs()).abs() < 1e-15 && cut.rhs() < stored(&a, 2.0).rhs());

        // A mean of cuts owes what its members do.
        let (a2, b2, a7, b7) = (stored(&a, 2.0), stored(&b, 3.0), stored(&a, 7.0), stored(&b, 7.0));
        let rhs = 0.5 * (a2.rhs() + b2.rhs());
        let mut mean = Cut::mean(&a, rhs, [(&a2, 0.5), (&b2, 0.5)].into_iter());
        mean.widen(7.0);
        assert!(mean.rhs() < 0.5 * (a7.rhs() + b7.rhs()) + 1e-15 && mean.rhs() > rhs - 1e-4);

        let mut exact = Cut::exact(&a, 1.0);
        exact.widen(1e9);
        assert_eq!(exact.rhs(), 1.0);
    }
}
