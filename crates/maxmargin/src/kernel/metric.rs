//! The inner product of weight vectors where a kernel acts in a block.

use super::gram::{Entry, Gram};
use crate::features::{Block, Sink};
use crate::parallel::Pool;
use crate::sparse::SparseView;
use crate::weights::Weights;

/// The coefficients that are not zero, with their coordinates.
fn nonzeros(coefficients: &[f64]) -> Vec<(u64, f64)> {
    let found = coefficients.iter().enumerate().filter(|(_, c)| **c != 0.0);
    found.map(|(at, &c)| (at as u64, c)).collect()
}

/// Takes the atoms of what a task emits.
pub(crate) struct AtomsOf<'s> {
    /// The block in which the kernel acts.
    pub(crate) block: Block,
    /// Where they go.
    pub(crate) atoms: &'s mut Vec<u32>,
}

impl Sink for AtomsOf<'_> {
    fn part(&mut self, block: Block, _slot: u32, phi: SparseView<'_>, _scale: f64) {
        if block == self.block {
            self.atoms.extend(phi.indices());
        }
    }
}

/// A kernel in one block of w, whose inputs are one-hot vectors of atoms. In the other blocks inner products are as usual.
#[derive(Debug, Clone, Copy)]
pub struct Metric<'g> {
    gram: &'g Gram,
    block: Block,
    trained: usize,
}

impl<'g> Metric<'g> {
    /// The kernel's matrix over the atoms that are the rows of the block.
    ///
    /// # Panics
    /// If the block has another number of rows.
    pub fn new(gram: &'g Gram, block: Block) -> Self {
        assert_eq!(gram.len(), block.rows as usize, "a row of the block for each atom");
        Self { gram, block, trained: gram.len() }
    }

    /// The same where only the first so many atoms are of training examples: the others only want scores.
    ///
    /// # Panics
    /// If there are fewer atoms.
    #[must_use]
    pub fn trained_on(self, atoms: usize) -> Self {
        assert!(atoms <= self.gram.len(), "the first of the atoms");
        Self { trained: atoms, ..self }
    }

    /// The number of atoms of training examples, which come first.
    pub fn trained(&self) -> usize {
        self.trained
    }

    /// The kernel's matrix.
    pub fn gram(&self) -> &'g Gram {
        self.gram
    }

    /// The block in which the kernel acts.
    pub fn block(&self) -> Block {
        self.block
    }

    /// Is it an inner product of vectors? A user's own kernel is taken to be.
    pub fn is_definite(&self) -> bool {
        self.gram.kernel().standard().is_none_or(|standard| standard.is_definite())
    }

    fn width(&self) -> usize {
        self.block.width as usize
    }

    /// The coordinates of the block.
    pub fn coordinates(&self) -> std::ops::Range<usize> {
        self.block.base as usize..(self.block.base + self.block.len()) as usize
    }

    /// The atom to which a coordinate belongs; None outside the block.
    pub fn atom(&self, coordinate: u64) -> Option<u32> {
        let inside = coordinate.checked_sub(self.block.base).filter(|&at| at < self.block.len())?;
        Some((inside / u64::from(self.block.width)) as u32)
    }

    /// Splits a vector, coordinates ascending, into what lies in the block and the rest.
    fn split<'v>(&self, vector: &'v [(u64, f64)]) -> (Vec<Entry>, impl Iterator<Item = &'v (u64, f64)>) {
        let range = self.coordinates();
        let start = vector.partition_point(|e| (e.0 as usize) < range.start);
        let end = vector.partition_point(|e| (e.0 as usize) < range.end);
        let width = u64::from(self.block.width);
        let entry = |&(at, value): &(u64, f64)| {
            let at = at - self.block.base;
            Entry { atom: (at / width) as u32, slot: (at % width) as u32, value }
        };
        (vector[start..end].iter().map(entry).collect(), vector[..start].iter().chain(&vector[end..]))
    }

    /// Adds to `image` that of the vector with these coefficients: its inner products with all atoms in all slots, and
    /// its coordinates outside the block.
    pub fn add_image(&self, vector: &[(u64, f64)], image: &mut [f64], pool: &Pool) {
        let (entries, rest) = self.split(vector);
        for &(at, value) in rest {
            image[at as usize] += value;
        }
        if !entries.is_empty() {
            self.gram.add_image(&entries, self.width(), &mut image[self.coordinates()], pool);
        }
    }

    /// `w += vector`
    pub fn add_to(&self, vector: &[(u64, f64)], w: &mut Weights, pool: &Pool) {
        let (dense, coefficients) = w.both_mut();
        if let Some(coefficients) = coefficients {
            for &(at, value) in vector {
                coefficients[at as usize] += value;
            }
        }
        self.add_image(vector, dense, pool);
    }

    /// Makes the coordinates of w what its coefficients say.
    pub fn refresh(&self, w: &mut Weights, pool: &Pool) {
        let vector = nonzeros(w.coefficients());
        let (dense, _) = w.both_mut();
        dense.fill(0.0);
        self.add_image(&vector, dense, pool);
    }

    /// The image of the vector with these coefficients.
    pub fn image(&self, coefficients: &[f64], pool: &Pool) -> Vec<f64> {
        let mut image = vec![0.0; coefficients.len()];
        self.add_image(&nonzeros(coefficients), &mut image, pool);
        image
    }

    /// The images of some vectors, given by their coefficients, with kernel values in double precision.
    ///
    /// Each row of the matrix is computed once for all of the vectors.
    pub fn reported_images(&self, vectors: &[&[f64]], pool: &Pool) -> Vec<Vec<f64>> {
        let (inside, width, count) = (self.coordinates(), self.width(), vectors.len());
        let mut entries = Vec::new();
        for atom in 0..self.gram.len() {
            for (v, vector) in vectors.iter().enumerate() {
                let own = &vector[inside.clone()][atom * width..][..width];
                let found = own.iter().enumerate().filter(|(_, value)| **value != 0.0);
                entries.extend(found.map(|(slot, &value)| Entry {
                    atom: atom as u32,
                    slot: (v * width + slot) as u32,
                    value,
                }));
            }
        }
        let mut together = vec![0.0; self.gram.len() * width * count];
        if !entries.is_empty() {
            self.gram.add_reported_image(&entries, width * count, &mut together, pool);
        }
        let image = |(v, vector): (usize, &&[f64])| {
            // Outside the block an image is the vector itself.
            let mut image = vector.to_vec();
            let rows = image[inside.clone()].chunks_exact_mut(width.max(1));
            rows.zip(together.chunks_exact((width * count).max(1)))
                .for_each(|(own, all)| own.copy_from_slice(&all[v * width..][..width]));
            image
        };
        vectors.iter().enumerate().map(image).collect()
    }

    /// `sum_a |c_a| sqrt(K(a, a))` over the coefficients in the block: an upper bound of the length of the vector, by which
    /// the rounding of its scores is measured.
    pub fn mass(&self, coefficients: &[f64]) -> f64 {
        let width = self.width();
        let of_atom = |(atom, own): (usize, &[f64])| {
            own.iter().map(|c| c.abs()).sum::<f64>() * self.gram.diagonal(atom as u32).abs().sqrt()
        };
        coefficients[self.coordinates()].chunks_exact(width.max(1)).enumerate().map(of_atom).sum()
    }

    /// The inner product of two short vectors, coordinates ascending.
    pub fn inner(&self, a: &[(u64, f64)], b: &[(u64, f64)]) -> f64 {
        let (own, rest) = self.split(a);
        let (others, other_rest) = self.split(b);
        let mut sum = 0.0;
        for x in &own {
            for y in others.iter().filter(|y| y.slot == x.slot) {
                sum += x.value * y.value * self.gram.value(x.atom, y.atom);
            }
        }
        let mut others = other_rest.peekable();
        for &(at, value) in rest {
            while others.peek().is_some_and(|e| e.0 < at) {
                others.next();
            }
            if let Some(&&(other, y)) = others.peek()
                && other == at
            {
                sum += value * y;
            }
        }
        sum
    }
}
