//! Rows of the Gram matrix that were computed: as many as there is room for, the least recently used leaving first.

use std::sync::Arc;

/// No slot.
const NONE: u32 = u32::MAX;

/// Rows by number, in the order of their last use.
#[derive(Debug)]
pub(super) struct Cache<R> {
    /// Most rows.
    capacity: usize,
    /// Numbers in a row.
    width: usize,
    /// Rows that are being computed: there is room for them.
    promised: usize,
    /// By number of a row: its slot.
    places: Vec<u32>,
    /// A list in both directions, so that a row leaves or comes to the front in a few steps.
    slots: Vec<Slot<R>>,
    newest: u32,
    oldest: u32,
}

#[derive(Debug)]
struct Slot<R> {
    number: u32,
    newer: u32,
    older: u32,
    row: Arc<Vec<R>>,
}

impl<R: Copy + Default> Cache<R> {
    /// For rows `0..width` of `width` numbers, of which at most `bytes` bytes are kept.
    pub(super) fn new(width: usize, bytes: usize) -> Self {
        let capacity = (bytes / (width * size_of::<R>()).max(1)).min(width);
        Self {
            capacity,
            width,
            promised: 0,
            places: vec![NONE; if capacity == 0 { 0 } else { width }],
            slots: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Bytes of the rows that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * self.width * size_of::<R>()
    }

    /// The row of this number, if it is kept; it becomes the newest.
    pub(super) fn get(&mut self, number: u32) -> Option<Arc<Vec<R>>> {
        let place = *self.places.get(number as usize).filter(|&&place| place != NONE)?;
        if place != self.newest {
            self.unlink(place);
            self.link(place);
        }
        Some(Arc::clone(&self.slots[place as usize].row))
    }

    /// Buffers for as many of `wanted` new rows as have room when the `kept` newest stay. Each is to come back by
    /// [`insert`](Self::insert).
    pub(super) fn room(&mut self, wanted: usize, kept: usize) -> Vec<Vec<R>> {
        let room = self.capacity.saturating_sub(kept + self.promised).min(wanted);
        self.promised += room;
        let buffer = |_| {
            let leaves = self.slots.len() + self.promised > self.capacity;
            // The memory of a row that nobody reads is used again: new memory would have to be mapped.
            let row = if leaves { self.evict().and_then(Arc::into_inner) } else { None };
            row.unwrap_or_else(|| vec![R::default(); self.width])
        };
        (0..room).map(buffer).collect()
    }

    /// Takes in a row whose buffer came from [`room`](Self::room). If another thread was faster, its row stays: they are equal.
    pub(super) fn insert(&mut self, number: u32, row: Vec<R>) {
        debug_assert!(self.promised > 0 && row.len() == self.width);
        self.promised -= 1;
        if self.places[number as usize] == NONE {
            let place = self.slots.len() as u32;
            self.slots.push(Slot { number, newer: NONE, older: NONE, row: Arc::new(row) });
            self.places[number as usize] = place;
            self.link(place);
        }
    }

    /// Lets the least recently used row go.
    fn evict(&mut self) -> Option<Arc<Vec<R>>> {
        let place = self.oldest;
        if place == NONE {
            return None;
        }
        self.unlink(place);
        let slot = self.slots.swap_remove(place as usize);
        self.places[slot.number as usize] = NONE;
        if let Some(moved) = self.slots.get(place as usize) {
            // The last slot came to this place: its neighbours are to know.
            let (number, newer, older) = (moved.number, moved.newer, moved.older);
            self.places[number as usize] = place;
            *self.older_end(newer) = place;
            *self.newer_end(older) = place;
        }
        Some(slot.row)
    }

    /// What says which slot is older than `place`: for no slot, that which says which is the newest.
    fn older_end(&mut self, place: u32) -> &mut u32 {
        if place == NONE { &mut self.newest } else { &mut self.slots[place as usize].older }
    }

    /// What says which slot is newer than `place`: for no slot, that which says which is the oldest.
    fn newer_end(&mut self, place: u32) -> &mut u32 {
        if place == NONE { &mut self.oldest } else { &mut self.slots[place as usize].newer }
    }

    /// Takes a slot out of the list.
    fn unlink(&mut self, place: u32) {
        let Slot { newer, older, .. } = self.slots[place as usize];
        *self.older_end(newer) = older;
        *self.newer_end(older) = newer;
    }

    /// Makes a slot the newest.
    fn link(&mut self, place: u32) {
        let older = self.newest;
        *self.newer_end(older) = place;
        self.newest = place;
        let slot = &mut self.slots[place as usize];
        (slot.newer, slot.older) = (NONE, older);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for a row as the Gram matrix does. Was it there?
    fn visit(cache: &mut Cache<f32>, number: u32) -> bool {
        if let Some(row) = cache.get(number) {
            assert!(row.iter().all(|&x| x == number as f32));
            return true;
        }
        for mut row in cache.room(1, 0) {
            row.fill(number as f32);
            cache.insert(number, row);
        }
        false
    }

    /// Against a list that is searched from end to end.
    #[test]
    fn the_least_recently_used_row_leaves() {
        const WIDTH: usize = 20;
        for capacity in [0, 1, 2, 7, 20] {
            let mut cache = Cache::new(WIDTH, capacity * WIDTH * 4 + 3);
            let mut recent: Vec<u32> = Vec::new();
            let mut state = 1_u64;
            for _ in 0..5000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let number = (state >> 33) as u32 % WIDTH as u32;
                let place = recent.iter().position(|&other| other == number);
                assert_eq!(visit(&mut cache, number), place.is_some());
                place.map(|place| recent.remove(place));
                recent.insert(0, number);
                recent.truncate(capacity);
                assert_eq!(cache.bytes(), recent.len() * WIDTH * 4);
            }
        }
    }

    #[test]
    fn rows_in_use_stay() {
        let mut cache: Cache<f32> = Cache::new(10, 3 * 40);
        for number in 0..3 {
            assert!(!visit(&mut cache, number));
        }
        assert!(visit(&mut cache, 0) && visit(&mut cache, 1));
        // Room for one beside the two newest; what is promised is not given twice.
        let mut rooms = cache.room(5, 2);
        assert_eq!(rooms.len(), 1);
        assert!(cache.room(1, 2).is_empty());
        cache.insert(7, rooms.pop().unwrap());
        assert!(cache.get(0).is_some() && cache.get(1).is_some() && cache.get(2).is_none() && cache.get(7).is_some());
    }
}
