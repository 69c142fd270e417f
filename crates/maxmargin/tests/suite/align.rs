//! The decoder of alignments against exhaustive search, and against the textbook's recurrences in plain f64.

use crate::common;

use common::Draw;
use maxmargin::inference::align::{Aligner, Bonuses, Op, Path, Reach, Rows, Run};

/// Scores of a pair, as plain tables.
#[derive(Debug)]
struct Tables {
    reach: Reach,
    /// By row, column: with bonuses.
    matches: Vec<Vec<f64>>,
    /// The letter of each row, and what its cells have besides.
    keys: Vec<u32>,
    base: Vec<Vec<f64>>,
    bonuses: Vec<Vec<(u32, f64)>>,
    /// Of columns, then of rows: the first column of a gap, every further one.
    open: [Vec<f64>; 2],
    extend: [Vec<f64>; 2],
}

impl Tables {
    fn random(draw: &mut Draw, columns: usize, rows: usize, reach: Reach, is_integer: bool, gap: f64) -> Self {
        let letters = 1 + draw.below(4);
        let mut number = |shift: f64| {
            if is_integer { (draw.below(7) as f64 - 3.0) + shift.round() } else { 3.0 * draw.signed() + shift }
        };
        let base: Vec<Vec<f64>> = (0..letters).map(|_| (0..columns).map(|_| number(0.0)).collect()).collect();
        let open = [(0..columns).map(|_| number(-gap)).collect(), (0..rows).map(|_| number(-gap)).collect()];
        let extend =
            [(0..columns).map(|_| number(-0.5 * gap)).collect(), (0..rows).map(|_| number(-0.5 * gap)).collect()];
        let keys: Vec<u32> = (0..rows).map(|_| draw.below(letters) as u32).collect();
        let bonuses: Vec<Vec<(u32, f64)>> = (0..rows)
            .map(|_| {
                let some = if columns == 0 { 0 } else { draw.below(3) };
                (0..some).map(|_| (draw.below(columns) as u32, (draw.below(5) as f64) - 2.0)).collect()
            })
            .collect();
        let mut matches: Vec<Vec<f64>> = keys.iter().map(|&key| base[key as usize].clone()).collect();
        for (row, cells) in matches.iter_mut().zip(&bonuses) {
            for &(j, bonus) in cells {
                row[j as usize] += bonus;
            }
        }
        Self { reach, matches, keys, base, bonuses, open, extend }
    }

    fn size(&self) -> (usize, usize) {
        (self.open[0].len(), self.open[1].len())
    }

    /// The score of an alignment, from the definition; None where it is none.
    fn score(&self, path: &Path) -> Option<f64> {
        let (columns, rows) = self.size();
        let mut total = 0.0;
        for (run, i, j) in path.places() {
            for k in 0..run.count {
                let (i, j) = ((i + k) as usize, (j + k) as usize);
                let gap =
                    |side: usize, at: usize| if k == 0 { self.open[side].get(at) } else { self.extend[side].get(at) };
                total += match run.op {
                    Op::Match => *self.matches.get(j)?.get(i)?,
                    Op::OnlyX => *gap(0, i)?,
                    Op::OnlyZ => *gap(1, j)?,
                };
            }
        }
        let (x, z) = path.end()?;
        let is_whole = (path.x, path.z) == (0, 0) && (x as usize, z as usize) == (columns, rows);
        let is_match = |run: Option<&Run>| run.is_some_and(|run| run.op == Op::Match);
        let is_local = path.runs.is_empty() || is_match(path.runs.first()) && is_match(path.runs.last());
        let fits = if self.reach == Reach::Global { is_whole } else { is_local };
        fits.then_some(total)
    }

    /// All alignments from a place on, gaps in pieces, too.
    fn all(&self, x: usize, z: usize, path: &mut Path, visit: &mut impl FnMut(&Path)) {
        visit(path);
        let (columns, rows) = self.size();
        for op in [Op::Match, Op::OnlyX, Op::OnlyZ] {
            let (x, z) = (x + usize::from(op != Op::OnlyZ), z + usize::from(op != Op::OnlyX));
            if x > columns || z > rows {
                continue;
            }
            let last = path.runs.last().copied();
            if last.is_some_and(|run| run.op == op) {
                let at = path.runs.len() - 1;
                path.runs[at].count += 1;
                self.all(x, z, path, visit);
                path.runs[at].count -= 1;
            }
            if op != Op::Match || last.is_none_or(|run| run.op != op) {
                path.runs.push(Run { op, count: 1 });
                self.all(x, z, path, visit);
                path.runs.pop();
            }
        }
    }

    fn exhaustive(&self) -> f64 {
        let (columns, rows) = self.size();
        let mut best = f64::NEG_INFINITY;
        let starts: Vec<(usize, usize)> = match self.reach {
            Reach::Global => vec![(0, 0)],
            Reach::Local => (0..=columns).flat_map(|x| (0..=rows).map(move |z| (x, z))).collect(),
        };
        for (x, z) in starts {
            let mut path = Path { x: x as u32, z: z as u32, runs: Vec::new() };
            self.all(x, z, &mut path, &mut |path| best = self.score(path).map_or(best, |score| best.max(score)));
        }
        best
    }

    /// The textbook: three tables, cell by cell.
    fn textbook(&self) -> f64 {
        let (columns, rows) = self.size();
        let none = f64::NEG_INFINITY;
        let (mut h, mut e, mut f) = (
            vec![vec![none; columns + 1]; rows + 1],
            vec![vec![none; columns + 1]; rows + 1],
            vec![vec![none; columns + 1]; rows + 1],
        );
        let mut best = 0.0_f64;
        for i in 0..=rows {
            for j in 0..=columns {
                let mut own = if i + j == 0 && self.reach == Reach::Global { 0.0 } else { none };
                if i > 0 && j > 0 {
                    let before: f64 = h[i - 1][j - 1];
                    let before = if self.reach == Reach::Local { before.max(0.0) } else { before };
                    own = before + self.matches[i - 1][j - 1];
                    best = best.max(own);
                }
                if i > 0 {
                    f[i][j] = (h[i - 1][j] + self.open[1][i - 1]).max(f[i - 1][j] + self.extend[1][i - 1]);
                }
                if j > 0 {
                    e[i][j] = (h[i][j - 1] + self.open[0][j - 1]).max(e[i][j - 1] + self.extend[0][j - 1]);
                }
                h[i][j] = own.max(e[i][j]).max(f[i][j]);
            }
        }
        if self.reach == Reach::Local { best } else { h[rows][columns] }
    }

    /// The decoder's answer, three times: the score alone, with the whole table, and with few of its rows.
    fn decoded(&self, aligner: &mut Aligner, most: usize) -> (f64, Path) {
        let mut bonuses = Bonuses::default();
        for cells in &self.bonuses {
            bonuses.next_row();
            for &(j, bonus) in cells {
                bonuses.add(j, bonus);
            }
        }
        aligner.begin(self.reach, &self.open[0], &self.extend[0]);
        for (key, row) in (0..).zip(&self.base) {
            aligner.add_row(key, row.iter().copied());
        }
        let rows = Rows { keys: &self.keys, open: &self.open[1], extend: &self.extend[1], bonuses: &bonuses };
        let score = aligner.score(rows);
        let (mut path, mut other) = (Path::default(), Path { x: 7, z: 7, runs: vec![Run { op: Op::OnlyX, count: 9 }] });
        aligner.limit(usize::MAX);
        let with_path = aligner.best(rows, &mut path);
        aligner.limit(most);
        let in_blocks = aligner.best(rows, &mut other);
        assert_eq!([score.to_bits(); 2], [with_path.to_bits(), in_blocks.to_bits()], "{score} {with_path} {in_blocks}");
        let (a, b) = (self.score(&path), self.score(&other));
        assert!(a.is_some() && b.is_some(), "no alignments: {path:?} {other:?}");
        assert!((a.unwrap() - b.unwrap()).abs() <= 1e-9 * (1.0 + score.abs()), "{path:?} and {other:?}");
        (score, path)
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + b.abs())
}

#[test]
fn small_pairs_agree_with_exhaustive_search() {
    let mut aligner = Aligner::default();
    for seed in 0..600 {
        let mut draw = Draw(seed);
        let (columns, rows) = (draw.below(4), draw.below(4));
        let reach = if seed % 2 == 0 { Reach::Local } else { Reach::Global };
        // Gaps that cost a lot, little, or even pay.
        let gap = [4.0, 1.0, 0.0, -2.0][draw.below(4)];
        let tables = Tables::random(&mut draw, columns, rows, reach, seed % 3 == 0, gap);
        let best = tables.exhaustive();
        let (score, path) = tables.decoded(&mut aligner, draw.below(40));
        assert!(close(score, best), "seed {seed}: {score} is not {best}");
        assert!(close(tables.score(&path).unwrap(), best), "seed {seed}: {path:?}");
        assert!(close(tables.textbook(), best), "seed {seed}: the textbook");
    }
}

#[test]
fn larger_pairs_agree_with_the_textbook() {
    let mut aligner = Aligner::default();
    for seed in 0..200 {
        let mut draw = Draw(1000 + seed);
        let (columns, rows) = (draw.below(90), draw.below(90));
        let reach = if seed % 2 == 0 { Reach::Local } else { Reach::Global };
        let gap = [6.0, 2.0, 0.5, -1.0][draw.below(4)];
        let tables = Tables::random(&mut draw, columns, rows, reach, seed % 3 == 0, gap);
        let (score, path) = tables.decoded(&mut aligner, 1 + draw.below(2000));
        assert!(close(score, tables.textbook()), "seed {seed}: {score} is not {}", tables.textbook());
        assert!(close(tables.score(&path).unwrap(), score), "seed {seed}: {path:?}");
    }
}

/// Gaps longer than the blocks of rows that are worked out again.
#[test]
fn long_gaps_cross_blocks() {
    let mut aligner = Aligner::default();
    for (columns, rows) in [(3, 400), (400, 3), (60, 300)] {
        for seed in 0..10 {
            let mut draw = Draw(seed);
            let mut tables = Tables::random(&mut draw, columns, rows, Reach::Global, false, 0.0);
            for side in [0, 1] {
                tables.open[side].iter_mut().for_each(|score| *score = -5.0);
                tables.extend[side].iter_mut().for_each(|score| *score = -0.01);
            }
            let (score, path) = tables.decoded(&mut aligner, 1);
            assert!(
                close(score, tables.textbook()) && close(tables.score(&path).unwrap(), score),
                "{columns} x {rows}"
            );
        }
    }
}

/// Ends of gaps come off, and nothing else.
#[test]
fn trimmed_paths_begin_and_end_with_matches() {
    let run = |op, count| Run { op, count };
    let mut path = Path {
        x: 1,
        z: 2,
        runs: vec![
            run(Op::OnlyX, 3),
            run(Op::OnlyZ, 2),
            run(Op::Match, 4),
            run(Op::OnlyX, 1),
            run(Op::Match, 1),
            run(Op::OnlyZ, 9),
        ],
    };
    path.trim();
    assert_eq!(path, Path { x: 4, z: 4, runs: vec![run(Op::Match, 4), run(Op::OnlyX, 1), run(Op::Match, 1)] });
    assert_eq!(path.matches().collect::<Vec<_>>(), [(4, 4), (5, 5), (6, 6), (7, 7), (9, 8)]);
    let mut gaps = Path { x: 0, z: 0, runs: vec![run(Op::OnlyX, 3), run(Op::OnlyZ, 2)] };
    gaps.trim();
    assert_eq!(gaps, Path::default());
    assert_eq!(Path { x: u32::MAX, z: 0, runs: vec![run(Op::Match, 1)] }.end(), None);
}
