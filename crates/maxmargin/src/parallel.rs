//! The only place with threads.
//!
//! Work is cut into parts that depend on the data alone, never on the number of threads, and results come
//! back in the order of the parts: whoever reduces them in that order gets the same bits on every machine.

mod beside;
mod crew;

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use crate::error::{Error, Result};

pub(crate) use beside::Beside;
pub(crate) use crew::Crew;
pub(crate) use std::thread::{Scope, scope};

/// Some threads, ready to work.
#[derive(Debug)]
pub struct Pool {
    pool: Option<rayon::ThreadPool>,
}

impl Pool {
    /// A pool of `threads` threads; 0 means one for each core.
    pub fn new(threads: usize) -> Result<Self> {
        let threads = if threads == 0 { available() } else { threads };
        if threads == 1 {
            return Ok(Self { pool: None });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|e| Error::setting("threads", format!("cannot start {threads} threads: {e}")))?;
        Ok(Self { pool: Some(pool) })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// Calls `work` with every number below `count`, each once, on the threads of the pool.
    ///
    /// This is the only place that meets rayon: `map` and `each`, which callers use with hundreds of different types, are
    /// thin wrappers, so that its machinery is compiled once and not once per call.
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        match &self.pool {
            Some(pool) => pool.install(|| (0..count).into_par_iter().with_max_len(1).for_each(work)),
            None => (0..count).for_each(work),
        }
    }

    /// Returns `f` of every item, in the order of the items.
    pub fn map<I: Send, R: Send>(&self, items: Vec<I>, f: impl Fn(I) -> R + Sync + Send) -> Vec<R> {
        if self.pool.is_none() {
            return items.into_iter().map(f).collect();
        }
        let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
        let results: Vec<_> = items.iter().map(|_| Mutex::new(None)).collect();
        self.run(items.len(), &|at| {
            let item = lock(&items[at]).take().expect("each number comes once");
            let result = f(item);
            *lock(&results[at]) = Some(result);
        });
        let taken = results.into_iter().map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
        taken.map(|result| result.expect("each number came")).collect()
    }

    /// `f` on one of the threads. Calls of the pool within it need not wake the others, which have just worked, each time.
    pub fn inside<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(f),
            None => f(),
        }
    }

    /// `f` on every item in place, with its number. Of several errors the one of the first item is returned. Allocates
    /// nothing on one thread.
    pub fn each<I: Send>(&self, items: &mut [I], f: impl Fn(usize, &mut I) -> Result<()> + Sync + Send) -> Result<()> {
        if self.pool.is_none() {
            return items.iter_mut().enumerate().try_for_each(|(at, item)| f(at, item));
        }
        let items: Vec<_> = items.iter_mut().map(Mutex::new).collect();
        let failed = Mutex::new(None::<(usize, Error)>);
        self.run(items.len(), &|at| {
            if lock(&failed).as_ref().is_some_and(|(first, _)| *first < at) {
                return;
            }
            if let Err(error) = f(at, &mut lock(&items[at])) {
                let mut failed = lock(&failed);
                if failed.as_ref().is_none_or(|(first, _)| at < *first) {
                    *failed = Some((at, error));
                }
            }
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Locks a slot. A panic of the work is passed on by the pool, so a poisoned slot is never read.
fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of cores that this process may use.
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// `0..n` in at most `parts` ranges of nearly equal length, none empty.
pub fn ranges(n: usize, parts: usize) -> Vec<Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(|p| n * p / parts..n * (p + 1) / parts).filter(|r| !r.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_without_overlap() {
        for n in [0, 1, 2, 7, 100] {
            for parts in [1, 2, 3, 16] {
                let all: Vec<usize> = ranges(n, parts).into_iter().flatten().collect();
                assert_eq!(all, (0..n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn results_keep_their_order() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads).unwrap();
            assert_eq!(pool.map((0..100).collect(), |i: i32| i * i), (0..100).map(|i| i * i).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_error_is_returned() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads).unwrap();
            let mut items = vec![0; 50];
            pool.each(&mut items, |at, item| {
                *item = at;
                Ok(())
            })
            .unwrap();
            assert_eq!(items, (0..50).collect::<Vec<_>>());
            let fails = |at: usize, _: &mut usize| {
                if at % 10 == 7 { Err(Error::setting("item", at.to_string())) } else { Ok(()) }
            };
            assert!(pool.each(&mut items, fails).unwrap_err().to_string().contains(" 7"));
        }
    }
}
