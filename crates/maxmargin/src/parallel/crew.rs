//! Threads at the ready, for calls of some dozens of microseconds, hundreds of thousands of them.
//!
//! Waking a sleeping thread takes as long as such a call. So who has just worked watches for the next call for a while
//! before going to sleep.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, Thread};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// So long a thread watches before it sleeps: longer than the pause between two calls of a row.
const WATCH: Duration = Duration::from_micros(300);

/// What a thread has to do.
const NOTHING: u8 = 0;
const WORK: u8 = 1;
/// It has taken the job.
const BUSY: u8 = 2;
const STOP: u8 = 3;
/// It is gone: for a caller who waits for its work, by a panic.
const DEAD: u8 = 4;

/// Helpers that take a job J each at every call, and have a desk D of their own.
pub(crate) struct Crew<J, D> {
    helpers: Vec<Helper<J, D>>,
}

struct Helper<J, D> {
    shared: Arc<Shared<J, D>>,
    thread: Thread,
}

struct Shared<J, D> {
    state: AtomicU8,
    job: Mutex<Option<J>>,
    desk: Mutex<D>,
}

impl<J, D> Shared<J, D> {
    fn desk(&self) -> MutexGuard<'_, D> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the job.
    fn job(&self) -> Option<J> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Goes from one state to another; false where it was in a third one.
    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Waits until the state is another one; `sleep` once that takes long.
    fn state_after(&self, state: u8, sleep: impl Fn()) -> u8 {
        let mut since = None;
        loop {
            for _ in 0..64 {
                let now = self.state.load(Ordering::Acquire);
                if now != state {
                    return now;
                }
                std::hint::spin_loop();
            }
            if since.get_or_insert_with(Instant::now).elapsed() > WATCH {
                sleep();
            }
        }
    }
}

impl<J: Send, D: Default + Send> Crew<J, D> {
    /// Starts `count` threads that do `work` with every job.
    pub(crate) fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        count: usize,
        work: impl Fn(J, &mut D) + Copy + Send + 'scope,
    ) -> Result<Self>
    where
        J: 'scope,
        D: 'scope,
    {
        let mut crew = Self { helpers: Vec::with_capacity(count) };
        for _ in 0..count {
            let state = AtomicU8::new(NOTHING);
            let shared = Arc::new(Shared { state, job: Mutex::default(), desk: Mutex::default() });
            let own = Arc::clone(&shared);
            let handle = Builder::new()
                .spawn_scoped(scope, move || serve(&own, work))
                .map_err(|e| Error::setting("threads", format!("cannot start {count} threads: {e}")))?;
            crew.helpers.push(Helper { shared, thread: handle.thread().clone() });
        }
        Ok(crew)
    }

    /// Offers every helper a job, does `own` meanwhile, and comes back when all who took one are done. Who has not taken it by
    /// then is not waited for, and the job not done: jobs are shares of one piece of work, of which `own` takes what is left.
    ///
    /// # Panics
    /// If a helper does.
    pub(crate) fn call<R>(&mut self, job: impl Fn() -> J, own: impl FnOnce() -> R) -> R {
        for Helper { shared, thread } in &self.helpers {
            *shared.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(job());
            shared.state.store(WORK, Ordering::Release);
            thread.unpark();
        }
        let result = own();
        for Helper { shared, .. } in &self.helpers {
            if shared.change(WORK, NOTHING) {
                shared.job();
                continue;
            }
            let state = shared.state_after(BUSY, std::thread::yield_now);
            assert!(state == NOTHING, "a thread has failed");
        }
        result
    }

    /// Number of helpers.
    pub(crate) fn len(&self) -> usize {
        self.helpers.len()
    }

    /// The desks of the helpers.
    pub(crate) fn desks(&self) -> impl Iterator<Item = MutexGuard<'_, D>> {
        self.helpers.iter().map(|helper| helper.shared.desk())
    }
}

/// The life of a helper.
fn serve<J, D>(shared: &Shared<J, D>, work: impl Fn(J, &mut D)) {
    /// Tells whoever waits for this thread that it need not, should a job panic.
    struct Alarm<'s>(&'s AtomicU8);
    impl Drop for Alarm<'_> {
        fn drop(&mut self) {
            self.0.store(DEAD, Ordering::Release);
        }
    }
    let _alarm = Alarm(&shared.state);
    while shared.state_after(NOTHING, std::thread::park) != STOP {
        // Unless it has been taken back.
        if shared.change(WORK, BUSY) {
            if let Some(job) = shared.job() {
                work(job, &mut shared.desk());
            }
            // Unless it is to stop.
            shared.change(BUSY, NOTHING);
        }
    }
}

impl<J, D> Drop for Crew<J, D> {
    fn drop(&mut self) {
        for Helper { shared, thread } in &self.helpers {
            shared.state.store(STOP, Ordering::Release);
            thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// The items of each call are shared out among all threads.
    #[test]
    fn every_call_is_done_once_and_whole() {
        for count in [0, 1, 3] {
            std::thread::scope(|scope| {
                let work = |(next, calls): (Arc<AtomicUsize>, u64), sum: &mut u64| {
                    while next.fetch_add(1, Ordering::Relaxed) < 10 {
                        *sum += calls;
                    }
                };
                let mut crew = Crew::start(scope, count, work).unwrap();
                let mut own = 0;
                for call in 0..2000 {
                    if call % 500 == 0 {
                        // Long enough to fall asleep.
                        std::thread::sleep(2 * WATCH);
                    }
                    let job = (Arc::new(AtomicUsize::new(0)), call);
                    crew.call(|| job.clone(), || work(job.clone(), &mut own));
                    assert_eq!(Arc::strong_count(&job.0), 1, "what was lent is given back");
                }
                let others: u64 = crew.desks().map(|sum| *sum).sum();
                assert_eq!((own + others, crew.desks().count()), (10 * 1999 * 1000, count));
            });
        }
    }

    #[test]
    fn a_panic_is_not_waited_for() {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                let mut crew = Crew::start(scope, 2, |job: u32, (): &mut ()| assert!(job < 3, "a bad job")).unwrap();
                for job in 0..10 {
                    // Long enough for the job to be taken.
                    crew.call(|| job, || std::thread::sleep(Duration::from_millis(20)));
                }
            });
        }));
        assert!(outcome.is_err());
    }

    #[test]
    fn the_caller_may_panic() {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                let mut crew = Crew::start(scope, 2, |(): (), (): &mut ()| ()).unwrap();
                crew.call(|| (), || panic!("on purpose"));
            });
        }));
        assert!(outcome.is_err());
    }
}
