//! Many names, looked up side by side.

use super::Dictionary;
use super::table::hash;
use crate::memory::prefetch;

/// Names that are looked up together, each with a note of the asker's. Between two steps of one look-up the others take
/// theirs, so that memory has time to answer.
#[derive(Debug)]
pub struct Together<T> {
    /// The names, one after the other.
    text: Vec<u8>,
    asked: Vec<Asked<T>>,
    /// The record that may be the one of each.
    starts: Vec<Option<usize>>,
}

#[derive(Debug, Clone, Copy)]
struct Asked<T> {
    hash: u64,
    /// The end of the name; it starts where the one before ends.
    end: usize,
    note: T,
}

impl<T> Default for Together<T> {
    fn default() -> Self {
        Self { text: Vec::new(), asked: Vec::new(), starts: Vec::new() }
    }
}

impl<T: Copy> Together<T> {
    /// Asks for a name of `names`.
    #[inline]
    pub fn ask(&mut self, names: &Dictionary, name: &[u8], note: T) {
        let hash = hash(name);
        names.table.prefetch(hash);
        self.text.extend_from_slice(name);
        self.asked.push(Asked { hash, end: self.text.len(), note });
    }

    /// Tells `answer` the number of each name, in the order in which they were asked for, and forgets them.
    pub fn answer(&mut self, names: &Dictionary, mut answer: impl FnMut(Option<u32>, T)) {
        let Self { text, asked, starts } = self;
        starts.extend(asked.iter().map(|asked| {
            let start = names.table.next(asked.hash, &mut names.table.first(asked.hash));
            start.inspect(|&start| prefetch(&names.records.bytes[start]))
        }));
        let mut begin = 0;
        for (&Asked { hash, end, note }, start) in asked.iter().zip(starts.drain(..)) {
            let name = &text[begin..end];
            // Hardly ever is the first record that may be the one not the one.
            let id = start.and_then(|start| names.records.is_name(start, name).or_else(|| names.find(hash, name).ok()));
            answer(id, note);
            begin = end;
        }
        text.clear();
        asked.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn together_as_one_by_one(
            known in proptest::collection::vec("[ab]{0,20}|c{250,260}", 0..60),
            asked in proptest::collection::vec("[ab]{0,20}|c{250,260}", 0..60),
        ) {
            let mut names = Dictionary::new();
            for name in &known {
                prop_assert!(names.intern(name.as_bytes()).is_some());
            }
            let mut together = Together::default();
            for _ in 0..2 {
                asked.iter().enumerate().for_each(|(at, name)| together.ask(&names, name.as_bytes(), at));
                let mut answers = Vec::new();
                together.answer(&names, |id, at| answers.push((at, id)));
                let expected: Vec<_> = asked.iter().map(|name| names.get(name.as_bytes())).enumerate().collect();
                prop_assert_eq!(answers, expected);
            }
        }
    }
}
