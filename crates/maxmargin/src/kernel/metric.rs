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
