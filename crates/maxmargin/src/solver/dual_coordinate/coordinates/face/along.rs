//! A direction on a face: what it does to w, and to the gradient. That is all the work of a step, so all threads do it.

use std::ops::Range;

use super::super::super::slots::Rows;
use super::super::super::stack::{Blocks, Example};
use super::super::AHEAD;
use super::Member;
use crate::parallel::{Pool, ranges};
use crate::weights::Weights;

/// Members are cut into so many parts, each of which has its slopes to itself.
const PARTS: usize = 8;

/// Where half of the entries of so many examples are, about half of all are.
const SAMPLE: usize = 64;

/// What a direction is a direction of.
pub(super) struct Along<'f, B> {
    pub(super) blocks: &'f B,
    pub(super) pool: &'f Pool,
    pub(super) members: &'f [Member],
    pub(super) outputs: &'f [u32],
}

/// The rows of w, cut into parts in each of which the examples have about as many entries.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// Where parts begin, and the end.
    rows: Vec<u32>,
    /// By member: the places of these among the entries of its phi.
    places: Vec<u32>,
}

impl Cuts {
    /// At most so many parts.
    pub(super) fn fill<B: Blocks>(&mut self, blocks: &B, members: &[Member], parts: usize) {
        let phi = |m: &Member| blocks.example(m.example as usize).phi;
        self.rows.clear();
        self.rows.push(0);
        if parts > 1 {
            let sample = members.iter().step_by(members.len().div_ceil(SAMPLE).max(1));
            let mut seen: Vec<u32> = sample.flat_map(|m| phi(m).indices()).copied().collect();
            seen.sort_unstable();
            self.rows.extend((1..parts).filter_map(|part| seen.get(seen.len() * part / parts)));
        }
        self.rows.push(blocks.block().rows);
        self.rows.dedup();
        self.places.clear();
        for m in members {
            let indices = phi(m).indices();
            self.places.extend(self.rows.iter().map(|&row| indices.partition_point(|&j| j < row) as u32));
        }
    }

    /// The entries of a member's phi in a part.
    fn entries(&self, member: usize, part: usize) -> Range<usize> {
        let places = &self.places[member * self.rows.len() + part..];
        places[0] as usize..places[1] as usize
    }
}

impl<B: Blocks> Along<'_, B> {
    /// `image = sum change lhs`. Each part of the rows is summed up by one thread, in the order of the members: into how many parts
    /// they are cut makes no difference to any bit.
    pub(super) fn sum_up(&self, change: &[f64], cuts: &Cuts, image: &mut Weights) {
        let block = self.blocks.block();
        let mut rest = &mut image.as_mut_slice()[block.base as usize..];
        let mut parts = Vec::with_capacity(cuts.rows.len());
        for (part, rows) in cuts.rows.windows(2).enumerate() {
            let (w, others) = rest.split_at_mut((rows[1] - rows[0]) as usize * block.width as usize);
            parts.push((part, Rows { first: rows[0], w }));
            rest = others;
        }
        self.pool.map(parts, |(part, mut rows)| {
            rows.w.fill(0.0);
            let mut room = B::Room::default();
            for (at, m) in self.members.iter().enumerate() {
                let change = &change[m.part.clone()];
                if change.iter().all(|change| *change == 0.0) {
                    continue;
                }
                look_ahead(self.blocks, self.members, at);
                let example = self.blocks.example(m.example as usize);
                let within = Example { phi: example.phi.entries(cuts.entries(at, part)), ..example };
                self.blocks.add_to_rows(&within, &self.outputs[m.part.clone()], change, &mut room, &mut rows);
            }
        });
    }

    /// What the violations of the members change by when w moves by `image`.
    pub(super) fn slopes(&self, image: &Weights, slopes: &mut [f64]) {
        let (mut rest, mut parts) = (slopes, Vec::with_capacity(PARTS));
        for range in ranges(self.members.len(), PARTS) {
            let members = &self.members[range];
            let len = members.iter().map(|m| m.part.len()).sum();
            let (own, others) = rest.split_at_mut(len);
            parts.push((members, own));
            rest = others;
        }
        self.pool.map(parts, |(members, slopes)| {
            let (mut room, mut start) = (B::Room::default(), 0);
            for (at, m) in members.iter().enumerate() {
                look_ahead(self.blocks, members, at);
                let own = &mut slopes[start..start + m.part.len()];
                let example = self.blocks.example(m.example as usize);
                self.blocks.slopes_of(&example, &self.outputs[m.part.clone()], image, &mut room, own);
                start += m.part.len();
            }
        });
    }
}

/// Brings examples near whose turn comes soon, as a pass does. With one output each they are near enough: their w is small.
#[inline]
fn look_ahead<B: Blocks>(blocks: &B, members: &[Member], at: usize) {
    if blocks.width() == 1 {
        return;
    }
    if let Some(m) = members.get(at + 2 * AHEAD) {
        blocks.prefetch(m.example as usize);
    }
    if let Some(m) = members.get(at + AHEAD) {
        blocks.example(m.example as usize).phi.prefetch();
    }
}
