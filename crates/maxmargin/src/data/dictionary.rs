//! Byte strings and their numbers.

use hashbrown::HashTable;

use crate::error::{Error, Result};

/// Names of features, numbered from 0 in the order of their first appearance. All bytes lie in one piece of memory.
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    bytes: Vec<u8>,
    /// Where each name ends in `bytes`; it starts where the one before ends.
    ends: Vec<usize>,
    table: HashTable<Slot>,
}

/// A name in the hash table. Most other names are told apart by the hash, without a look at their bytes.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    id: u32,
}

impl Slot {
    /// What the table goes by: the place by the low bits, a mark by the high ones.
    fn wide(hash: u32) -> u64 {
        u64::from(hash) << 32 | u64::from(hash)
    }
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.bytes == other.bytes
    }
}

impl Eq for Dictionary {}

impl Dictionary {
    /// Stands for no name, where ids are listed.
    pub const NONE: u32 = u32::MAX;

    /// A dictionary without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// No names?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of a name.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<u32> {
        let hash = hash(name);
        let is_name = |slot: &Slot| slot.hash == hash && self.name(slot.id) == name;
        self.table.find(Slot::wide(hash), is_name).map(|slot| slot.id)
    }

    /// The number of a name, a new one if need be; `None` when there are no numbers left (2^32 - 1 names).
    #[inline]
    pub fn intern(&mut self, name: &[u8]) -> Option<u32> {
        let hash = hash(name);
        let Self { bytes, ends, table } = self;
        let is_name = |slot: &Slot| slot.hash == hash && name_in(bytes, ends, slot.id) == name;
        if let Some(slot) = table.find(Slot::wide(hash), is_name) {
            return Some(slot.id);
        }
        let id = u32::try_from(ends.len()).ok().filter(|&id| id != Self::NONE)?;
        bytes.extend_from_slice(name);
        ends.push(bytes.len());
        table.insert_unique(Slot::wide(hash), Slot { hash, id }, |slot| Slot::wide(slot.hash));
        Some(id)
    }

    /// The name with a number.
    ///
    /// # Panics
    /// If no name has it.
    #[inline]
    pub fn name(&self, id: u32) -> &[u8] {
        name_in(&self.bytes, &self.ends, id)
    }

    /// All names, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }

    /// Keeps the names whose numbers `keep` likes, and gives them new numbers in the old order. Returns the new number
    /// of each old one, or [`NONE`](Self::NONE).
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) -> Vec<u32> {
        let (mut start, mut end_kept, mut kept) = (0, 0, 0);
        let mut new_ids = Vec::with_capacity(self.len());
        for id in 0..self.len() {
            let end = self.ends[id];
            if keep(id as u32) {
                self.bytes.copy_within(start..end, end_kept);
                end_kept += end - start;
                self.ends[kept] = end_kept;
                new_ids.push(kept as u32);
                kept += 1;
            } else {
                new_ids.push(Self::NONE);
            }
            start = end;
        }
        self.bytes.truncate(end_kept);
        self.ends.truncate(kept);
        if kept < new_ids.len() {
            self.table.retain(|slot| {
                slot.id = new_ids[slot.id as usize];
                slot.id != Self::NONE
            });
        }
        new_ids
    }

    /// Gives back memory that was taken in advance.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.table.shrink_to_fit(|slot| Slot::wide(slot.hash));
    }

    /// The names, joined by line ends, for a model file. No name may contain a line end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.bytes.len() + self.len());
        for name in self.iter() {
            debug_assert!(!name.contains(&b'\n'), "names have no line ends");
            text.extend_from_slice(name);
            text.push(b'\n');
        }
        text.pop();
        text
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `count` is the number of names.
    pub fn from_bytes(text: &[u8], count: usize) -> Result<Self> {
        let found = if count == 0 && text.is_empty() { 0 } else { memchr::memchr_iter(b'\n', text).count() + 1 };
        if found != count {
            return Err(Error::model(format!("{found} feature names where {count} are expected: the file is damaged")));
        }
        let mut names = Self::new();
        if count == 0 {
            return Ok(names);
        }
        names.bytes.reserve_exact(text.len() + 1 - count);
        names.ends.reserve_exact(count);
        names.table.reserve(count, |slot| Slot::wide(slot.hash));
        for (at, name) in text.split(|&b| b == b'\n').enumerate() {
            if names.intern(name) != u32::try_from(at).ok() {
                let name = String::from_utf8_lossy(&name[..name.len().min(80)]).escape_debug().to_string();
                return Err(Error::model(format!("feature name '{name}' appears twice: the file is damaged")));
            }
        }
        Ok(names)
    }
}

#[inline]
fn name_in<'b>(bytes: &'b [u8], ends: &[usize], id: u32) -> &'b [u8] {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &bytes[start..ends[id]]
}

/// A fast hash of short byte strings, always the same: products of 64-bit words, folded (as wyhash does). Nothing
/// depends on it but the time that a look-up takes.
#[inline]
fn hash(bytes: &[u8]) -> u32 {
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
    (mixed ^ mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn of(names: &[&str]) -> Dictionary {
        let mut dictionary = Dictionary::new();
        for name in names {
            dictionary.intern(name.as_bytes()).unwrap();
        }
        dictionary
    }

    #[test]
    fn names_are_numbered_as_they_appear() {
        let dictionary = of(&["b", "", "a", "b", "long enough for two words", "a"]);
        assert_eq!(dictionary.len(), 4);
        assert_eq!(dictionary.iter().collect::<Vec<_>>(), [b"b".as_slice(), b"", b"a", b"long enough for two words"]);
        assert_eq!((dictionary.get(b"a"), dictionary.get(b""), dictionary.get(b"c")), (Some(2), Some(1), None));
        assert_eq!(dictionary.name(3), b"long enough for two words");
        assert!(Dictionary::new().is_empty() && Dictionary::new().get(b"").is_none());
    }

    #[test]
    fn some_are_kept() {
        let mut dictionary = of(&["one", "two", "three", "four"]);
        assert_eq!(dictionary.retain(|id| id % 2 == 1), [u32::MAX, 0, u32::MAX, 1]);
        assert_eq!(dictionary, of(&["two", "four"]));
        assert_eq!((dictionary.get(b"four"), dictionary.get(b"one")), (Some(1), None));
        assert_eq!(dictionary.intern(b"one"), Some(2));
        assert_eq!(dictionary.retain(|_| true), [0, 1, 2]);
        assert_eq!(dictionary.retain(|_| false), [u32::MAX; 3]);
        assert_eq!(dictionary, Dictionary::new());
    }

    #[test]
    fn names_go_through_a_file() {
        for names in [&[][..], &[""], &["a"], &["a", "", "b"], &["", "a"]] {
            let dictionary = of(names);
            assert_eq!(Dictionary::from_bytes(&dictionary.to_bytes(), names.len()).unwrap(), dictionary);
        }
        let message = |text: &[u8], count| Dictionary::from_bytes(text, count).unwrap_err().to_string();
        assert_eq!(message(b"a\nb", 3), "2 feature names where 3 are expected: the file is damaged");
        assert_eq!(message(b"a", 0), "1 feature names where 0 are expected: the file is damaged");
        assert_eq!(
            message(b"", usize::MAX),
            format!("1 feature names where {} are expected: the file is damaged", usize::MAX)
        );
        assert_eq!(message(b"a\xff\nb\na\xff", 3), "feature name 'a\u{fffd}' appears twice: the file is damaged");
    }

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

    proptest! {
        #[test]
        fn any_bytes_survive(text in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..60), more in 0_usize..3) {
            let count = memchr::memchr_iter(b'\n', &text).count() + more;
            if let Ok(names) = Dictionary::from_bytes(&text, count) {
                prop_assert_eq!(names.len(), count);
                prop_assert_eq!(names.to_bytes(), text);
                for (id, name) in (0..).zip(names.iter()) {
                    prop_assert_eq!(names.get(name), Some(id));
                }
            }
        }

        #[test]
        fn it_does_what_a_list_does(words in proptest::collection::vec("[ab]{0,12}", 0..200)) {
            let mut list: Vec<&str> = Vec::new();
            let mut dictionary = Dictionary::new();
            for word in &words {
                let id = list.iter().position(|w| w == word).unwrap_or_else(|| {
                    list.push(word);
                    list.len() - 1
                });
                prop_assert_eq!(dictionary.intern(word.as_bytes()), Some(id as u32));
            }
            prop_assert!(dictionary.iter().eq(list.iter().map(|w| w.as_bytes())));
        }
    }
}
