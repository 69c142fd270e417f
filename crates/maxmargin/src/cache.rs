//! The outputs that each example has met: the last `capacity` distinct ones, the least recently used leaving first
//! (Joachims, Finley, Yu 2009, section 4). Outputs are kept, not their feature vectors: they are small.

use serde::{Deserialize, Serialize};

/// A few outputs for each of some examples.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cache<Y> {
    capacity: usize,
    outputs: Vec<Y>,
    used: Vec<u32>,
    lens: Vec<u16>,
}

impl<Y: Clone + Default + PartialEq> Cache<Y> {
    /// Room for `capacity` outputs of each of `examples` examples.
    pub fn new(examples: usize, capacity: u16) -> Self {
        let capacity = usize::from(capacity);
        Self {
            capacity,
            outputs: vec![Y::default(); examples * capacity],
            used: vec![0; examples * capacity],
            lens: vec![0; examples],
        }
    }

    /// Is this a cache with room for `capacity` outputs of each of `examples` examples? One that was read may be another.
    pub fn fits(&self, examples: usize, capacity: u16) -> bool {
        let slots = examples * usize::from(capacity);
        self.capacity == usize::from(capacity)
            && (self.outputs.len(), self.used.len(), self.lens.len()) == (slots, slots, examples)
            && self.lens.iter().all(|&len| len <= capacity)
    }

    /// The outputs of example `e`, by slot.
    pub fn of(&self, e: usize) -> &[Y] {
        &self.outputs[e * self.capacity..][..usize::from(self.lens[e])]
    }

    /// The outputs of example `e`, to be changed in place.
    pub fn of_mut(&mut self, e: usize) -> &mut [Y] {
        &mut self.outputs[e * self.capacity..][..usize::from(self.lens[e])]
    }

    /// Number of outputs of example `e`.
    pub fn len(&self, e: usize) -> usize {
        usize::from(self.lens[e])
    }

    /// Takes note that the output in this slot was the worst of round `now`.
    pub fn touch(&mut self, e: usize, slot: usize, now: u32) {
        self.used[e * self.capacity + slot] = now;
    }

    /// The slot of `y`, which takes the place of the least recently used output where it is new and the cache is full.
    pub fn insert(&mut self, e: usize, y: &Y, now: u32) -> usize {
        let slot = if let Some(slot) = self.of(e).iter().position(|known| known == y) {
            slot
        } else if self.len(e) < self.capacity {
            self.lens[e] += 1;
            self.len(e) - 1
        } else {
            let used = &self.used[e * self.capacity..][..self.capacity];
            // The first of the oldest, so that runs agree.
            (0..self.capacity).min_by_key(|&s| used[s]).unwrap_or(0)
        };
        self.outputs[e * self.capacity + slot].clone_from(y);
        self.touch(e, slot, now);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_leaves() {
        let mut cache = Cache::new(2, 2);
        assert_eq!(cache.insert(0, &7, 1), 0);
        assert_eq!(cache.insert(0, &8, 2), 1);
        assert_eq!(cache.insert(0, &7, 3), 0);
        assert_eq!(cache.insert(0, &9, 4), 1);
        assert_eq!(cache.of(0), [7, 9]);
        cache.touch(0, 1, 5);
        assert_eq!(cache.insert(0, &1, 6), 0);
        assert_eq!(cache.of(0), [1, 9]);
        assert!(cache.of(1).is_empty());
    }
}
