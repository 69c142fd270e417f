//! Maximum flows, hence minimum cuts (Boykov, Kolmogorov 2004): two trees of open arcs, one from the source and one into
//! the sink, grow until they meet, the way through is filled, and what has lost its parent looks for another one.
//!
//! ```text
//! max  sum_i gain_i z_i - sum_ij capacity_ij |z_i - z_j|,   z in {0, 1}
//! ```
//!
//! A gain above zero is an arc from the source, one below zero an arc into the sink; z_i = 1 is the source's side.

use std::collections::VecDeque;

/// Parents that are no arcs: none, the source or the sink, and lost.
const NONE: u32 = u32::MAX;
const TERMINAL: u32 = u32::MAX - 1;
const ORPHAN: u32 = u32::MAX - 2;

/// An arc is full when less than this part of the largest capacity is left: some roundings.
const TOLERANCE: f64 = 1e-14;

/// A network, and the room to work in.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// What is left of the arc from the source, or minus that of the arc into the sink.
    gain: Vec<f64>,
    edges: Vec<(u32, u32, f64)>,
    /// The arcs of each node stand side by side; an edge is two arcs, twins.
    begin: Vec<u32>,
    head: Vec<u32>,
    twin: Vec<u32>,
    left: Vec<f64>,
    /// The arc from a node to its parent.
    parent: Vec<u32>,
    is_sink: Vec<bool>,
    /// The distance from the root, and the time at which it was right.
    distance: Vec<u32>,
    stamp: Vec<u32>,
    time: u32,
    active: VecDeque<u32>,
    is_active: Vec<bool>,
    orphans: VecDeque<u32>,
    fill: Vec<u32>,
    tolerance: f64,
}

impl Flow {
    /// An empty network.
    pub(super) fn clear(&mut self) {
        self.gain.clear();
        self.edges.clear();
    }

    /// Adds a node.
    pub(super) fn node(&mut self, gain: f64) -> u32 {
        self.gain.push(gain);
        self.gain.len() as u32 - 1
    }

    /// Adds an edge, open both ways.
    pub(super) fn edge(&mut self, i: u32, j: u32, capacity: f64) {
        self.edges.push((i, j, capacity));
    }

    /// Is z_i = 1 in the minimum cut with the fewest ones? After [`run`](Self::run).
    pub(super) fn is_one(&self, i: u32) -> bool {
        self.parent[i as usize] != NONE && !self.is_sink[i as usize]
    }

    /// Finds a maximum flow.
    pub(super) fn run(&mut self) {
        self.prepare();
        let mut current = None;
        while let Some(i) = current.take().or_else(|| self.next_active()) {
            if self.parent[i as usize] == NONE {
                continue;
            }
            let meeting = self.grow(i);
            self.time += 1;
            if let Some(arc) = meeting {
                self.augment(arc);
                while let Some(orphan) = self.orphans.pop_front() {
                    self.adopt(orphan as usize);
                }
                current = Some(i);
            }
        }
    }

    fn prepare(&mut self) {
        let n = self.gain.len();
        let fill = &mut self.fill;
        fill.clear();
        fill.resize(n + 1, 0);
        for &(i, j, _) in &self.edges {
            fill[i as usize + 1] += 1;
            fill[j as usize + 1] += 1;
        }
        (0..n).for_each(|i| fill[i + 1] += fill[i]);
        self.begin.clone_from(fill);
        let arcs = 2 * self.edges.len();
        self.head.resize(arcs, 0);
        self.twin.resize(arcs, 0);
        self.left.resize(arcs, 0.0);
        for &(i, j, capacity) in &self.edges {
            let (a, b) = (fill[i as usize], fill[j as usize]);
            fill[i as usize] += 1;
            fill[j as usize] += 1;
            for (arc, twin, head) in [(a, b, j), (b, a, i)] {
                self.head[arc as usize] = head;
                self.twin[arc as usize] = twin;
                self.left[arc as usize] = capacity;
            }
        }
        let largest = self.gain.iter().map(|gain| gain.abs()).chain(self.left[..arcs].iter().copied());
        self.tolerance = TOLERANCE * largest.fold(0.0, f64::max);
        self.parent.clear();
        self.parent.resize(n, NONE);
        self.is_sink.resize(n, false);
        self.distance.clear();
        self.distance.resize(n, 1);
        self.stamp.clear();
        self.stamp.resize(n, 0);
        self.time = 1;
        self.is_active.clear();
        self.is_active.resize(n, false);
        // As many as there can be, so that room is taken here only.
        self.active.reserve(n);
        self.orphans.reserve(n);
        for i in 0..n {
            if self.gain[i].abs() > self.tolerance {
                self.is_sink[i] = self.gain[i] < 0.0;
                self.parent[i] = TERMINAL;
                self.activate(i as u32);
            }
        }
    }

    fn activate(&mut self, i: u32) {
        if !self.is_active[i as usize] {
            self.is_active[i as usize] = true;
            self.active.push_back(i);
        }
    }

    fn next_active(&mut self) -> Option<u32> {
        let i = self.active.pop_front()?;
        self.is_active[i as usize] = false;
        Some(i)
    }

    fn arcs(&self, i: usize) -> std::ops::Range<usize> {
        self.begin[i] as usize..self.begin[i + 1] as usize
    }

    /// Is arc a, or with `is_back` its twin, open?
    fn is_open(&self, a: usize, is_back: bool) -> bool {
        self.left[if is_back { self.twin[a] as usize } else { a }] > 0.0
    }

    /// Lets the tree of node i take in its neighbours; returns an arc from the source's tree to that of the sink, if there
    /// is one here.
    fn grow(&mut self, i: u32) -> Option<usize> {
        let i = i as usize;
        let is_sink = self.is_sink[i];
        for a in self.arcs(i) {
            if !self.is_open(a, is_sink) {
                continue;
            }
            let j = self.head[a] as usize;
            let is_free = self.parent[j] == NONE;
            if !is_free && self.is_sink[j] != is_sink {
                return Some(if is_sink { self.twin[a] as usize } else { a });
            }
            // A neighbour of the same tree comes here if that is the shorter way, as far as one knows.
            if is_free || (self.stamp[j] <= self.stamp[i] && self.distance[j] > self.distance[i]) {
                self.is_sink[j] = is_sink;
                self.parent[j] = self.twin[a];
                self.stamp[j] = self.stamp[i];
                self.distance[j] = self.distance[i] + 1;
                if is_free {
                    self.activate(j as u32);
                }
            }
        }
        None
    }

    /// Fills the way through `middle`, an arc from the source's tree to that of the sink.
    fn augment(&mut self, middle: usize) {
        let ends = [(self.head[self.twin[middle] as usize] as usize, false), (self.head[middle] as usize, true)];
        let mut amount = self.left[middle];
        for (mut i, is_sink) in ends {
            while self.parent[i] != TERMINAL {
                let a = self.parent[i] as usize;
                amount = amount.min(self.left[if is_sink { a } else { self.twin[a] as usize }]);
                i = self.head[a] as usize;
            }
            amount = amount.min(self.gain[i].abs());
        }
        self.push(middle, amount);
        for (mut i, is_sink) in ends {
            while self.parent[i] != TERMINAL {
                let a = self.parent[i] as usize;
                if self.push(if is_sink { a } else { self.twin[a] as usize }, amount) {
                    self.lose(i);
                }
                i = self.head[a] as usize;
            }
            self.gain[i] -= if is_sink { -amount } else { amount };
            if self.gain[i].abs() <= self.tolerance {
                self.gain[i] = 0.0;
                self.lose(i);
            }
        }
    }

    /// Flow through an arc; is it full then?
    fn push(&mut self, a: usize, amount: f64) -> bool {
        self.left[self.twin[a] as usize] += amount;
        self.left[a] -= amount;
        let is_full = self.left[a] <= self.tolerance;
        if is_full {
            self.left[a] = 0.0;
        }
        is_full
    }

    /// The arc to its parent is full. Orphans near the root come first: the others hang on them.
    fn lose(&mut self, i: usize) {
        self.parent[i] = ORPHAN;
        self.orphans.push_front(i as u32);
    }

    /// Looks for another parent, the nearest to the root; without one the node leaves its tree and orphans its children.
    fn adopt(&mut self, i: usize) {
        let is_sink = self.is_sink[i];
        let mut best = (u32::MAX, NONE);
        for a in self.arcs(i) {
            let j = self.head[a] as usize;
            if !self.is_open(a, !is_sink) || self.is_sink[j] != is_sink || self.parent[j] == NONE {
                continue;
            }
            if let Some(distance) = self.distance_of(j)
                && distance < best.0
            {
                best = (distance, a as u32);
            }
        }
        self.parent[i] = best.1;
        if best.1 != NONE {
            self.stamp[i] = self.time;
            self.distance[i] = best.0 + 1;
            return;
        }
        for a in self.arcs(i) {
            let j = self.head[a] as usize;
            let parent = self.parent[j];
            if self.is_sink[j] != is_sink || parent == NONE {
                continue;
            }
            if self.is_open(a, !is_sink) {
                self.activate(j as u32);
            }
            if parent < ORPHAN && self.head[parent as usize] as usize == i {
                self.parent[j] = ORPHAN;
                self.orphans.push_back(j as u32);
            }
        }
    }

    /// The distance of node j from the root of its tree, if it does not hang on an orphan. Marks the way.
    fn distance_of(&mut self, j: usize) -> Option<u32> {
        let (mut k, mut distance) = (j, 0);
        loop {
            if self.stamp[k] == self.time {
                distance += self.distance[k];
                break;
            }
            distance += 1;
            match self.parent[k] {
                TERMINAL => {
                    self.stamp[k] = self.time;
                    self.distance[k] = 1;
                    break;
                }
                ORPHAN => return None,
                a => k = self.head[a as usize] as usize,
            }
        }
        let (mut k, mut at) = (j, distance);
        while self.stamp[k] != self.time {
            self.stamp[k] = self.time;
            self.distance[k] = at;
            at -= 1;
            k = self.head[self.parent[k] as usize] as usize;
        }
        Some(distance)
    }
}
