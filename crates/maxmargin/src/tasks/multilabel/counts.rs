//! The best set for every number of right and of wrong labels in it: for losses that do not add up over the labels.
//!
//! `max over h, e of value(D(h, e), the best score of a set with h labels of the truth and e others)`. Without pairs the best h
//! are the h best of the truth, and so for the others. In a forest of pairs tables over (h, e) are merged from the leaves up.

use super::{Pairs, SetLoss};

/// Cells of all tables, beyond which they are too many.
const MOST_CELLS: usize = 1 << 25;

/// Can sets be counted against this truth?
pub(super) fn check(pairs: &Pairs, truth: &[u32]) -> Result<(), String> {
    let labels = pairs.labels() as usize;
    let cells = 2_usize.saturating_mul(labels).saturating_mul((truth.len() + 1).saturating_mul(labels + 1));
    if pairs.is_empty() || cells <= MOST_CELLS {
        return Ok(());
    }
    Err(format!(
        "counting the errors of {labels} labels in a tree of pairs takes {cells} cells (at most {MOST_CELLS}); take --pairs \
         none, or the Hamming loss with margin rescaling and linear slack"
    ))
}

/// The scores of the best sets by their counts.
#[derive(Debug, Default, Clone)]
struct Table {
    /// Labels of the truth, and others, that it is about.
    hits: usize,
    extra: usize,
    /// `best[h * (extra + 1) + e]`, with the topmost label out and with it in.
    best: [Vec<f64>; 2],
}

impl Table {
    /// No label: a place for trees to be merged.
    fn empty() -> Self {
        Self { hits: 0, extra: 0, best: [vec![0.0], vec![f64::NEG_INFINITY]] }
    }

    /// One label.
    fn of(is_hit: bool, score: f64) -> Self {
        let best = [vec![0.0, f64::NEG_INFINITY], vec![f64::NEG_INFINITY, score]];
        Self { hits: usize::from(is_hit), extra: usize::from(!is_hit), best }
    }
}

/// A subtree that was merged into the one above: for each of the cells made, what the subtree contributes.
#[derive(Debug)]
struct Merge {
    child: usize,
    /// Extra labels of the merged table.
    extra: usize,
    /// By state of the one above: (state, h, e) of the subtree in each cell.
    choices: [Vec<(u8, u32, u32)>; 2],
}

/// Memory of the search.
#[derive(Debug, Default)]
pub(super) struct Counts {
    truth: Vec<(f64, u32)>,
    others: Vec<(f64, u32)>,
}

impl Counts {
    #[expect(clippy::too_many_arguments, reason = "all that the maximum is taken over")]
    pub(super) fn best(
        &mut self,
        pairs: &Pairs,
        unary: &[f64],
        weights: &[f64],
        truth: &[u32],
        loss: SetLoss,
        value: &dyn Fn(f64, f64) -> f64,
        y: &mut Vec<u32>,
    ) {
        y.clear();
        if pairs.is_empty() {
            self.apart(unary, truth, loss, value, y);
        } else {
            in_forest(pairs, unary, weights, truth, loss, value, y);
        }
        y.sort_unstable();
    }

    /// Without pairs.
    fn apart(
        &mut self,
        unary: &[f64],
        truth: &[u32],
        loss: SetLoss,
        value: &dyn Fn(f64, f64) -> f64,
        y: &mut Vec<u32>,
    ) {
        self.truth.clear();
        self.others.clear();
        for (k, &score) in (0..).zip(unary) {
            let group = if truth.binary_search(&k).is_ok() { &mut self.truth } else { &mut self.others };
            group.push((score, k));
        }
        for group in [&mut self.truth, &mut self.others] {
            group.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        let (mut most, mut at) = (f64::NEG_INFINITY, (0, 0));
        let mut right = 0.0;
        for h in 0..=self.truth.len() {
            right += if h > 0 { self.truth[h - 1].0 } else { 0.0 };
            let mut score = right;
            for e in 0..=self.others.len() {
                score += if e > 0 { self.others[e - 1].0 } else { 0.0 };
                let value = value(loss.of_counts(truth.len(), h, e), score);
                if value > most {
                    (most, at) = (value, (h, e));
                }
            }
        }
        y.extend(self.truth[..at.0].iter().chain(&self.others[..at.1]).map(|&(_, k)| k));
    }
}

/// In a forest of pairs.
fn in_forest(
    pairs: &Pairs,
    unary: &[f64],
    weights: &[f64],
    truth: &[u32],
    loss: SetLoss,
    value: &dyn Fn(f64, f64) -> f64,
    y: &mut Vec<u32>,
) {
    let labels = unary.len();
    // Trees from their roots down; the last place is above all roots.
    let (mut parent, mut order) = (vec![None; labels], Vec::with_capacity(labels));
    for root in 0..labels {
        if parent[root].is_some() {
            continue;
        }
        parent[root] = Some((labels, None));
        let mut next = order.len();
        order.push(root);
        while let Some(&v) = order.get(next) {
            next += 1;
            for (j, number) in pairs.of(v as u32) {
                if parent[j as usize].is_none() {
                    parent[j as usize] = Some((v, Some(number)));
                    order.push(j as usize);
                }
            }
        }
    }
    let is_hit = |k: usize| truth.binary_search(&(k as u32)).is_ok();
    let mut tables: Vec<Table> = (0..labels).map(|k| Table::of(is_hit(k), unary[k])).collect();
    tables.push(Table::empty());
    let mut merges: Vec<Vec<Merge>> = (0..=labels).map(|_| Vec::new()).collect();
    for &child in order.iter().rev() {
        let (above, pair) = parent[child].expect("a place in its tree");
        let own = std::mem::take(&mut tables[child]);
        let (table, choices) = merge(&tables[above], &own, pair.map_or(0.0, |number| weights[number]));
        merges[above].push(Merge { child, extra: table.extra, choices });
        tables[above] = table;
    }
    let all = &tables[labels];
    let (mut most, mut at) = (f64::NEG_INFINITY, (0, 0));
    for (cell, &score) in all.best[0].iter().enumerate().filter(|(_, score)| **score > f64::NEG_INFINITY) {
        let (h, e) = (cell / (all.extra + 1), cell % (all.extra + 1));
        let value = value(loss.of_counts(truth.len(), h, e), score);
        if value > most {
            (most, at) = (value, (h, e));
        }
    }
    let mut left = vec![(labels, 0_u8, at)];
    while let Some((v, state, (mut h, mut e))) = left.pop() {
        if state == 1 {
            y.push(v as u32);
        }
        for Merge { child, extra, choices } in merges[v].iter().rev() {
            let (s, ch, ce) = choices[usize::from(state)][h * (extra + 1) + e];
            let (ch, ce) = (ch as usize, ce as usize);
            left.push((*child, s, (ch, ce)));
            (h, e) = (h - ch, e - ce);
        }
    }
}

/// The table of a tree with one more subtree, whose top is paired with its own by `weight`; and what was chosen.
#[expect(clippy::type_complexity, reason = "named where it is kept")]
fn merge(above: &Table, child: &Table, weight: f64) -> (Table, [Vec<(u8, u32, u32)>; 2]) {
    let (hits, extra) = (above.hits + child.hits, above.extra + child.extra);
    let cells = (hits + 1) * (extra + 1);
    let mut best = [vec![f64::NEG_INFINITY; cells], vec![f64::NEG_INFINITY; cells]];
    let mut choices = [vec![(0, 0, 0); cells], vec![(0, 0, 0); cells]];
    for state in 0..2 {
        for (cell, &score) in above.best[state].iter().enumerate().filter(|(_, score)| **score > f64::NEG_INFINITY) {
            let (h, e) = (cell / (above.extra + 1), cell % (above.extra + 1));
            for (s, own) in child.best.iter().enumerate() {
                let paired = score + if state == 1 && s == 1 { weight } else { 0.0 };
                for (cell, &score) in own.iter().enumerate().filter(|(_, score)| **score > f64::NEG_INFINITY) {
                    let (ch, ce) = (cell / (child.extra + 1), cell % (child.extra + 1));
                    let to = (h + ch) * (extra + 1) + e + ce;
                    if paired + score > best[state][to] {
                        best[state][to] = paired + score;
                        choices[state][to] = (s as u8, ch as u32, ce as u32);
                    }
                }
            }
        }
    }
    (Table { hits, extra, best }, choices)
}
