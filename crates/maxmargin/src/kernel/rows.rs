//! The rows of the Gram matrix in one precision: kept, or computed block by block of columns on all threads.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cache::Cache;
use super::combine::add_row;
use super::panel::{Panels, ROWS, Row};
use super::real::Real;
use super::{Entry, Standard};
use crate::parallel::Pool;
use crate::sparse::SparseMatrix;

/// Below so many values one thread is done before others would have begun.
const WORTH_SHARING: usize = 200_000;
/// So many numbers of a kept row are added in the time of one value.
const ADDED_PER_VALUE: usize = 8;
/// One value alone takes the time of so many of a whole row.
const ALONE: usize = 32;
/// From so many rows on it pays to put columns into tiles for them.
const WORTH_TILES: usize = 3;

/// All atoms as columns, and the rows that are kept.
#[derive(Debug)]
pub(super) struct Rows<R> {
    atoms: Arc<SparseMatrix>,
    panels: Panels<R>,
    cache: Mutex<Cache<R>>,
}

/// Where the values of a row come from.
#[derive(Debug)]
enum Source<R> {
    Kept(Arc<Vec<R>>),
    /// Computed, and kept from now on.
    Fresh,
    /// Computed and forgotten.
    Passing,
}

/// An atom, the coefficients with which its row is added to an image, and where the row comes from.
#[derive(Debug)]
struct Run<'e, R> {
    atom: u32,
    entries: &'e [Entry],
    source: Source<R>,
}

impl<R: Real> Rows<R> {
    pub(super) fn new(panels: Panels<R>, atoms: &Arc<SparseMatrix>, cache: usize) -> Self {
        Self { atoms: Arc::clone(atoms), panels, cache: Mutex::new(Cache::new(atoms.rows(), cache)) }
    }

    /// `K(a, b)`
    pub(super) fn value(&self, a: u32, b: u32) -> R {
        self.panels.value(self.atoms.row(a as usize), self.atoms.row(b as usize))
    }

    pub(super) fn cached_bytes(&self) -> usize {
        self.cache().bytes()
    }

    // A thread that panicked has left a whole cache: rows come and go in one step.
    fn cache(&self) -> MutexGuard<'_, Cache<R>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the rows of all runs to the image, in their order, and keeps as many as there is room for. Runs without entries are
    /// only for keeping. Returns how many values were computed.
    pub(super) fn sweep(&self, runs: &[(u32, &[Entry])], width: usize, image: &mut [f64], pool: &Pool) -> usize {
        let (mut fresh, runs) = self.sources(runs);
        let computed = runs.iter().filter(|run| !matches!(run.source, Source::Kept(_))).count();
        let added: usize = runs.iter().map(|run| run.entries.len()).sum();
        let work = (computed + added / ADDED_PER_VALUE) * self.atoms.rows();

        let (mut image, mut rows) = (image, fresh.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
        let mut share = |columns: Range<usize>| {
            let len = columns.len();
            let image = image.split_off_mut(..len * width).unwrap_or_default();
            let rows: Vec<_> = rows.iter_mut().map(|row| row.split_off_mut(..len).unwrap_or_default()).collect();
            (columns, image, rows)
        };
        let add = |(columns, image, rows)| self.add_block(&runs, columns, width, image, rows);
        if work < WORTH_SHARING {
            self.panels.blocks().map(&mut share).for_each(add);
        } else {
            pool.map(self.panels.blocks().map(&mut share).collect(), add);
        }

        if !fresh.is_empty() {
            let mut cache = self.cache();
            let kept = runs.iter().filter(|run| matches!(run.source, Source::Fresh));
            kept.zip(fresh).for_each(|(run, row)| cache.insert(run.atom, row));
        }
        computed * self.atoms.rows()
    }

    /// Where each row comes from, and the buffers of those to be kept. Drops runs of which nothing is wanted.
    fn sources<'e>(&self, runs: &[(u32, &'e [Entry])]) -> (Vec<Vec<R>>, Vec<Run<'e, R>>) {
        let mut cache = self.cache();
        let kept: Vec<_> = runs.iter().map(|&(atom, _)| cache.get(atom)).collect();
        let found = kept.iter().flatten().count();
        let fresh = cache.room(runs.len() - found, found);
        drop(cache);
        let mut rooms = fresh.len();
        let run = |(&(atom, entries), kept): (&(u32, &'e [Entry]), Option<_>)| {
            let source = match kept {
                Some(row) => Source::Kept(row),
                None if rooms > 0 => {
                    rooms -= 1;
                    Source::Fresh
                }
                None if entries.is_empty() => return None,
                None => Source::Passing,
            };
            Some(Run { atom, entries, source })
        };
        (fresh, runs.iter().zip(kept).filter_map(run).collect())
    }

    /// The same for the columns of one block; `fresh` are the parts of the rows to be kept.
    fn add_block(
        &self,
        runs: &[Run<'_, R>],
        columns: Range<usize>,
        width: usize,
        image: &mut [f64],
        fresh: Vec<&mut [R]>,
    ) {
        let passing = runs.iter().filter(|run| matches!(run.source, Source::Passing)).count();
        let mut buffer = vec![R::ZERO; passing.min(ROWS) * columns.len()];
        let mut fresh = fresh.into_iter();
        for runs in runs.chunks(ROWS) {
            let mut spare = buffer.chunks_exact_mut(columns.len());
            let row = |run: &Run<'_, R>| {
                let values = match run.source {
                    Source::Kept(_) => return None,
                    Source::Fresh => fresh.next(),
                    Source::Passing => spare.next(),
                };
                let atom = run.atom as usize;
                values.map(|values| Row::new(self.atoms.row(atom), self.panels.norm_of(atom), values, columns.len()))
            };
            let mut rows: Vec<Row<'_, R>> = runs.iter().filter_map(row).collect();
            if !rows.is_empty() {
                self.panels.values(columns.clone(), &mut rows);
            }
            let mut computed = rows.iter();
            for run in runs {
                let values: &[R] = match &run.source {
                    Source::Kept(row) => &row[columns.clone()],
                    _ => computed.next().map_or(&[], |row| row.values),
                };
                for entry in run.entries {
                    add_row(entry.value, values, entry.slot as usize, width, image);
                }
            }
        }
    }

    /// `values[i * columns.len() + j] = K(rows[i], columns[j])`. Returns how many values were computed.
    pub(super) fn between(
        &self,
        standard: Option<Standard>,
        rows: &[u32],
        columns: &[u32],
        values: &mut [f64],
        pool: &Pool,
    ) -> usize {
        if columns.is_empty() {
            return 0;
        }
        let len = columns.len();
        let Some(standard) = standard.filter(|_| rows.len() >= WORTH_TILES) else {
            let shares = rows.iter().zip(values.chunks_exact_mut(len)).collect();
            return pool.map(shares, |(&a, values)| self.gather(a, columns, values)).into_iter().sum();
        };
        let vectors: Vec<_> = columns.iter().map(|&b| self.atoms.row(b as usize)).collect();
        let panels = self.panels.of_some(standard, &vectors);
        let fill = |(rows, values): (&[u32], &mut [f64])| {
            let row = |&a: &u32| (self.atoms.row(a as usize), self.panels.norm_of(a as usize));
            panels.each(&rows.iter().map(row).collect::<Vec<_>>(), |i, start, block| {
                let values = &mut values[i * len + start..][..block.len()];
                values.iter_mut().zip(block).for_each(|(value, x)| *value = x.f64());
            });
        };
        let shares = rows.chunks(ROWS).zip(values.chunks_mut(ROWS * len));
        if rows.len() * len < WORTH_SHARING {
            shares.for_each(fill);
        } else {
            pool.map(shares.collect(), fill);
        }
        rows.len() * len
    }

    /// `values[j] = K(a, columns[j])`: from the row if it is kept, and else computed in the cheaper of two ways.
    fn gather(&self, a: u32, columns: &[u32], values: &mut [f64]) -> usize {
        let kept = self.cache().get(a);
        let (row, computed) = match kept {
            Some(row) => (row, 0),
            None if !self.panels.are_products() || columns.len() * ALONE < self.atoms.rows() => {
                values.iter_mut().zip(columns).for_each(|(value, &b)| *value = self.value(a, b).f64());
                return columns.len();
            }
            None => {
                let mut row = vec![R::ZERO; self.atoms.rows()];
                let a = (self.atoms.row(a as usize), self.panels.norm_of(a as usize));
                self.panels.each(&[a], |_, start, block| row[start..][..block.len()].copy_from_slice(block));
                let len = row.len();
                (Arc::new(row), len)
            }
        };
        values.iter_mut().zip(columns).for_each(|(value, &b)| *value = row[b as usize].f64());
        computed
    }
}
