//! A look at the labels of a variable: their scores by its features.
//!
//! Where w has a number for each feature and label, a look is at a range of labels. Where rows of w are short, it is at the
//! labels that the rows of the variable's features have, and at one of all others, which score nothing.

use super::visit::score;
use crate::sparse::SparseView;
use crate::task::{Part, Slots};
use crate::weights::{RowView, ShortRows, Weights};

/// Scores of labels.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// By label less `start`; of short rows where `stamps` has `now`.
    scores: Vec<f64>,
    start: usize,
    /// Of short rows: where a score is from this look, and the labels that have one.
    stamps: Vec<u32>,
    now: u32,
    seen: Vec<u32>,
    kind: Kind,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The labels of a range have scores.
    #[default]
    Range,
    /// Those in `seen` have, and all others are 0.
    Seen,
}

/// The labels that a look was at.
pub(super) enum Known<'a> {
    /// Those from one on, with their scores. There may be others.
    Range(usize, &'a [f64]),
    /// Those that rows have. All others score nothing.
    Seen(&'a [u32]),
}

/// Where so many of all labels are in short rows, a look at all is faster.
const MOST_SEEN: usize = 8;

/// The scores of the labels `start..start + range.len()`, added.
pub(super) fn add_range(w: &Weights, part: &Part<'_>, labels: u32, start: usize, range: &mut [f64]) {
    if let Slots::AllOn(_) = part.slots {
        if let Some(last) = range.get_mut((labels as usize - 1).wrapping_sub(start)) {
            *last += score(w, part, labels - 1, labels);
        }
        return;
    }
    if let Some(rows) = w.short_rows().filter(|rows| rows.block() == part.block) {
        if start == 0 && range.len() == labels as usize {
            return rows.add_scores(part.phi, range);
        }
        (start as u32..).zip(range).for_each(|(label, sum)| *sum += score(w, part, label, labels));
        return;
    }
    let w = w.as_slice();
    for (j, x) in part.phi.iter() {
        let (x, row) = (f64::from(x), &w[part.block.at(j, 0) + start..][..range.len()]);
        range.iter_mut().zip(row).for_each(|(sum, w)| *sum += x * w);
    }
}

impl Look {
    /// Looks at a range of a variable's labels.
    pub(super) fn at_range(&mut self, w: &Weights, parts: &[Part<'_>], labels: u32, (start, len): (usize, usize)) {
        (self.kind, self.start) = (Kind::Range, start);
        self.scores.resize(len, 0.0);
        let is_whole = |part: &Part<'_>| part.slots == Slots::Each && part.block.width as usize == len;
        let rest = match parts.split_first() {
            Some((first, rest)) if is_whole(first) => {
                w.scores(first.block, first.phi, &mut self.scores);
                rest
            }
            _ => {
                self.scores.fill(0.0);
                parts
            }
        };
        for part in rest {
            add_range(w, part, labels, start, &mut self.scores);
        }
    }

    /// Looks at the labels that are in use in the rows of a variable's features.
    pub(super) fn at_rows(&mut self, w: &Weights, rows: &ShortRows, parts: &[Part<'_>], labels: u32) {
        let is_short = |part: &Part<'_>| part.block == rows.block();
        let len = |j: &u32| if let RowView::Short(slots, _) = rows.row(*j) { Some(slots.len()) } else { None };
        let entries: Option<usize> = if parts.iter().all(is_short) {
            parts.iter().flat_map(|part| part.phi.indices()).map(len).sum()
        } else {
            None
        };
        if entries.is_none_or(|entries| MOST_SEEN * entries > labels as usize) {
            return self.at_range(w, parts, labels, (0, labels as usize));
        }
        (self.kind, self.start) = (Kind::Seen, 0);
        self.begin(labels as usize);
        for part in parts {
            self.add_rows(rows, part.phi);
        }
    }

    fn begin(&mut self, labels: usize) {
        self.seen.clear();
        self.now = self.now.wrapping_add(1);
        if self.now == 0 || self.stamps.len() < labels {
            self.stamps.clear();
            self.stamps.resize(labels, 0);
            self.now = 1;
        }
        self.scores.resize(labels.max(self.scores.len()), 0.0);
    }

    fn add_rows(&mut self, rows: &ShortRows, phi: SparseView<'_>) {
        rows.ask_for(phi);
        for (j, x) in phi.iter() {
            let (x, RowView::Short(slots, values)) = (f64::from(x), rows.row(j)) else { continue };
            for (&slot, w) in slots.iter().zip(values) {
                let at = slot as usize;
                if self.stamps[at] != self.now {
                    (self.stamps[at], self.scores[at]) = (self.now, 0.0);
                    self.seen.push(slot);
                }
                self.scores[at] += x * w;
            }
        }
    }

    /// The score of a label, where it is known.
    pub(super) fn score(&self, label: u32) -> Option<f64> {
        match self.kind {
            Kind::Range => self.scores.get((label as usize).wrapping_sub(self.start)).copied(),
            Kind::Seen if self.stamps[label as usize] == self.now => Some(self.scores[label as usize]),
            Kind::Seen => Some(0.0),
        }
    }

    /// The labels that a look was at.
    pub(super) fn known(&self) -> Known<'_> {
        match self.kind {
            Kind::Range => Known::Range(self.start, &self.scores),
            Kind::Seen => Known::Seen(&self.seen),
        }
    }

    /// Is the score of a label other than that of all labels that no row has?
    pub(super) fn is_seen(&self, label: u32) -> bool {
        self.kind == Kind::Range || self.stamps[label as usize] == self.now
    }

    /// The label with the highest score, but for some. Ties go to the first label from `from` on, and after the last comes
    /// the first again; of labels that no row has, one is enough.
    pub(super) fn best(&self, labels: u32, from: u32, is_excluded: impl Fn(u32) -> bool) -> Option<(u32, f64)> {
        let mut best: Option<(u32, f64)> = None;
        let place = |label: u32| if label >= from { label - from } else { label + (labels - from) };
        let mut offer = |label: u32, score: f64| {
            let is_better =
                best.is_none_or(|(other, most)| score > most || score == most && place(label) < place(other));
            if is_better && !is_excluded(label) {
                best = Some((label, score));
            }
        };
        match self.kind {
            Kind::Range => (self.start as u32..).zip(&self.scores).for_each(|(label, &score)| offer(label, score)),
            Kind::Seen => {
                self.seen.iter().for_each(|&label| offer(label, self.scores[label as usize]));
                let all = (from..labels).chain(0..from);
                let is_unseen = |label: &u32| self.stamps[*label as usize] != self.now && !is_excluded(*label);
                if let Some(label) = all.into_iter().find(is_unseen) {
                    offer(label, 0.0);
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Block;
    use crate::random::Random;

    #[test]
    fn a_look_at_rows_finds_what_a_look_at_all_labels_finds() {
        let mut random = Random::new(11);
        for labels in [1, 2, 9, 100, 700] {
            let (first, block) =
                (Block { base: 0, rows: 1, width: labels }, Block { base: u64::from(labels), rows: 30, width: labels });
            let mut short = Weights::zeros_with_short_rows(block);
            let (mut look, mut all) = (Look::default(), Look::default());
            for round in 0..300 {
                let slot = random.below(labels as usize) as u32;
                let features = [random.below(10) as u32, 10 + random.below(20) as u32];
                short.add(block, slot, SparseView::new(&features, &[1.0, 0.5]), random.below(5) as f64 - 2.0);
                let dense = Weights::from(Vec::from(short.clone()));
                let features = [random.below(10) as u32, 10 + random.below(20) as u32];
                let part = |block, phi| Part { block, slots: Slots::Each, phi };
                let mut parts = vec![part(block, SparseView::new(&features, &[2.0, 1.0]))];
                if round % 5 == 0 {
                    parts.push(part(first, SparseView::constant()));
                }
                look.at_rows(&short, short.short_rows().unwrap(), &parts, labels);
                all.at_range(&dense, &parts, labels, (0, labels as usize));
                (0..labels).for_each(|label| assert_eq!(look.score(label), all.score(label)));
                let from = random.below(labels as usize) as u32;
                let excluded: Vec<bool> = (0..labels).map(|_| random.below(3) == 0).collect();
                let best = look.best(labels, from, |label| excluded[label as usize]);
                assert_eq!(best, all.best(labels, from, |label| excluded[label as usize]));
                assert_eq!(best.is_none(), excluded.iter().all(|&is_out| is_out));
            }
        }
    }
}
