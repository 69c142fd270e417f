//! Where the scores of pairs of labels are high: of all pairs, of each row, of each column.
//!
//! Labels stand in blocks, and of each block of each row the highest score is kept; of columns the same, with a copy of the table
//! by columns, so that what is read stands together. A search for the best label reads the tops of the blocks, and the labels of
//! those few blocks only whose top is above what has been found.

use std::ops::Range;

use crate::memory::{prefetch, zeros};

/// How labels are cut into blocks, all of the same size but for the last.
///
/// The smaller they are, the closer are bounds, and the more there are to be read: more labels want larger blocks.
#[derive(Debug, Default, Clone, Copy)]
struct Blocks {
    labels: usize,
    /// The logarithm of the size.
    shift: u32,
}

/// Labels in a block at most.
const LARGE: usize = 32;

impl Blocks {
    fn of(labels: usize) -> Self {
        // By passes over generated chains: 16 were faster with 500 and 1,000 labels, 32 with 4,000, and the same with 2,000.
        Self { labels, shift: if labels <= 1024 { 4 } else { LARGE.ilog2() } }
    }

    fn count(self) -> usize {
        self.labels.div_ceil(1 << self.shift)
    }

    /// The block that a label is in.
    fn with(self, label: usize) -> usize {
        label >> self.shift
    }

    fn labels_of(self, block: usize) -> Range<usize> {
        block << self.shift..self.labels.min((block + 1) << self.shift)
    }
}

/// Numbers in a line of the cache.
const NEAR: usize = 8;

/// Scores side by side: one after the other would wait for each comparison.
const LANES: usize = 8;

/// The highest of some scores.
pub(super) fn highest(scores: &[f64]) -> f64 {
    let higher = |a: f64, b: f64| if b > a { b } else { a };
    let (groups, rest) = scores.as_chunks::<LANES>();
    let mut most = [f64::NEG_INFINITY; LANES];
    for group in groups {
        most.iter_mut().zip(group).for_each(|(most, &score)| *most = higher(*most, score));
    }
    most.iter().chain(rest).copied().fold(f64::NEG_INFINITY, higher)
}

/// `sums += scores`, of which there may be less.
fn add(scores: &[f64], sums: &mut [f64; LARGE]) {
    let (groups, rest) = scores.as_chunks::<LANES>();
    let (sums, _) = sums.as_chunks_mut::<LANES>();
    for (sums, group) in sums.iter_mut().zip(groups) {
        sums.iter_mut().zip(group).for_each(|(sum, score)| *sum += score);
    }
    if let Some(sums) = sums.get_mut(groups.len()) {
        sums.iter_mut().zip(rest).for_each(|(sum, score)| *sum += score);
    }
}

/// The highest score of each block of lines, which all have as many labels.
#[derive(Debug)]
struct Tops {
    blocks: Blocks,
    highest: Vec<f64>,
}

impl Tops {
    /// Of lines of so many labels, one after the other.
    fn of(lines: &[f64], labels: usize) -> Self {
        let blocks = Blocks::of(labels);
        let each = |line: &[f64]| line.chunks(1 << blocks.shift).map(highest).collect::<Vec<_>>();
        Self { blocks, highest: lines.chunks_exact(labels).flat_map(each).collect() }
    }

    fn of_line(&self, line: usize) -> &[f64] {
        &self.highest[line * self.blocks.count()..][..self.blocks.count()]
    }

    /// The scores of a line with its tops.
    fn line<'a>(&'a self, line: usize, scores: &'a [f64]) -> Line<'a> {
        Line { first: 0, scores, tops: self.of_line(line), blocks: self.blocks }
    }

    /// A label's score in a line was another one before. Did the top of its block change?
    fn changed(&mut self, line: usize, scores: &[f64], label: usize, before: f64) -> bool {
        let block = self.blocks.with(label);
        let top = &mut self.highest[line * self.blocks.count() + block];
        let was = *top;
        if scores[label] >= was {
            *top = scores[label];
        } else if before == was {
            *top = highest(&scores[self.blocks.labels_of(block)]);
        }
        *top != was
    }
}

/// Scores of labels: a row or a column of a table, or what some labels score by themselves.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Line<'a> {
    /// The label that the scores begin with.
    first: usize,
    scores: &'a [f64],
    tops: &'a [f64],
    blocks: Blocks,
}

impl<'a> Line<'a> {
    /// Of the labels from `first` on, without the tops of their blocks.
    pub(super) fn part(first: usize, scores: &'a [f64]) -> Self {
        Self { first, scores, ..Self::default() }
    }

    pub(super) fn score(&self, label: u32) -> f64 {
        self.scores[label as usize - self.first]
    }

    /// Asks for the score of a label that may be read soon.
    pub(super) fn ask_for_label(&self, label: u32) {
        prefetch(&self.scores[label as usize - self.first]);
    }

    /// Asks for the scores of labels that will be read soon.
    fn ask_for(&self, labels: Range<usize>) {
        self.of(labels).iter().step_by(NEAR).for_each(prefetch);
    }

    fn labels(&self) -> Range<usize> {
        self.first..self.first + self.scores.len()
    }

    fn of(&self, labels: Range<usize>) -> &'a [f64] {
        &self.scores[labels.start - self.first..labels.end - self.first]
    }
}

/// What labels score at most in several lines together, by block.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    sums: Vec<f64>,
    blocks: Blocks,
    /// Those that the lines have in common.
    labels: Range<usize>,
}

impl Bounds {
    /// Of whole rows and columns.
    pub(super) fn fill(&mut self, lines: &[Line<'_>]) {
        self.sums.clear();
        let Some((first, rest)) = lines.split_first() else { return };
        (self.blocks, self.labels) = (first.blocks, first.labels());
        self.sums.extend_from_slice(first.tops);
        for line in rest {
            self.sums.iter_mut().zip(line.tops).for_each(|(sum, top)| *sum += top);
        }
    }

    /// One line more, which may be of some labels only.
    pub(super) fn add(&mut self, line: &Line<'_>) {
        self.labels = line.labels();
        for block in 0..self.sums.len() {
            let labels = self.labels_of(block);
            self.sums[block] += if labels.is_empty() { f64::NEG_INFINITY } else { highest(line.of(labels)) };
        }
    }

    /// What the block of a label scores at most.
    pub(super) fn at(&self, label: u32) -> f64 {
        self.sums[self.blocks.with(label as usize)]
    }

    fn labels_of(&self, block: usize) -> Range<usize> {
        let Range { start, end } = self.blocks.labels_of(block);
        self.labels.start.max(start)..self.labels.end.min(end)
    }

    /// The label with the highest sum of scores in the lines that these are the bounds of, if it is above `least`, outside of some.
    /// Of equal ones it is the first from `from` on, or nearly.
    pub(super) fn best<'l>(
        &self,
        lines: &(impl Iterator<Item = &'l Line<'l>> + Clone),
        least: f64,
        from: usize,
        is_excluded: impl Fn(u32) -> bool,
    ) -> Option<(u32, f64)> {
        let mut found = None;
        let blocks = || (0..self.sums.len()).map(|block| (block + self.blocks.with(from)) % self.sums.len());
        // The one that promises most first, which spares others a look.
        let first = blocks().reduce(|a, b| if self.sums[b] > self.sums[a] { b } else { a })?;
        for block in blocks().filter(|&block| self.sums[block] > least) {
            lines.clone().for_each(|line| line.ask_for(self.labels_of(block)));
        }
        for block in std::iter::once(first).chain(blocks().filter(|&block| block != first)) {
            let most = found.map_or(least, |(_, most)| most);
            if self.sums[block] > most {
                let labels = self.labels_of(block);
                found = best_of(lines.clone(), labels, most, from, &is_excluded).or(found);
            }
        }
        found
    }
}

/// The best of the labels of one block, by the sum of lines, above `least`.
fn best_of<'l>(
    lines: impl Iterator<Item = &'l Line<'l>>,
    labels: Range<usize>,
    least: f64,
    from: usize,
    is_excluded: &impl Fn(u32) -> bool,
) -> Option<(u32, f64)> {
    let mut sums = [0.0; LARGE];
    for line in lines {
        add(line.of(labels.clone()), &mut sums);
    }
    let sums = &sums[..labels.len()];
    if highest(sums) <= least {
        return None;
    }
    let (mut found, mut most) = (None, least);
    let from = if labels.contains(&from) { from - labels.start } else { 0 };
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
        let mut transposed = zeros(rows * columns);
        // Block by block: of a large table neither side of a copy column by column would stay near.
        for block in (0..rows).step_by(LARGE) {
            for (column, line) in transposed.chunks_exact_mut(rows).enumerate() {
                for row in block..rows.min(block + LARGE) {
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
        self.in_rows.line(row, &table[row * self.columns..][..self.columns])
    }

    pub(super) fn column(&self, column: usize) -> Line<'_> {
        self.in_columns.line(column, &self.transposed[column * self.rows..][..self.rows])
    }

    /// Asks for the blocks of a pair, which are read where its score was their highest and falls.
    pub(super) fn ask_for_blocks(&self, row: usize, column: usize, table: &[f64]) {
        for (line, label) in [(self.row(row, table), column), (self.column(column), row)] {
            line.ask_for(line.blocks.labels_of(line.blocks.with(label)));
        }
    }

    /// Asks for what a search in the row and in the column of a pair reads first, and a change of its score.
    pub(super) fn ask_for(&self, row: usize, column: usize) {
        prefetch(&self.transposed[column * self.rows + row]);
        for tops in [self.in_rows.of_line(row), self.in_columns.of_line(column)] {
            // What comes after these the machine foresees.
            tops.iter().step_by(NEAR).take(4).for_each(prefetch);
        }
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
        let tops = self.of_row_tops.line(0, &self.row_tops);
        // The row that promises most first, which spares others a look.
        let (first, _) = best_in(tops, f64::NEG_INFINITY, &is_row_excluded)?;
        let mut most = look_at(first as usize);
        for (block, &top) in tops.tops.iter().enumerate() {
            if top > most {
                most = tops.blocks.labels_of(block).map(&mut look_at).fold(most, f64::max);
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
            && let Some(best) = best_of(std::iter::once(&line), line.blocks.labels_of(block), most, 0, &is_excluded)
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
        for (labels, kinds) in [(1, 7), (2, 7), (63, 7), (64, 1000), (65, 1000), (200, 7), (300, 100_000), (1100, 1000)]
        {
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
                let found = bounds.best(&lines.iter(), least, random.below(labels), |k| excluded[k as usize]);
                let most = (0..labels).filter(|&k| !excluded[k]).map(sum).filter(|&sum| sum > least);
                assert_eq!(found.map(|found| found.1), most.max_by(f64::total_cmp));
                assert!(found.is_none_or(|(k, score)| sum(k as usize) == score && !excluded[k as usize]));

                // And with what some labels score by themselves.
                let first = random.below(labels);
                let count = 1 + random.below(labels - first);
                let own = scores(&mut random, count, kinds);
                let own = Line::part(first, &own);
                bounds.add(&own);
                let found = bounds.best(&lines.iter().chain([&own]), least, 0, |k| excluded[k as usize]);
                let sum = |k: usize| sum(k) + own.score(k as u32);
                let most = own.labels().filter(|&k| !excluded[k]).map(sum).filter(|&sum| sum > least);
                assert_eq!(found.map(|found| found.1), most.max_by(f64::total_cmp));
                assert!(found.is_none_or(|(k, score)| sum(k as usize) == score && !excluded[k as usize]));
            }
        }
    }

    #[test]
    fn the_best_outside_is_that_of_a_search() {
        let mut random = Random::new(7);
        for (rows, columns) in [(1, 1), (1, 5), (3, 2), (7, 5), (9, 70), (130, 64), (65, 129), (3, 1100)] {
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
