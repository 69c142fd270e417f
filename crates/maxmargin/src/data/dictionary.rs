//! Byte strings and their numbers.

mod table;
mod together;

use std::collections::VecDeque;

use crate::error::{Error, Result};
use crate::memory::room;
use table::{Place, Table, hash};

pub use together::Together;

/// Names of features, numbered from 0 in the order of their first appearance.
///
/// A vocabulary is larger than the caches, so that a look-up is a matter of waiting for memory. The table leads straight to
/// a record with the number and the bytes of a name, two waits, and names that are looked up [`Together`] wait side by side.
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    records: Records,
    table: Table,
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Self) -> bool {
        self.records == other.records
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
        self.records.starts.len()
    }

    /// No names?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a name.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<u32> {
        self.find(hash(name), name).ok()
    }

    /// The number of a name, or the place in the table where it belongs.
    #[inline]
    fn find(&self, hash: u64, name: &[u8]) -> std::result::Result<u32, Place> {
        let mut place = self.table.first(hash);
        while let Some(start) = self.table.next(hash, &mut place) {
            if let Some(id) = self.records.is_name(start, name) {
                return Ok(id);
            }
        }
        Err(place)
    }

    /// The number of a name, a new one if need be; `None` when there are no numbers left (2^32 - 1 names
    /// or a terabyte of them).
    #[inline]
    pub fn intern(&mut self, name: &[u8]) -> Option<u32> {
        self.intern_hashed(hash(name), name)
    }

    #[inline]
    fn intern_hashed(&mut self, hash: u64, name: &[u8]) -> Option<u32> {
        match self.find(hash, name) {
            Ok(id) => Some(id),
            Err(place) => self.insert(hash, place, name),
        }
    }

    /// As [`intern`](Self::intern), many names one after the other; `None` as soon as one has no number.
    pub fn intern_all<'n>(&mut self, names: impl IntoIterator<Item = &'n [u8]>) -> Option<Vec<u32>> {
        /// So many names are hashed before they are looked up.
        const AHEAD: usize = 16;
        let (mut names, mut ahead) = (names.into_iter(), VecDeque::with_capacity(AHEAD + 1));
        let mut ids = Vec::with_capacity(names.size_hint().0);
        loop {
            let name = names.next();
            ahead.extend(name.map(|name| (hash(name), name)).inspect(|(hash, _)| self.table.prefetch(*hash)));
            if name.is_none() || ahead.len() > AHEAD {
                let Some((hash, name)) = ahead.pop_front() else { return Some(ids) };
                ids.push(self.intern_hashed(hash, name)?);
            }
        }
    }

    fn insert(&mut self, hash: u64, mut place: Place, name: &[u8]) -> Option<u32> {
        let id = u32::try_from(self.len()).ok().filter(|&id| id != Self::NONE)?;
        if !Table::can_hold(self.records.bytes.len()) {
            return None;
        }
        if !self.table.has_room_for(self.len() + 1) {
            self.rebuild(2 * (self.len() + 1));
            place = self.table.free(hash);
        }
        let start = self.records.push(id, name);
        self.table.set(place, hash, start);
        Some(id)
    }

    /// The name with a number.
    ///
    /// # Panics
    /// If no name has it.
    #[inline]
    pub fn name(&self, id: u32) -> &[u8] {
        self.records.name(id as usize)
    }

    /// All names, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|id| self.records.name(id))
    }

    /// Keeps the names whose numbers `keep` likes, and gives them new numbers in the old order. Returns the new number
    /// of each old one, or [`NONE`](Self::NONE).
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) -> Vec<u32> {
        let mut count = 0;
        let new_ids: Vec<u32> = (0..self.len() as u32)
            .map(|id| {
                if !keep(id) {
                    return Self::NONE;
                }
                count += 1;
                count - 1
            })
            .collect();
        if (count as usize) < self.len() {
            let mut kept = Records::default();
            let names = self.iter().zip(&new_ids).filter(|(_, id)| **id != Self::NONE);
            for (name, &id) in names {
                kept.push(id, name);
            }
            self.records = kept;
            self.rebuild(self.len());
        }
        new_ids
    }

    /// Gives back memory that was taken in advance.
    pub fn shrink(&mut self) {
        self.records.bytes.shrink_to_fit();
        self.records.starts.shrink_to_fit();
        if self.table.is_wide_for(self.len()) {
            self.rebuild(self.len());
        }
    }

    /// Makes the table anew, for `count` names.
    fn rebuild(&mut self, count: usize) {
        self.table = Table::for_names(count);
        for (id, &start) in self.records.starts.iter().enumerate() {
            let hash = hash(self.records.name(id));
            self.table.set(self.table.free(hash), hash, start);
        }
    }

    /// The names, joined by line ends, for a model file. No name may contain a line end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.records.bytes.len());
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
        names.records.bytes = room(text.len() + 1 - count + count * HEADER);
        names.records.starts.reserve_exact(count);
        names.table = Table::for_names(count);
        let all = || text.split(|&b| b == b'\n');
        let ids = names.intern_all(all()).ok_or_else(|| Error::model("too many feature names"))?;
        match all().zip(&ids).zip(0..).find(|((_, id), at)| **id != *at) {
            None => Ok(names),
            Some(((name, _), _)) => {
                let name = String::from_utf8_lossy(&name[..name.len().min(80)]).escape_debug().to_string();
                Err(Error::model(format!("feature name '{name}' appears twice: the file is damaged")))
            }
        }
    }
}

/// The names, one after the other: number, length, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Records {
    bytes: Vec<u8>,
    /// Where the record of each number starts.
    starts: Vec<usize>,
}

/// Bytes before those of a name: four of its number, one of its length.
const HEADER: usize = 5;
/// The length of all names that are as long or longer.
const LONG: usize = 255;

impl Records {
    /// Appends a record; returns its start.
    fn push(&mut self, id: u32, name: &[u8]) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&id.to_le_bytes());
        self.bytes.push(name.len().min(LONG) as u8);
        self.bytes.extend_from_slice(name);
        self.starts.push(start);
        start
    }

    #[inline]
    fn name(&self, id: usize) -> &[u8] {
        let end = self.starts.get(id + 1).copied().unwrap_or(self.bytes.len());
        &self.bytes[self.starts[id] + HEADER..end]
    }

    /// The number of the record that starts at `start`, if it is of this name.
    #[inline]
    fn is_name(&self, start: usize, name: &[u8]) -> Option<u32> {
        let (header, rest) = self.bytes[start..].split_first_chunk::<HEADER>()?;
        let &[a, b, c, d, length] = header;
        let id = u32::from_le_bytes([a, b, c, d]);
        let same = match usize::from(length) {
            LONG => self.name(id as usize) == name,
            length => length == name.len() && rest.get(..length).is_some_and(|bytes| same(bytes, name)),
        };
        same.then_some(id)
    }
}

/// Are two byte strings of one length the same? Most names are short: no call is worth its while.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    match (a.first_chunk::<8>(), a.last_chunk::<8>(), b.first_chunk::<8>(), b.last_chunk::<8>()) {
        (Some(a0), Some(a1), Some(b0), Some(b1)) if a.len() <= 16 => a0 == b0 && a1 == b1,
        (None, ..) => match (a.first_chunk::<4>(), a.last_chunk::<4>(), b.first_chunk::<4>(), b.last_chunk::<4>()) {
            (Some(a0), Some(a1), Some(b0), Some(b1)) => a0 == b0 && a1 == b1,
            _ => a.iter().eq(b),
        },
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
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
