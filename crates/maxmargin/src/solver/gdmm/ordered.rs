//! The scores of pairs of labels in order: of all pairs, of each row, of each column.
//!
//! A tournament for each row names its best column, and one over the rows the best row; the same for columns. A changed score is
//! played again on the way up. The best pair outside of a few rows and columns is found by walking down only where a winner
//! is one of those.

use crate::random::Random;

/// A table of scores with its orders. Ties go to the earlier label.
#[derive(Debug)]
pub(super) struct Ordered {
    rows: usize,
    columns: usize,
    /// `winners[row]`: tournament over the columns; then the same for each column over the rows.
    by_row: Vec<u32>,
    by_column: Vec<u32>,
    /// Over the rows, each with its best column.
    all: Vec<u32>,
    row_leaves: usize,
    column_leaves: usize,
}

/// No player: there are fewer than leaves.
const NOBODY: u32 = u32::MAX;

/// Plays one game: the better of two players, the earlier one of equals.
fn better(a: u32, b: u32, score: impl Fn(u32) -> f64) -> u32 {
    if b == NOBODY || (a != NOBODY && score(a) >= score(b)) { a } else { b }
}

/// A tournament of `players` in `tree`, whose leaves are not kept: node n has the children 2n and 2n + 1.
fn play_all(tree: &mut [u32], players: usize, score: impl Fn(u32) -> f64 + Copy) {
    for node in (1..tree.len()).rev() {
        tree[node] = game(tree, players, node, score);
    }
}

fn game(tree: &[u32], players: usize, node: usize, score: impl Fn(u32) -> f64 + Copy) -> u32 {
    better(winner(tree, players, 2 * node), winner(tree, players, 2 * node + 1), score)
}

fn winner(tree: &[u32], players: usize, node: usize) -> u32 {
    let leaves = tree.len();
    if node < leaves {
        tree[node]
    } else if node - leaves < players {
        (node - leaves) as u32
    } else {
        NOBODY
    }
}

/// The games that a changed player takes part in. True where the winner of all, or its score, may have changed.
fn play(tree: &mut [u32], players: usize, player: usize, score: impl Fn(u32) -> f64 + Copy) -> bool {
    // The parent of the player's leaf.
    let mut node = usize::midpoint(tree.len(), player);
    let before = winner(tree, players, 1);
    while node > 0 {
        tree[node] = game(tree, players, node, score);
        node /= 2;
    }
    let after = winner(tree, players, 1);
    before != after || after as usize == player
}

/// The best player that is not excluded.
fn best_outside(
    tree: &[u32],
    players: usize,
    node: usize,
    is_excluded: &impl Fn(u32) -> bool,
    score: &impl Fn(u32) -> f64,
) -> Option<u32> {
    let first = winner(tree, players, node);
    if first == NOBODY || !is_excluded(first) {
        return (first != NOBODY).then_some(first);
    }
    if node >= tree.len() {
        return None;
    }
    let [left, right] = [2 * node, 2 * node + 1].map(|child| best_outside(tree, players, child, is_excluded, score));
    match (left, right) {
        (Some(a), Some(b)) => Some(better(a, b, score)),
        (a, b) => a.or(b),
    }
}

/// One row or one column of a table, in order.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Side<'a> {
    tree: &'a [u32],
    players: usize,
    table: &'a [f64],
    first: usize,
    stride: usize,
    most: f64,
}

impl Side<'_> {
    pub(super) fn score(&self, player: u32) -> f64 {
        self.table[self.first + self.stride * player as usize]
    }

    /// The highest score below a node of the tournament.
    fn most_below(&self, node: usize) -> f64 {
        let player = winner(self.tree, self.players, node);
        if player == NOBODY { f64::NEG_INFINITY } else { self.score(player) }
    }

    /// The highest score.
    pub(super) fn most(&self) -> f64 {
        self.most
    }

    /// Who has it.
    pub(super) fn top(&self) -> u32 {
        winner(self.tree, self.players, 1)
    }

    fn with_most(self) -> Self {
        Self { most: self.most_below(1), ..self }
    }
}

/// Nodes that a search for a sum looks at, at most.
const LOOKS: usize = 128;

/// The player with the highest sum of scores on several sides, if it is above `least`, outside of some. Of equal ones any: which, is
/// left to chance. Sides have the same players, so a node of one stands for the same players as that of another, and what each
/// side has there at most bounds the sum. After some looks the search ends with what it has.
pub(super) fn best_sum(
    sides: &[Side<'_>],
    least: f64,
    is_excluded: impl Fn(u32) -> bool,
    seed: u64,
) -> Option<(u32, f64)> {
    struct Search<'s, F> {
        sides: &'s [Side<'s>],
        is_excluded: F,
        most: f64,
        best: Option<u32>,
        looks: usize,
        coins: u64,
    }
    impl<F: Fn(u32) -> bool> Search<'_, F> {
        fn below(&self, node: usize) -> f64 {
            self.sides.iter().map(|side| side.most_below(node)).sum()
        }

        /// Down from a node with this bound.
        fn descend(&mut self, node: usize, leaves: usize, bound: f64) {
            if bound <= self.most || self.looks == 0 {
                return;
            }
            self.looks -= 1;
            if node >= leaves {
                let player = (node - leaves) as u32;
                if !(self.is_excluded)(player) {
                    (self.most, self.best) = (bound, Some(player));
                }
                return;
            }
            let (left, right) = (2 * node, 2 * node + 1);
            let (a, b) = (self.below(left), self.below(right));
            self.coins = self.coins.rotate_right(1);
            let is_left = a > b || a == b && self.coins & 1 == 1;
            let [(one, first), (other, second)] =
                if is_left { [(left, a), (right, b)] } else { [(right, b), (left, a)] };
            self.descend(one, leaves, first);
            self.descend(other, leaves, second);
        }
    }
    let leaves = sides.first()?.tree.len();
    debug_assert!(sides.iter().all(|side| side.tree.len() == leaves));
    let coins = Random::new(seed).below(usize::MAX) as u64;
    let mut search = Search { sides, is_excluded, most: least, best: None, looks: LOOKS, coins };
    search.descend(1, leaves, search.below(1));
    search.best.map(|player| (player, search.most))
}

impl Ordered {
    /// A row of the table.
    pub(super) fn row_side<'a>(&'a self, row: usize, table: &'a [f64]) -> Side<'a> {
        let first = row * self.columns;
        Side { tree: self.row(row), players: self.columns, table, first, stride: 1, most: 0.0 }.with_most()
    }

    /// A column of the table.
    pub(super) fn column_side<'a>(&'a self, column: usize, table: &'a [f64]) -> Side<'a> {
        let tree = &self.by_column[column * self.row_leaves..][..self.row_leaves];
        Side { tree, players: self.rows, table, first: column, stride: self.columns, most: 0.0 }.with_most()
    }

    /// The orders of a table with all scores `table[row * columns + column]`.
    pub(super) fn new(rows: usize, columns: usize, table: &[f64]) -> Self {
        let (row_leaves, column_leaves) = (rows.next_power_of_two(), columns.next_power_of_two());
        let mut ordered = Self {
            rows,
            columns,
            by_row: vec![NOBODY; rows * column_leaves],
            by_column: vec![NOBODY; columns * row_leaves],
            all: vec![NOBODY; row_leaves],
            row_leaves,
            column_leaves,
        };
        for (row, tree) in ordered.by_row.chunks_exact_mut(column_leaves).enumerate() {
            play_all(tree, columns, |c| table[row * columns + c as usize]);
        }
        for (column, tree) in ordered.by_column.chunks_exact_mut(row_leaves).enumerate() {
            play_all(tree, rows, |r| table[r as usize * columns + column]);
        }
        let tops: Vec<f64> = (0..rows).map(|row| table[row * columns + ordered.top_of_row(row)]).collect();
        play_all(&mut ordered.all, rows, |r| tops[r as usize]);
        ordered
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    fn row(&self, row: usize) -> &[u32] {
        &self.by_row[row * self.column_leaves..][..self.column_leaves]
    }

    fn top_of_row(&self, row: usize) -> usize {
        winner(self.row(row), self.columns, 1) as usize
    }

    /// The score of one pair has changed.
    pub(super) fn changed(&mut self, row: usize, column: usize, table: &[f64]) {
        let (rows, columns) = (self.rows, self.columns);
        let tree = &mut self.by_column[column * self.row_leaves..][..self.row_leaves];
        play(tree, rows, row, |r| table[r as usize * columns + column]);
        let tree = &mut self.by_row[row * self.column_leaves..][..self.column_leaves];
        if play(tree, columns, column, |c| table[row * columns + c as usize]) {
            let (by_row, leaves) = (&self.by_row, self.column_leaves);
            let top = |r: u32| {
                let r = r as usize;
                table[r * columns + winner(&by_row[r * leaves..][..leaves], columns, 1) as usize]
            };
            play(&mut self.all, rows, row, top);
        }
    }

    /// The best column of a row, outside of some.
    pub(super) fn in_row(&self, row: usize, table: &[f64], is_excluded: impl Fn(u32) -> bool) -> Option<u32> {
        let score = |c: u32| table[row * self.columns + c as usize];
        best_outside(self.row(row), self.columns, 1, &is_excluded, &score)
    }

    /// The best row of a column, outside of some.
    pub(super) fn in_column(&self, column: usize, table: &[f64], is_excluded: impl Fn(u32) -> bool) -> Option<u32> {
        let score = |r: u32| table[r as usize * self.columns + column];
        best_outside(&self.by_column[column * self.row_leaves..][..self.row_leaves], self.rows, 1, &is_excluded, &score)
    }

    /// The best pair outside of some rows and some columns.
    pub(super) fn anywhere(
        &self,
        table: &[f64],
        is_row_excluded: impl Fn(u32) -> bool,
        is_column_excluded: impl Fn(u32) -> bool,
    ) -> Option<(u32, u32)> {
        let mut best: Option<((u32, u32), f64)> = None;
        self.walk(1, table, &is_row_excluded, &is_column_excluded, &mut best);
        best.map(|(pair, _)| pair)
    }

    /// Down the tournament of the rows, where its winner could still be better than what was found.
    fn walk(
        &self,
        node: usize,
        table: &[f64],
        is_row_excluded: &impl Fn(u32) -> bool,
        is_column_excluded: &impl Fn(u32) -> bool,
        best: &mut Option<((u32, u32), f64)>,
    ) {
        let row = winner(&self.all, self.rows, node);
        if row == NOBODY {
            return;
        }
        let r = row as usize;
        let column = self.top_of_row(r);
        let top = table[r * self.columns + column];
        if best.is_some_and(|(_, value)| value >= top) {
            return;
        }
        if !is_row_excluded(row) && !is_column_excluded(column as u32) {
            *best = Some(((row, column as u32), top));
            return;
        }
        if node < self.all.len() {
            // The side of the winner first: it is likely to be the better one.
            let (left, right) = (2 * node, 2 * node + 1);
            let (one, other) = if winner(&self.all, self.rows, left) == row { (left, right) } else { (right, left) };
            self.walk(one, table, is_row_excluded, is_column_excluded, best);
            self.walk(other, table, is_row_excluded, is_column_excluded, best);
        } else if !is_row_excluded(row)
            && let Some(column) = self.in_row(r, table, is_column_excluded)
        {
            let value = table[r * self.columns + column as usize];
            if best.is_none_or(|(_, most)| value > most) {
                *best = Some(((row, column), value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few enough players that the search always ends by itself.
    #[test]
    fn the_best_sum_is_that_of_a_search() {
        let mut random = Random::new(5);
        for players in [1, 2, 3, 9, 16, 31] {
            let table: Vec<f64> = (0..players * players).map(|_| random.below(7) as f64 - 3.0).collect();
            let ordered = Ordered::new(players, players, &table);
            for seed in 0..100 {
                let (row, column) = (random.below(players), random.below(players));
                let excluded: Vec<bool> = (0..players).map(|_| random.below(3) == 0).collect();
                let sides = [ordered.row_side(row, &table), ordered.column_side(column, &table)];
                let sum = |k: usize| table[row * players + k] + table[k * players + column];
                assert!((0..players).all(|k| sides.iter().map(|side| side.score(k as u32)).sum::<f64>() == sum(k)));
                let least = random.below(5) as f64 - 2.5;
                let found = best_sum(&sides, least, |k| excluded[k as usize], seed);
                let most = (0..players).filter(|&k| !excluded[k]).map(sum).filter(|&sum| sum > least);
                assert_eq!(found.map(|found| found.1), most.max_by(f64::total_cmp));
                assert!(found.is_none_or(|(k, score)| sum(k as usize) == score && !excluded[k as usize]));
            }
        }
    }

    #[test]
    fn the_best_outside_is_that_of_a_search() {
        let mut random = Random::new(7);
        for (rows, columns) in [(1, 1), (1, 5), (3, 2), (4, 4), (7, 5), (9, 16)] {
            let mut table: Vec<f64> = (0..rows * columns).map(|_| random.below(5) as f64).collect();
            let mut ordered = Ordered::new(rows, columns, &table);
            for _ in 0..200 {
                let (r, c) = (random.below(rows), random.below(columns));
                table[r * columns + c] = random.below(5) as f64;
                ordered.changed(r, c, &table);
                let outside_rows: Vec<bool> = (0..rows).map(|_| random.below(3) == 0).collect();
                let outside_columns: Vec<bool> = (0..columns).map(|_| random.below(3) == 0).collect();
                let row_is_out = |r: u32| outside_rows[r as usize];
                let column_is_out = |c: u32| outside_columns[c as usize];
                let value = |pair: Option<(u32, u32)>| pair.map(|(r, c)| table[r as usize * columns + c as usize]);
                let most = |pairs: &mut dyn Iterator<Item = (u32, u32)>| {
                    pairs.map(|pair| value(Some(pair)).unwrap()).max_by(f64::total_cmp)
                };
                let (all_rows, all_columns) = (0..rows as u32, 0..columns as u32);
                let inside_columns = all_columns.filter(|&c| !column_is_out(c));
                let inside_rows = all_rows.filter(|&r| !row_is_out(r));
                let found = ordered.in_row(r, &table, column_is_out).map(|c| (r as u32, c));
                assert_eq!(value(found), most(&mut inside_columns.clone().map(|c| (r as u32, c))));
                let found = ordered.in_column(c, &table, row_is_out).map(|r| (r, c as u32));
                assert_eq!(value(found), most(&mut inside_rows.clone().map(|r| (r, c as u32))));
                let found = ordered.anywhere(&table, row_is_out, column_is_out);
                assert!(found.is_none_or(|(r, c)| !row_is_out(r) && !column_is_out(c)));
                let every = inside_rows.flat_map(|r| inside_columns.clone().map(move |c| (r, c)));
                assert_eq!(value(found), most(&mut every.into_iter()));
            }
        }
    }
}
