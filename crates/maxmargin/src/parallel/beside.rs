//! Work that is done beside that of the caller, who has only one thing to do at a time.

use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// What takes items, one after the other in the order in which they are given, as far as the first that it refuses: on a thread
/// of its own, or where there is none to spare, at once. Either way the result is the same.
#[derive(Debug)]
pub(crate) struct Beside<S, I, E>(Way<S, I, E>);

#[derive(Debug)]
enum Way<S, I, E> {
    Here { state: S, take: Take<S, I, E>, refused: Option<E> },
    Thread { items: SyncSender<I>, thread: JoinHandle<Result<S, E>> },
}

/// Takes an item, or refuses it.
type Take<S, I, E> = fn(&mut S, I) -> Result<(), E>;

/// An item was refused; [`end`](Beside::end) says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused;

impl<S: Send + 'static, I: Send + 'static, E: Send + 'static> Beside<S, I, E> {
    /// So many items wait at most, then the caller does: what is not yet taken needs memory.
    const WAITING: usize = 8;

    /// Whatever `threads` says, without a thread of its own where none can be had.
    pub(crate) fn new(state: impl Fn() -> S, take: Take<S, I, E>, threads: usize) -> Self {
        let here = || Self(Way::Here { state: state(), take, refused: None });
        if threads < 2 {
            return here();
        }
        let (items, given) = sync_channel(Self::WAITING);
        let mut own = state();
        let thread = Builder::new().spawn(move || given.iter().try_for_each(|item| take(&mut own, item)).map(|()| own));
        thread.map_or_else(|_| here(), |thread| Self(Way::Thread { items, thread }))
    }

    /// The next item. Refusals are told late, or only in the end.
    pub(crate) fn give(&mut self, item: I) -> Result<(), Refused> {
        match &mut self.0 {
            Way::Here { refused: Some(_), .. } => Err(Refused),
            Way::Here { state, take, refused } => take(state, item).map_err(|why| {
                *refused = Some(why);
                Refused
            }),
            // The thread has ended.
            Way::Thread { items, .. } => items.send(item).map_err(|_| Refused),
        }
    }

    /// What came of all items, or why one was refused.
    ///
    /// # Panics
    /// If the thread did.
    pub(crate) fn end(self) -> Result<S, E> {
        match self.0 {
            Way::Here { refused: Some(why), .. } => Err(why),
            Way::Here { state, .. } => Ok(state),
            Way::Thread { items, thread } => {
                drop(items);
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(state: &mut Vec<u32>, item: u32) -> Result<(), String> {
        assert!(item < 1000, "the largest there are");
        if item > 100 {
            return Err(format!("{item} is too large after {}", state.len()));
        }
        state.push(item);
        Ok(())
    }

    #[test]
    fn items_are_taken_in_order() {
        for threads in [1, 2, 5] {
            let mut beside = Beside::new(Vec::new, small, threads);
            (0..100).for_each(|item| beside.give(item).unwrap());
            assert_eq!(beside.end().unwrap(), (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_refusal_is_told() {
        for threads in [1, 2] {
            let mut beside = Beside::new(Vec::new, small, threads);
            // More than can wait: sooner or later the caller hears of it.
            let heard =
                [1, 2, 500, 600].into_iter().cycle().take(100).map(|item| beside.give(item)).find(Result::is_err);
            assert_eq!(heard, Some(Err(Refused)));
            assert_eq!(beside.end().unwrap_err(), "500 is too large after 2");
        }
    }

    #[test]
    #[should_panic(expected = "the largest there are")]
    fn a_panic_comes_through() {
        let mut beside = Beside::new(Vec::new, small, 2);
        let _ = beside.give(5000);
        let _ = beside.end();
    }
}
