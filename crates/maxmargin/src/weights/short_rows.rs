//! Rows of weights of which few are in use: a model of thousands of labels and millions of features, where each feature has
//! been met with a few labels only.
//!
//! A row is a short list of slots, ascending, with their weights. Lists of all rows stand in one piece of memory, each with
//! room for a power of two of entries; one that outgrows its place moves to a larger one, and the place is used again. A row
//! of which a good part is in use has a weight for every slot.

use serde::{Deserialize, Serialize, Serializer};

use crate::features::Block;
use crate::memory::prefetch;
use crate::sparse::SparseView;

/// The weights of a block whose rows are kept as far as they are in use.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct ShortRows {
    block: Block,
    rows: Vec<Row>,
    slots: Vec<u32>,
    values: Vec<f64>,
    /// Rows that have all slots.
    full: Vec<Box<[f64]>>,
    /// By the logarithm of their room: places that rows have left.
    free: Vec<Vec<u64>>,
}

/// Where a row stands.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// In `slots` and `values`; of a full row, its number in `full`.
    start: u64,
    len: u32,
    room: Room,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// For so many entries, as the power of two.
    Short(u8),
    Full,
}

/// A row with nothing in it, and no place.
const UNUSED: Row = Row { start: 0, len: 0, room: Room::Short(0) };

/// A row is made full when one weight in so many is in use: a list of more takes more time to add, and as much memory.
const FULL_AT: u32 = 4;

/// The weights of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowView<'a> {
    /// Of these slots, ascending.
    Short(&'a [u32], &'a [f64]),
    /// Of all slots.
    Full(&'a [f64]),
}

impl RowView<'_> {
    /// Slots and weights, slots ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let (slots, values) = match *self {
            RowView::Short(slots, values) => (Some(slots), values),
            RowView::Full(values) => (None, values),
        };
        (0..).zip(values).map(move |(at, &value)| (slots.map_or(at, |slots| slots[at as usize]), value))
    }
}

impl ShortRows {
    /// All weights zero, none in use.
    pub fn new(block: Block) -> Self {
        let (slots, values, full, free) = Default::default();
        Self { block, rows: vec![UNUSED; block.rows as usize], slots, values, full, free }
    }

    /// Where the rows stand in w.
    pub fn block(&self) -> Block {
        self.block
    }

    /// The row of a feature.
    #[inline]
    pub fn row(&self, feature: u32) -> RowView<'_> {
        let Row { start, len, room } = self.rows[feature as usize];
        if room == Room::Full {
            return RowView::Full(&self.full[start as usize]);
        }
        let range = start as usize..start as usize + len as usize;
        RowView::Short(&self.slots[range.clone()], &self.values[range])
    }

    /// One weight.
    #[inline]
    pub fn get(&self, feature: u32, slot: u32) -> f64 {
        match self.row(feature) {
            RowView::Full(values) => values[slot as usize],
            RowView::Short(slots, values) => slots.binary_search(&slot).map_or(0.0, |at| values[at]),
        }
    }

    /// One weight, to be changed: from now on it is in use.
    #[inline]
    pub fn get_mut(&mut self, feature: u32, slot: u32) -> &mut f64 {
        let Row { start, len, room } = self.rows[feature as usize];
        if room == Room::Full {
            return &mut self.full[start as usize][slot as usize];
        }
        let start = start as usize;
        match self.slots[start..start + len as usize].binary_search(&slot) {
            Ok(at) => &mut self.values[start + at],
            Err(at) => self.insert(feature, at, slot),
        }
    }

    fn insert(&mut self, feature: u32, at: usize, slot: u32) -> &mut f64 {
        let Row { len, .. } = self.rows[feature as usize];
        if u64::from(FULL_AT) * u64::from(len + 1) > u64::from(self.block.width) {
            return &mut self.fill(feature)[slot as usize];
        }
        self.make_room(feature);
        let row = &mut self.rows[feature as usize];
        row.len += 1;
        let start = row.start as usize;
        let (at, end) = (start + at, start + len as usize);
        self.slots.copy_within(at..end, at + 1);
        self.values.copy_within(at..end, at + 1);
        self.slots[at] = slot;
        self.values[at] = 0.0;
        &mut self.values[at]
    }

    /// Gives a row all slots.
    fn fill(&mut self, feature: u32) -> &mut [f64] {
        let mut values = vec![0.0; self.block.width as usize].into_boxed_slice();
        self.row(feature).iter().for_each(|(slot, value)| values[slot as usize] = value);
        self.leave(feature);
        let start = self.full.len() as u64;
        self.rows[feature as usize] = Row { start, len: self.block.width, room: Room::Full };
        self.full.push(values);
        &mut self.full[start as usize]
    }

    /// Lets another row have the place of this one.
    fn leave(&mut self, feature: u32) {
        if let Row { start, room: Room::Short(room @ 1..), .. } = self.rows[feature as usize] {
            self.free.resize(self.free.len().max(usize::from(room) + 1), Vec::new());
            self.free[usize::from(room)].push(start);
        }
    }

    /// Moves a row that has no room for one more.
    fn make_room(&mut self, feature: u32) {
        let Row { start, len, room: Room::Short(room) } = self.rows[feature as usize] else { return };
        if room > 0 && len < 1 << room {
            return;
        }
        let room = room + 1;
        let place = self.free.get_mut(usize::from(room)).and_then(Vec::pop).unwrap_or_else(|| self.append(1 << room));
        let range = start as usize..start as usize + len as usize;
        self.slots.copy_within(range.clone(), place as usize);
        self.values.copy_within(range, place as usize);
        self.leave(feature);
        self.rows[feature as usize] = Row { start: place, len, room: Room::Short(room) };
    }

    /// More places at the end.
    fn append(&mut self, count: usize) -> u64 {
        let place = self.slots.len();
        if self.slots.capacity() < place + count {
            // By a quarter, not to twice as much: there may be gigabytes of them.
            let more = count.max(place / 4);
            self.slots.reserve_exact(more);
            self.values.reserve_exact(more);
        }
        self.slots.resize(place + count, 0);
        self.values.resize(place + count, 0.0);
        place as u64
    }

    /// `<w, phi in slot k>` for all slots k, added to `scores`.
    #[inline]
    pub fn add_scores(&self, phi: SparseView<'_>, scores: &mut [f64]) {
        self.ask_for(phi);
        for (j, x) in phi.iter() {
            let x = f64::from(x);
            match self.row(j) {
                RowView::Full(values) => scores.iter_mut().zip(values).for_each(|(sum, w)| *sum += x * w),
                RowView::Short(slots, values) => {
                    slots.iter().zip(values).for_each(|(&slot, w)| scores[slot as usize] += x * w);
                }
            }
        }
    }

    /// Asks for what will be read soon.
    #[inline]
    pub fn ask_for(&self, phi: SparseView<'_>) {
        for &j in phi.indices() {
            let Row { start, room, .. } = self.rows[j as usize];
            if let Room::Short(1..) = room {
                prefetch(&self.slots[start as usize]);
                prefetch(&self.values[start as usize]);
            }
        }
    }

    /// All weights that are in use.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.block.rows).flat_map(|j| {
            let (RowView::Short(_, values) | RowView::Full(values)) = self.row(j);
            values.iter().copied()
        })
    }

    /// Multiplies all.
    pub fn scale(&mut self, factor: f64) {
        self.values.iter_mut().chain(self.full.iter_mut().flatten()).for_each(|w| *w *= factor);
    }

    /// Are the same weights in use here?
    pub fn is_like(&self, other: &Self) -> bool {
        self.block == other.block
            && (0..self.block.rows).all(|j| match (self.row(j), other.row(j)) {
                (RowView::Short(ours, _), RowView::Short(theirs, _)) => ours == theirs,
                (RowView::Full(_), RowView::Full(_)) => true,
                _ => false,
            })
    }

    /// Makes each weight a function of itself and of the same weight of `other`, which has the same in use.
    pub fn combine(&mut self, other: &Self, with: impl Fn(f64, f64) -> f64) {
        debug_assert!(self.is_like(other), "the same weights are in use");
        for j in 0..self.block.rows {
            let Row { start, len, room } = self.rows[j as usize];
            let start = start as usize;
            let own =
                if room == Room::Full { &mut self.full[start] } else { &mut self.values[start..start + len as usize] };
            let (RowView::Short(_, theirs) | RowView::Full(theirs)) = other.row(j);
            own.iter_mut().zip(theirs).for_each(|(own, &other)| *own = with(*own, other));
        }
    }
}

impl PartialEq for ShortRows {
    fn eq(&self, other: &Self) -> bool {
        self.block == other.block && (0..self.block.rows).all(|j| self.row(j) == other.row(j))
    }
}

/// As they are saved: row after row.
#[derive(Serialize, Deserialize)]
struct Written {
    base: u64,
    width: u32,
    /// Of each row the number of weights in use; None: all.
    lens: Vec<Option<u32>>,
    /// Of rows that have not all.
    slots: Vec<u32>,
    values: Vec<f64>,
}

impl From<&ShortRows> for Written {
    fn from(rows: &ShortRows) -> Self {
        let Block { base, width, .. } = rows.block;
        let mut written = Self { base, width, lens: Vec::new(), slots: Vec::new(), values: Vec::new() };
        for j in 0..rows.block.rows {
            written.lens.push(match rows.row(j) {
                RowView::Full(_) => None,
                RowView::Short(slots, _) => {
                    written.slots.extend(slots);
                    Some(slots.len() as u32)
                }
            });
            let (RowView::Short(_, values) | RowView::Full(values)) = rows.row(j);
            written.values.extend(values);
        }
        written
    }
}

impl Serialize for ShortRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written::from(self).serialize(serializer)
    }
}

impl TryFrom<Written> for ShortRows {
    type Error = &'static str;

    /// Takes no more memory than a few times what was read.
    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { base, width, lens, slots, values } = written;
        let rows = u32::try_from(lens.len()).map_err(|_| "too many rows")?;
        let mut own = Self::new(Block { base, rows, width });
        let (mut slots, mut values) = (slots.as_slice(), values.as_slice());
        for (j, len) in (0..).zip(lens) {
            let count = len.unwrap_or(width) as usize;
            let weights = values.split_off(..count).ok_or("too few weights")?;
            if len.is_none() {
                own.fill(j).copy_from_slice(weights);
                continue;
            }
            let places = slots.split_off(..count).ok_or("too few slots")?;
            if !places.is_sorted_by(|a, b| a < b) || places.last().is_some_and(|&last| last >= width) {
                return Err("slots do not ascend");
            }
            if u64::from(FULL_AT) * count as u64 > u64::from(width) {
                return Err("a row is too long");
            }
            places.iter().zip(weights).for_each(|(&slot, &weight)| *own.get_mut(j, slot) = weight);
        }
        if slots.is_empty() && values.is_empty() { Ok(own) } else { Err("weights of no row") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Random changes, and the same to a table.
    fn changed(random: &mut Random, (rows, width): (u32, u32), steps: usize) -> (ShortRows, Vec<f64>) {
        let block = Block { base: 5, rows, width };
        let (mut short, mut table) = (ShortRows::new(block), vec![0.0; (rows * width) as usize]);
        for _ in 0..steps {
            // Early rows fill up, late ones stay short.
            let j = (f64::from(rows) * random.unit() * random.unit()) as u32;
            let (slot, change) = (random.below(width as usize) as u32, random.unit() - 0.5);
            *short.get_mut(j, slot) += change;
            table[(j * width + slot) as usize] += change;
        }
        (short, table)
    }

    #[test]
    fn rows_hold_what_a_table_holds() {
        let mut random = Random::new(3);
        for shape in [(1, 1), (3, 2), (7, 9), (40, 50), (11, 300)] {
            for steps in [0, 1, 30, 3000] {
                let (short, table) = changed(&mut random, shape, steps);
                let (rows, width) = shape;
                for (at, &value) in (0..).zip(&table) {
                    assert_eq!(short.get(at / width, at % width), value);
                }
                assert_eq!(short.values().filter(|&w| w != 0.0).count(), table.iter().filter(|w| **w != 0.0).count());
                let indices: Vec<u32> = (0..rows).step_by(2).collect();
                let values: Vec<f32> = indices.iter().map(|&j| 0.5 + j as f32).collect();
                let mut scores = vec![1.0; width as usize];
                short.add_scores(SparseView::new(&indices, &values), &mut scores);
                for (slot, score) in (0..width).zip(scores) {
                    let weight = |j: u32| f64::from(0.5 + j as f32) * table[(j * width + slot) as usize];
                    assert_eq!(score, indices.iter().fold(1.0, |sum, &j| sum + weight(j)));
                }
                for j in 0..rows {
                    let row = short.row(j);
                    assert!(row.iter().map(|entry| entry.0).is_sorted_by(|a, b| a < b));
                    assert!(row.iter().all(|(slot, value)| table[(j * width + slot) as usize] == value));
                }
            }
        }
    }

    #[test]
    fn places_are_used_again() {
        let (short, _) = changed(&mut Random::new(9), (200, 1000), 40_000);
        let used: usize = (0..200).map(|j| usize::from(matches!(short.row(j), RowView::Short(..)))).sum();
        assert!(used > 0 && short.full.len() + used == 200);
        let free: usize = short.free.iter().enumerate().map(|(room, places)| places.len() << room).sum();
        let taken: usize =
            short.rows.iter().map(|row| if let Room::Short(room @ 1..) = row.room { 1 << room } else { 0 }).sum();
        assert_eq!(free + taken, short.slots.len());
    }

    #[test]
    fn what_is_saved_comes_back_and_what_is_damaged_does_not() {
        let mut random = Random::new(4);
        for shape in [(1, 1), (7, 9), (40, 50), (11, 300)] {
            let (short, _) = changed(&mut random, shape, 500);
            let bytes = postcard::to_allocvec(&short).unwrap();
            let again: ShortRows = postcard::from_bytes(&bytes).unwrap();
            assert_eq!(again, short);
            assert!(again.is_like(&short));
            for cut in 0..bytes.len().min(50) {
                assert!(postcard::from_bytes::<ShortRows>(&bytes[..cut]).is_err());
            }
            for _ in 0..300 {
                let mut damaged = bytes.clone();
                damaged[random.below(bytes.len())] = random.below(256) as u8;
                if let Ok(rows) = postcard::from_bytes::<ShortRows>(&damaged) {
                    let width = rows.block.width;
                    (0..rows.block.rows).for_each(|j| assert!(rows.row(j).iter().all(|(slot, _)| slot < width)));
                }
            }
        }
    }
}
