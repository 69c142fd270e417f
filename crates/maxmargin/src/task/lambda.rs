//! Output features: `psi(x, y) = phi(x) (x) Lambda(y)` (Tsochantaridis, Hofmann, Joachims, Altun 2004, section 5.1).

/// The features of a list of outputs: for each a sparse row over the slots of a block, in which its input vector stands
/// times these values.
#[derive(Debug, Clone, PartialEq)]
pub struct Lambda {
    width: u32,
    /// Row k has the places `offsets[k]..offsets[k + 1]` of `slots`, which ascend within a row, and of `values`.
    offsets: Vec<usize>,
    slots: Vec<u32>,
    values: Vec<f64>,
    /// Where every row is the way from a root of a forest of slots to one of them.
    ways: Option<Ways>,
}

/// A forest of slots, and where the rows end in it.
#[derive(Debug, Clone, PartialEq)]
struct Ways {
    /// The slot above each, which has a smaller number; itself where there is none.
    above: Vec<u32>,
    /// The slot where each output's way ends; None: its row is empty.
    ends: Vec<Option<u32>>,
    /// The value of all slots of a way but its end, which has 1.
    passed: f64,
}

impl Lambda {
    /// A block of `width` slots from the rows of the outputs, `(slot, value)` with ascending slots below `width` and values
    /// that are finite and not 0.
    ///
    /// # Panics
    /// If a row is not so.
    pub fn new<R: IntoIterator<Item = (u32, f64)>>(width: u32, rows: impl IntoIterator<Item = R>) -> Self {
        let mut lambda = Self { width, offsets: vec![0], slots: Vec::new(), values: Vec::new(), ways: None };
        for row in rows {
            let start = lambda.slots.len();
            for (slot, value) in row {
                let ascends = lambda.slots[start..].last().is_none_or(|&last| last < slot);
                assert!(ascends && slot < width && value.is_finite() && value != 0.0, "slot {slot}, value {value}");
                lambda.slots.push(slot);
                lambda.values.push(value);
            }
            lambda.offsets.push(lambda.slots.len());
        }
        lambda
    }

    /// Outputs that are the ways from a root of a forest of slots to their ends, with the value 1 there and `passed` on the way.
    /// `above`: the slot above each, of a smaller number; itself at a root.
    ///
    /// # Panics
    /// If a slot stands above one of a smaller number, an end is no slot, or `passed` is 0 or not finite.
    pub fn of_ways(above: Vec<u32>, ends: Vec<Option<u32>>, passed: f64) -> Self {
        assert!(above.iter().enumerate().all(|(slot, &above)| above as usize <= slot), "slots ascend");
        let mut way = Vec::new();
        let rows = ends.iter().map(|end| {
            way.clear();
            let mut next = *end;
            while let Some(slot) = next {
                way.push(slot);
                next = Some(above[slot as usize]).filter(|&above| above != slot);
            }
            way.reverse();
            way.iter().map(|&slot| (slot, if Some(slot) == *end { 1.0 } else { passed })).collect::<Vec<_>>()
        });
        let lambda = Self::new(above.len() as u32, rows);
        Self { ways: Some(Ways { above, ends, passed }), ..lambda }
    }

    /// Number of slots.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Number of outputs.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// No output?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Slots and values of output k.
    pub fn row(&self, k: usize) -> (&[u32], &[f64]) {
        let range = self.offsets[k]..self.offsets[k + 1];
        (&self.slots[range.clone()], &self.values[range])
    }

    /// The scores of all outputs from those of the slots, which are used up. Of ways the sums are taken from the roots
    /// down: each slot is looked at once, however many outputs are below it.
    pub fn outputs(&self, of_slots: &mut [f64], scores: &mut [f64]) {
        if let Some(Ways { above, ends, passed }) = &self.ways {
            for (score, end) in scores.iter_mut().zip(ends) {
                *score = end.map_or(0.0, |slot| of_slots[slot as usize]);
            }
            for (slot, &above) in above.iter().enumerate() {
                of_slots[slot] *= passed;
                if above as usize != slot {
                    of_slots[slot] += of_slots[above as usize];
                }
            }
            let is_passed = |slot: u32| Some(above[slot as usize]).filter(|&above| above != slot);
            for (score, above) in scores.iter_mut().zip(ends.iter().map(|end| end.and_then(is_passed))) {
                *score += above.map_or(0.0, |slot| of_slots[slot as usize]);
            }
            return;
        }
        for (k, score) in scores.iter_mut().enumerate() {
            let (slots, values) = self.row(k);
            *score = slots.iter().zip(values).map(|(&slot, value)| value * of_slots[slot as usize]).sum();
        }
    }

    /// `Lambda(k) - Lambda(l)`: its slots, ascending, with values that are not 0.
    pub fn each_difference(&self, k: usize, l: usize, mut take: impl FnMut(u32, f64)) {
        let ((a, a_values), (b, b_values)) = (self.row(k), self.row(l));
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            let (slot, other) = (a.get(i).copied().unwrap_or(u32::MAX), b.get(j).copied().unwrap_or(u32::MAX));
            let mut value = 0.0;
            if slot <= other {
                value += a_values[i];
                i += 1;
            }
            if other <= slot {
                value -= b_values[j];
                j += 1;
            }
            if value != 0.0 {
                take(slot.min(other), value);
            }
        }
    }

    /// `<Lambda(k), Lambda(l)>`
    pub fn inner(&self, k: usize, l: usize) -> f64 {
        let ((a, a_values), (b, b_values)) = (self.row(k), self.row(l));
        let (mut i, mut j, mut sum) = (0, 0, 0.0);
        while i < a.len() && j < b.len() {
            match a[i].cmp(&b[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    sum += a_values[i] * b_values[j];
                    (i, j) = (i + 1, j + 1);
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(lambda: &Lambda, k: usize) -> Vec<f64> {
        let mut row = vec![0.0; lambda.width() as usize];
        let (slots, values) = lambda.row(k);
        slots.iter().zip(values).for_each(|(&slot, &value)| row[slot as usize] = value);
        row
    }

    /// A forest of two roots, 0 and 4, with an output that is nowhere.
    fn forest(passed: f64) -> Lambda {
        Lambda::of_ways(vec![0, 0, 1, 1, 4, 4], vec![Some(2), Some(3), Some(5), None, Some(0), Some(1)], passed)
    }

    #[test]
    fn ways_are_rows() {
        let lambda = forest(1.0);
        assert_eq!((lambda.len(), lambda.width()), (6, 6));
        assert_eq!(lambda.row(0), (&[0, 1, 2][..], &[1.0; 3][..]));
        assert_eq!(lambda.row(2), (&[4, 5][..], &[1.0; 2][..]));
        assert_eq!(lambda.row(3).0, [0_u32; 0]);
        assert_eq!(forest(0.5).row(0).1, [0.5, 0.5, 1.0]);
        for (passed, expected) in [(1.0, [7.0, 11.0, 48.0, 0.0, 1.0, 3.0]), (0.5, [5.5, 9.5, 40.0, 0.0, 1.0, 2.5])] {
            let lambda = forest(passed);
            let as_rows = Lambda { ways: None, ..lambda.clone() };
            let of_slots = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
            let (mut summed, mut added) = ([0.0; 6], [0.0; 6]);
            lambda.outputs(&mut of_slots.clone(), &mut summed);
            as_rows.outputs(&mut of_slots.clone(), &mut added);
            assert_eq!(summed, expected);
            assert_eq!(summed, added);
        }
    }

    #[test]
    fn differences_and_inner_products() {
        let rows = [vec![(0, 1.0), (2, -2.0)], vec![(1, 0.5), (2, -2.0), (4, 3.0)], vec![], vec![(4, 1.0)]];
        for lambda in [forest(1.0), forest(0.25), Lambda::new(5, rows)] {
            for k in 0..lambda.len() {
                for l in 0..lambda.len() {
                    let (a, b) = (dense(&lambda, k), dense(&lambda, l));
                    let mut found = vec![0.0; a.len()];
                    lambda.each_difference(k, l, |slot, value| {
                        assert!(value != 0.0);
                        found[slot as usize] += value;
                    });
                    assert_eq!(found, a.iter().zip(&b).map(|(a, b)| a - b).collect::<Vec<_>>());
                    assert_eq!(lambda.inner(k, l), a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>());
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "slots ascend")]
    fn a_slot_above_itself() {
        drop(Lambda::of_ways(vec![1, 1], vec![Some(0)], 1.0));
    }
}
