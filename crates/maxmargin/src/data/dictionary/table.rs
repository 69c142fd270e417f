//! The hash table of a dictionary.

use crate::memory::{prefetch, room};

/// Leads from hashes to the starts of records: open addresses, searched one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// None, or a power of two, of which at least a third is free. A record's start in the low bits, in the others those of
    /// the hash, by which most names are told apart without a look at the record.
    entries: Vec<u64>,
}

/// Where a search stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(usize);

const FREE: u64 = u64::MAX;
/// Bits of an entry that are a start.
const START_BITS: u32 = 40;
const START: u64 = (1 << START_BITS) - 1;

impl Table {
    /// An empty table with room for `count` names.
    pub(super) fn for_names(count: usize) -> Self {
        let mut entries = room(Self::size_for(count));
        entries.resize(Self::size_for(count), FREE);
        Self { entries }
    }

    fn size_for(count: usize) -> usize {
        (count + count / 2 + 1).next_power_of_two()
    }

    pub(super) fn has_room_for(&self, count: usize) -> bool {
        Self::size_for(count) <= self.entries.len()
    }

    /// Would a smaller one do?
    pub(super) fn is_wide_for(&self, count: usize) -> bool {
        Self::size_for(count) < self.entries.len()
    }

    /// Where the search for a hash begins.
    #[inline]
    pub(super) fn first(&self, hash: u64) -> Place {
        Place(hash as usize & self.entries.len().wrapping_sub(1))
    }

    /// Hints that a search for the hash will begin soon.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(entry) = self.entries.get(self.first(hash).0) {
            prefetch(entry);
        }
    }

    /// The start of the next record that may be the one, from `place` on, which then stands after it; none where the search
    /// is over, and `place` is free.
    #[inline]
    pub(super) fn next(&self, hash: u64, place: &mut Place) -> Option<usize> {
        // An empty table has no place at all.
        while let Some(&entry) = self.entries.get(place.0).filter(|entry| **entry != FREE) {
            place.0 = (place.0 + 1) & (self.entries.len() - 1);
            if (entry ^ hash) >> START_BITS == 0 {
                return Some((entry & START) as usize);
            }
        }
        None
    }

    /// The free place for a hash, in a table with room.
    pub(super) fn free(&self, hash: u64) -> Place {
        let mut place = self.first(hash);
        while self.next(hash, &mut place).is_some() {}
        place
    }

    /// Can a record start there? Not at the very last place: with that one an entry could look free.
    pub(super) fn can_hold(start: usize) -> bool {
        (start as u64) < START
    }

    /// Enters a record at a free place.
    pub(super) fn set(&mut self, place: Place, hash: u64, start: usize) {
        debug_assert!(Self::can_hold(start) && self.entries[place.0] == FREE, "places are free, starts are near");
        self.entries[place.0] = hash & !START | start as u64;
    }
}

/// A fast hash of short byte strings, always the same: products of 64-bit words, folded (as wyhash does). Nothing
/// depends on it but the time that a look-up takes.
#[inline]
pub(super) fn hash(bytes: &[u8]) -> u64 {
    const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let four = |part: &[u8; 4]| u64::from(u32::from_le_bytes(*part));
    // Spread out: the difference of two lengths must not be made up by a byte.
    let mut state = (bytes.len() as u64).wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x243f_6a88_85a3_08d3;
    // The last word overlaps the one before, so that no length needs a loop over bytes.
    let last = if let Some(last) = bytes.last_chunk::<8>() {
        for word in bytes[..bytes.len() - 1].as_chunks::<8>().0 {
            state = fold(state ^ u64::from_le_bytes(*word), KEY);
        }
        u64::from_le_bytes(*last)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        four(first) << 32 | four(last)
    } else if let [first, .., last] = bytes {
        u64::from(*first) << 16 | u64::from(bytes[bytes.len() / 2]) << 8 | u64::from(*last)
    } else {
        bytes.first().map_or(0, |&b| u64::from(b))
    };
    let mixed = fold(fold(state ^ last, KEY), 0xd1b5_4a32_d192_ed03);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn similar_names_have_different_hashes() {
        let mut hashes = HashSet::new();
        let mut count = 0;
        for length in 0..40 {
            let mut name = vec![b'a'; length];
            hashes.insert(hash(&name));
            count += 1;
            for at in 0..length {
                for byte in [0, b'b', 0xff] {
                    name[at] = byte;
                    hashes.insert(hash(&name));
                    count += 1;
                }
                name[at] = b'a';
            }
        }
        assert_eq!(hashes.len(), count);
    }
}
