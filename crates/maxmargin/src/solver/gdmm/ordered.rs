//! Where the scores of pairs of labels are high: of all pairs, of each row, of each column.
//!
//! Labels stand in blocks, and of each block of each row the highest score is kept; of columns the same, with a copy of the table
//! by columns, so that what is read stands together. A search for the best label reads the tops of the blocks, and the labels of
//! those few blocks only whose top is above what has been found.

use std::ops::Range;

/// Labels in a block.
const BLOCK: usize = 32;

/// The numbers of the labels of a block, of so many in all.
fn labels_of(block: usize, labels: usize) -> Range<usize> {
    block * BLOCK..labels.min((block + 1) * BLOCK)
}

/// The highest of some scores. Side by side in lanes: one after the other would wait for each comparison.
pub(super) fn highest(scores: &[f64]) -> f64 {
    const LANES: usize = 8;
    let higher = |a: f64, b: f64| if b > a { b } else { a };
    let (groups, rest) = scores.as_chunks::<LANES>();
    let mut most = [f64::NEG_INFINITY; LANES];
    for group in groups {
        most.iter_mut().zip(group).for_each(|(most, &score)| *most = higher(*most, score));
    }
    most.iter().chain(rest).copied().fold(f64::NEG_INFINITY, higher)
}

/// The highest score of each block of lines, which all have as many labels.
#[derive(Debug)]
struct Tops {
    labels: usize,
    blocks: usize,
    highest: Vec<f64>,
}

impl Tops {
    /// Of lines of so many labels, one after the other.
    fn of(lines: &[f64], labels: usize) -> Self {
        let each = |line: &[f64]| line.chunks(BLOCK).map(highest).collect::<Vec<_>>();
        Self { labels, blocks: labels.div_ceil(BLOCK), highest: lines.chunks_exact(labels).flat_map(each).collect() }
    }

    fn of_line(&self, line: usize) -> &[f64] {
        &self.highest[line * self.blocks..][..self.blocks]
    }

    /// A label's score in a line was another one before. Did the top of its block change?
    fn changed(&mut self, line: usize, scores: &[f64], label: usize, before: f64) -> bool {
        let top = &mut self.highest[line * self.blocks + label / BLOCK];
        let was = *top;
        if scores[label] >= was {
            *top = scores[label];
        } else if before == was {
            *top = highest(&scores[labels_of(label / BLOCK, self.labels)]);
        }
        *top != was
    }
}

/// A row or a column of a table.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Line<'a> {
    scores: &'a [f64],
    tops: &'a [f64],
}

impl Line<'_> {
    pub(super) fn score(&self, label: u32) -> f64 {
        self.scores[label as usize]
    }
}

/// What labels score at most in several lines together, by block.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    sums: Vec<f64>,
}

impl Bounds {
    pub(super) fn fill(&mut self, lines: &[Line<'_>]) {
        self.sums.clear();
        let Some((first, rest)) = lines.split_first() else { return };
        self.sums.extend_from_slice(first.tops);
        for line in rest {
            self.sums.iter_mut().zip(line.tops).for_each(|(sum, top)| *sum += top);
        }
    }

    /// What the block of a label scores at most.
    pub(super) fn at(&self, label: u32) -> f64 {
        self.sums[label as usize / BLOCK]
    }

    /// Some labels block by block, with what each scores at most.
    pub(super) fn blocks(&self, labels: Range<usize>) -> impl Iterator<Item = (Range<usize>, f64)> {
        let clipped = move |block: usize| labels.start.max(block * BLOCK)..labels.end.min((block + 1) * BLOCK);
        let blocks = labels.start / BLOCK..labels.end.div_ceil(BLOCK);
        blocks.map(move |block| (clipped(block), self.sums[block]))
    }

    /// The label with the highest sum of scores in the lines that these are the bounds of, if it is above `least`, outside of some.
    /// Of equal ones it is the first from `from` on, or nearly.
    pub(super) fn best(
        &self,
        lines: &[Line<'_>],
        least: f64,
        from: usize,
        is_excluded: impl Fn(u32) -> bool,
    ) -> Option<(u32, f64)> {
        let mut found = None;
        let blocks = || (0..self.sums.len()).map(|block| (block + from / BLOCK) % self.sums.len());
        // The one that promises most first, which spares others a look.
        let first = blocks().reduce(|a, b| if self.sums[b] > self.sums[a] { b } else { a })?;
        for block in std::iter::once(first).chain(blocks()) {
            let most = found.map_or(least, |(_, most)| most);
            if self.sums[block] > most {
                found = best_of_block(lines, block, most, from % BLOCK, &is_excluded).or(found);
            }
        }
        found
    }
}

/// The best label of one block above `least`.
fn best_of_block(
    lines: &[Line<'_>],
    block: usize,
    least: f64,
    from: usize,
    is_excluded: &impl Fn(u32) -> bool,
) -> Option<(u32, f64)> {
    let (first, rest) = lines.split_first()?;
    let labels = labels_of(block, first.scores.len());
    let mut sums = [0.0; BLOCK];
    let sums = &mut sums[..labels.len()];
    sums.copy_from_slice(&first.scores[labels.clone()]);
    for line in rest {
        sums.iter_mut().zip(&line.scores[labels.clone()]).for_each(|(sum, score)| *sum += score);
    }
    if highest(sums) <= least {
        return None;
    }
    let (mut found, mut most) = (None, least);
    let from = from.min(sums.len());
    for at in (from..sums.len()).chain(0..from) {
        let label = (labels.start + at) as u32;
        if sums[at] > most && !is_excluded(label) {
            (found, most) = (Some(label), sums[at]);
        }
    }
    found.map(|label| (label, most))
}

/// A table of scores, `table[row * columns + column]`, with what a search in it needs.
#[derive(Debug)]
pub(super) struct Ordered {
    rows: usize,
    columns: usize,
    /// The table by columns.
    transposed: Vec<f64>,
    in_rows: Tops,
    in_columns: Tops,
    /// The highest score of each row; and of blocks of these.
    row_tops: Vec<f64>,
    of_row_tops: Tops,
}

impl Ordered {
    pub(super) fn new(rows: usize, columns: usize, table: &[f64]) -> Self {
        let mut transposed = vec![0.0; rows * columns];
        // Block by block: of a large table neither side of a copy column by column would stay near.
        for block in (0..rows).step_by(BLOCK) {
            for (column, line) in transposed.chunks_exact_mut(rows).enumerate() {
                for row in block..rows.min(block + BLOCK) {
                    line[row] = table[row * columns + column];
                }
            }
        }
        let (in_rows, in_columns) = (Tops::of(table, columns), Tops::of(&transposed, rows));
        let row_tops: Vec<f64> = (0..rows).map(|row| highest(in_rows.of_line(row))).collect();
        let of_row_tops = Tops::of(&row_tops, rows);
        Self { rows, columns, transposed, in_rows, in_columns, row_tops, of_row_tops }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn row<'a>(&'a self, row: usize, table: &'a [f64]) -> Line<'a> {
        Line { scores: &table[row * self.columns..][..self.columns], tops: self.in_rows.of_line(row) }
    }

    pub(super) fn column(&self, column: usize) -> Line<'_> {
        Line { scores: &self.transposed[column * self.rows..][..self.rows], tops: self.in_columns.of_line(column) }
    }

    /// The score of one pair has changed.
    pub(super) fn changed(&mut self, row: usize, column: usize, table: &[f64]) {
        let scores = &table[row * self.columns..][..self.columns];
        let line = &mut self.transposed[column * self.rows..][..self.rows];
        let before = std::mem::replace(&mut line[row], scores[column]);
        self.in_columns.changed(column, line, row, before);
        if self.in_rows.changed(row, scores, column, before) {
            let before = std::mem::replace(&mut self.row_tops[row], highest(self.in_rows.of_line(row)));
            self.of_row_tops.changed(0, &self.row_tops, row, before);
        }
    }

    /// The best pair outside of some rows and some columns.
    pub(super) fn anywhere(
        &self,
        table: &[f64],
        is_row_excluded: impl Fn(u32) -> bool,
        is_column_excluded: impl Fn(u32) -> bool,
    ) -> Option<(u32, u32)> {
        let mut best: Option<((u32, u32), f64)> = None;
        let mut look_at = |row: usize| {
            let most = best.map_or(f64::NEG_INFINITY, |(_, most)| most);
            if self.row_tops[row] > most
                && !is_row_excluded(row as u32)
                && let Some((column, score)) = best_in(self.row(row, table), most, &is_column_excluded)
            {
                best = Some(((row as u32, column), score));
            }
            best.map_or(f64::NEG_INFINITY, |(_, most)| most)
        };
        let tops = Line { scores: &self.row_tops, tops: self.of_row_tops.of_line(0) };
        // The row that promises most first, which spares others a look.
        let (first, _) = best_in(tops, f64::NEG_INFINITY, &is_row_excluded)?;
        let mut most = look_at(first as usize);
        for (block, &top) in tops.tops.iter().enumerate() {
            if top > most {
                most = labels_of(block, self.rows).map(&mut look_at).fold(most, f64::max);
            }
        }
        best.map(|(pair, _)| pair)
    }
}

/// The best label of a line above `least`, outside of some.
pub(super) fn best_in(line: Line<'_>, least: f64, is_excluded: impl Fn(u32) -> bool) -> Option<(u32, f64)> {
    let (mut found, mut most) = (None, least);
    for (block, &top) in line.tops.iter().enumerate() {
        if top > most
            && let Some(best) = best_of_block(&[line], block, most, 0, &is_excluded)
        {
            (found, most) = (Some(best), best.1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn any(random: &mut Random, count: usize) -> Vec<bool> {
        (0..count).map(|_| random.below(3) == 0).collect()
    }

    fn scores(random: &mut Random, count: usize, kinds: usize) -> Vec<f64> {
        (0..count).map(|_| random.below(kinds) as f64 - 3.0).collect()
    }

    #[test]
    fn the_best_sum_is_that_of_a_search() {
        let mut random = Random::new(5);
        let mut bounds = Bounds::default();
        for (labels, kinds) in [(1, 7), (2, 7), (63, 7), (64, 1000), (65, 1000), (200, 7), (300, 100_000)] {
            let table = scores(&mut random, labels * labels, kinds);
            let ordered = Ordered::new(labels, labels, &table);
            for _ in 0..100 {
                let (row, column) = (random.below(labels), random.below(labels));
                let excluded = any(&mut random, labels);
                let lines = [ordered.row(row, &table), ordered.column(column)];
                let sum = |k: usize| table[row * labels + k] + table[k * labels + column];
                assert!((0..labels).all(|k| lines.iter().map(|line| line.score(k as u32)).sum::<f64>() == sum(k)));
                let least = random.below(kinds) as f64 - 2.5;
                bounds.fill(&lines);
                assert!((0..labels).all(|k| bounds.at(k as u32) >= sum(k)));
                let found = bounds.best(&lines, least, random.below(labels), |k| excluded[k as usize]);
                let most = (0..labels).filter(|&k| !excluded[k]).map(sum).filter(|&sum| sum > least);
                assert_eq!(found.map(|found| found.1), most.max_by(f64::total_cmp));
                assert!(found.is_none_or(|(k, score)| sum(k as usize) == score && !excluded[k as usize]));
            }
        }
    }

    #[test]
    fn the_best_outside_is_that_of_a_search() {
        let mut random = Random::new(7);
        for (rows, columns) in [(1, 1), (1, 5), (3, 2), (7, 5), (9, 70), (130, 64), (65, 129)] {
            let mut table = scores(&mut random, rows * columns, 5);
            let mut ordered = Ordered::new(rows, columns, &table);
            for _ in 0..200 {
                let (r, c) = (random.below(rows), random.below(columns));
                table[r * columns + c] = random.below(6) as f64 - 4.0;
                ordered.changed(r, c, &table);
                let (rows_outside, columns_outside) = (any(&mut random, rows), any(&mut random, columns));
                let row_is_out = |r: u32| rows_outside[r as usize];
                let column_is_out = |c: u32| columns_outside[c as usize];
                let at = |r: usize, c: usize| table[r * columns + c];
                let most = |scores: &mut dyn Iterator<Item = f64>| scores.max_by(f64::total_cmp);
                let inside_columns = || (0..columns).filter(|&c| !columns_outside[c]);
                let inside_rows = || (0..rows).filter(|&r| !rows_outside[r]);
                let found = best_in(ordered.row(r, &table), f64::NEG_INFINITY, column_is_out);
                assert_eq!(found.map(|found| found.1), most(&mut inside_columns().map(|c| at(r, c))));
                assert!(found.is_none_or(|(c, score)| at(r, c as usize) == score && !column_is_out(c)));
                let found = best_in(ordered.column(c), f64::NEG_INFINITY, row_is_out);
                assert_eq!(found.map(|found| found.1), most(&mut inside_rows().map(|r| at(r, c))));
                let found = ordered.anywhere(&table, row_is_out, column_is_out);
                let inside = inside_rows().flat_map(|r| inside_columns().map(move |c| (r, c)));
                assert_eq!(found.map(|(r, c)| at(r as usize, c as usize)), most(&mut inside.map(|(r, c)| at(r, c))));
                assert!(found.is_none_or(|(r, c)| !row_is_out(r) && !column_is_out(c)));
            }
        }
    }
}
