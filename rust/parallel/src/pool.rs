//! The threads of this process that help calls.
//!
//! Starting threads takes longer than most calls run, so they are kept. There is one pool: a call that asks for more threads
//! than there are adds to it, and one that asks for fewer uses as many of them as it asks for.

use std::any::Any;
use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::interrupt::{self, Interrupted};

/// How long an idle thread spins before it sleeps: about as long as waking it up takes.
const LINGER: Duration = Duration::from_micros(50);

/// The pool of the process that used one last. Pools are never freed, so a pointer to one stays valid.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// All threads of a process that help calls.
struct Pool {
    /// The process that made the pool. A forked child finds the pool of its parent, but the threads do not exist in it.
    process: u32,
    state: Mutex<State>,
    /// Notified when a task is added.
    added: Condvar,
    /// The number of workers that all tasks together still wait for; changes only while `state` is locked.
    wanted: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// Tasks that wait for workers, the oldest first, and the number of workers that each waits for.
    tasks: VecDeque<(Arc<Task>, usize)>,
    /// The number of threads.
    threads: usize,
    /// The number of those that sleep.
    sleeping: usize,
    /// The number of those that spin until a task is added.
    lingering: usize,
}

/// A function that workers run beside a caller.
struct Task {
    /// Valid until the caller returns from [`Workers::run_beside`].
    function: *const (dyn Fn() + Sync),
    /// The number of workers that have returned from it.
    ended: AtomicUsize,
    /// What workers panicked with, the first first. The caller drops them: a destructor that panics must not end a worker.
    panics: Mutex<Vec<Payload>>,
    caller: Thread,
}

/// What a thread panicked with.
type Payload = Box<dyn Any + Send>;

// SAFETY: the function is `Sync`, so any thread may call it, and the caller keeps it alive until all have returned from it.
unsafe impl Send for Task {}
// SAFETY: as for `Send`; all other fields are `Sync`.
unsafe impl Sync for Task {}

/// Threads that help the calling one: some of the threads of the pool.
#[derive(Clone, Copy)]
pub struct Workers {
    pool: &'static Pool,
    count: usize,
}

/// Returns `count` threads that help the calling one, starting those that do not exist yet; `None` for 0.
///
/// Threads live as long as the process. Finding them takes no lock that a fork could leave locked: a child makes a new pool,
/// since threads do not survive a fork. If the system cannot start all threads, there are fewer, or `None`: results do not
/// depend on the number of threads.
pub fn thread_pool(count: usize) -> Option<Workers> {
    let pool = Pool::of_this_process();
    let mut state = lock(&pool.state);
    while state.threads < count {
        let name = format!("wordpiece-{}", state.threads);
        if thread::Builder::new().name(name).spawn(|| pool.work()).is_err() {
            break;
        }
        state.threads += 1;
    }
    let count = count.min(state.threads);
    (count > 0).then_some(Workers { pool, count })
}

impl Pool {
    /// Returns the pool of this process, a new one if it has none.
    fn of_this_process() -> &'static Pool {
        let process = process::id();
        let mut new: *mut Pool = ptr::null_mut();
        loop {
            let found = POOL.load(Ordering::Acquire);
            // SAFETY: `POOL` holds null or a pointer from `Box::into_raw` below, which is never freed once it is there.
            if let Some(pool) = unsafe { found.as_ref() }.filter(|pool| pool.process == process) {
                if !new.is_null() {
                    // Another thread was quicker.
                    // SAFETY: `new` comes from `Box::into_raw` and was not stored in `POOL`, so nothing else points to it.
                    drop(unsafe { Box::from_raw(new) });
                }
                return pool;
            }
            if new.is_null() {
                let (state, added) = (Mutex::default(), Condvar::new());
                new = Box::into_raw(Box::new(Pool { process, state, added, wanted: AtomicUsize::new(0) }));
            }
            if POOL.compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                // SAFETY: `new` comes from `Box::into_raw` and is never freed now that it was stored.
                return unsafe { &*new };
            }
        }
    }

    /// Whether this process was forked from the one that made the pool.
    fn is_of_parent(&self) -> bool {
        self.process != process::id()
    }

    /// Runs tasks as they are added, for as long as the process lives.
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(task) = self.take(&mut state) {
                drop(state);
                task.run();
                state = lock(&self.state);
                if state.tasks.is_empty() {
                    state.lingering += 1;
                    drop(state);
                    linger(|| self.wanted.load(Ordering::Relaxed) > 0);
                    state = lock(&self.state);
                    state.lingering -= 1;
                }
            } else {
                state.sleeping += 1;
                state = self.added.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.sleeping -= 1;
            }
        }
    }

    /// Takes part in the oldest task that waits for workers.
    fn take(&self, state: &mut State) -> Option<Arc<Task>> {
        let (task, wanted) = state.tasks.front_mut()?;
        let task = Arc::clone(task);
        *wanted -= 1;
        if *wanted == 0 {
            state.tasks.pop_front();
        }
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        Some(task)
    }

    /// Adds a task for `count` workers.
    fn add(&self, task: Arc<Task>, count: usize) {
        let mut state = lock(&self.state);
        state.tasks.push_back((task, count));
        let wanted = self.wanted.fetch_add(count, Ordering::Relaxed) + count;
        // Threads that linger find the task by themselves.
        let woken = wanted.saturating_sub(state.lingering).min(state.sleeping);
        drop(state);
        for _ in 0..woken {
            self.added.notify_one();
        }
    }

    /// Takes a task back, so that no more workers take part in it; returns how many it was still waiting for.
    fn withdraw(&self, task: &Arc<Task>) -> usize {
        let mut state = lock(&self.state);
        let Some(at) = state.tasks.iter().position(|(other, _)| Arc::ptr_eq(other, task)) else { return 0 };
        let missing = state.tasks.remove(at).map_or(0, |(_, wanted)| wanted);
        self.wanted.fetch_sub(missing, Ordering::Relaxed);
        missing
    }

    /// Takes back a task that was added for `count` workers and waits until those that took part in it have ended.
    ///
    /// Polls every 20 ms. A poll that panics is the last: returns what it panicked with, and does not unwind.
    ///
    /// Does not wait in a process that was forked since: it has no workers, and one may have held a lock.
    fn withdraw_and_wait(&self, task: &Arc<Task>, count: usize) -> Option<Payload> {
        if self.is_of_parent() {
            return Some(Box::new(Interrupted));
        }
        let begun = count - self.withdraw(task);
        let have_ended = || task.ended.load(Ordering::Acquire) == begun;
        // Spin first: most workers end at about the same time, and sleeping takes longer.
        linger(have_ended);
        let mut panicked = None;
        while !have_ended() {
            thread::park_timeout(interrupt::POLL_INTERVAL);
            if panicked.is_none() {
                panicked = catch_unwind(interrupt::poll).err();
                if self.is_of_parent() {
                    return Some(Box::new(Interrupted));
                }
            }
        }
        panicked
    }
}

impl Task {
    fn run(&self) {
        // SAFETY: the caller waits in `run_beside` until `ended` was incremented for each worker that took the task.
        let function = unsafe { &*self.function };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(function)) {
            lock(&self.panics).push(panic);
        }
        // The function must not be touched any more.
        self.ended.fetch_add(1, Ordering::Release);
        self.caller.unpark();
    }
}

impl Workers {
    /// Returns the number of threads that help, without the calling one.
    pub fn count(self) -> usize {
        self.count
    }

    /// Runs `work` on at most `limit` of the workers and `caller` on this thread, and returns once all have returned.
    ///
    /// Workers that are busy do not take part: when `caller` returns, those that have not begun by then never begin. If this
    /// is another process than before, forked by a poll, there are no workers: it unwinds with [`Interrupted`].
    ///
    /// # Panics
    ///
    /// If `caller`, a poll while it waits for the workers, or a worker panics, after all have ended. Of several panics, the
    /// first of these continues.
    pub(crate) fn run_beside(self, limit: usize, work: &(dyn Fn() + Sync), caller: &dyn Fn()) {
        let count = limit.min(self.count);
        // SAFETY: only the lifetime changes. Between `add`, after which a worker may call `work`, and the return of
        // `withdraw_and_wait`, after which none calls it any more, nothing unwinds: what may panic is caught, and what it
        // panicked with is dropped later. The guard aborts the process if that should ever be wrong.
        let function = unsafe { mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
        let task = Arc::new(Task {
            function,
            ended: AtomicUsize::new(0),
            panics: Mutex::default(),
            caller: thread::current(),
        });
        let guard = AbortOnUnwind;
        if count > 0 {
            self.pool.add(Arc::clone(&task), count);
        }
        // Unwind safety: the panic continues below, so nobody sees what it left half done.
        let own = catch_unwind(AssertUnwindSafe(caller)).err();
        let polled = self.pool.withdraw_and_wait(&task, count);
        mem::forget(guard);
        let workers = if self.pool.is_of_parent() { Vec::new() } else { mem::take(&mut *lock(&task.panics)) };
        let mut panics = own.into_iter().chain(polled).chain(workers);
        let first = panics.next();
        panics.for_each(discard);
        if let Some(panic) = first {
            resume_unwind(panic);
        }
    }
}

/// Aborts the process when it is dropped: by a panic where workers still use what unwinding would free.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        process::abort();
    }
}

/// Drops what a thread panicked with. If that panics, too, what it panics with is leaked.
fn discard(panic: Payload) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        mem::forget(panic);
    }
}

/// Spins until `condition` holds or [`LINGER`] has passed.
///
/// Waking a sleeping thread takes some 30 µs, in which 20 KB of text are tokenized: for batches of 64 KiB in a row, a
/// second thread would be of no use. The loop does not yield: two yielding threads look idle to the scheduler, which then
/// leaves both on one processor while another has nothing to do.
fn linger(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() && start.elapsed() < LINGER {
        for _ in 0..16 {
            std::hint::spin_loop();
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::{lock, thread_pool};
    use crate::{checkpoint, interruptible};

    #[test]
    fn there_is_one_pool_and_a_call_uses_as_many_of_its_threads_as_it_asks_for() {
        let pools: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..9).map(|n| scope.spawn(move || thread_pool(n).expect("threads"))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(pools.iter().all(|workers| std::ptr::eq(workers.pool, pools[0].pool)));
        assert_eq!(pools.iter().map(|workers| workers.count()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(lock(&pools[0].pool.state).threads <= 16, "as many as the largest call asked for, in any test");
        assert!(thread_pool(0).is_none());
    }

    #[test]
    fn no_more_workers_than_asked_for_take_part_and_all_calls_end() {
        const ROUNDS: usize = if cfg!(miri) { 20 } else { 500 };
        thread_pool(6);
        let workers = thread_pool(2).expect("threads");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
                        let work = || {
                            begun.fetch_add(1, Ordering::Relaxed);
                            std::hint::black_box((0..100).sum::<u64>());
                            ended.fetch_add(1, Ordering::Relaxed);
                        };
                        workers.run_beside(5, &work, &work);
                        let [begun, ended] = [begun, ended].map(AtomicUsize::into_inner);
                        assert!(begun == ended && (1..=3).contains(&begun), "{begun} begun, {ended} ended");
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_of_a_worker_or_of_the_caller_continues_once_all_have_ended() {
        let workers = thread_pool(2).expect("threads");
        let begun = AtomicUsize::new(0);
        let fail = || {
            begun.fetch_add(1, Ordering::Relaxed);
            panic!("of a worker");
        };
        let wait = || {
            while begun.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
        };
        let panic = catch_unwind(AssertUnwindSafe(|| workers.run_beside(1, &fail, &wait))).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "of a worker");
        let panic = catch_unwind(AssertUnwindSafe(|| workers.run_beside(1, &|| (), &|| panic!("of the caller"))));
        assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "of the caller");
    }

    /// Which part of a call panics.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Panics {
        Caller,
        PollWhileWaiting,
        PollOfCaller,
        Worker,
    }

    #[test]
    fn whatever_panics_no_worker_runs_the_function_after_the_call() {
        let workers = thread_pool(3).expect("threads");
        for panics in [Panics::Caller, Panics::PollWhileWaiting, Panics::PollOfCaller, Panics::Worker] {
            let [begun, ended] = [(); 2].map(|()| AtomicUsize::new(0));
            let polled = AtomicBool::new(false);
            let is_polled = matches!(panics, Panics::PollWhileWaiting | Panics::PollOfCaller);
            let mut poll = || {
                polled.store(true, Ordering::Relaxed);
                assert!(!is_polled, "of a poll");
                true
            };
            let call = || {
                // Memory that is gone once the call has returned: AddressSanitizer sees who still uses it.
                let lent = [(); 64].map(|()| AtomicUsize::new(0));
                let work = || {
                    begun.fetch_add(1, Ordering::Relaxed);
                    while is_polled && !polled.load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                    for number in &lent {
                        number.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(Duration::from_micros(500));
                    }
                    ended.fetch_add(1, Ordering::Relaxed);
                    assert!(panics != Panics::Worker, "of a worker");
                };
                let caller = || {
                    while begun.load(Ordering::Relaxed) == 0 {
                        thread::yield_now();
                    }
                    if panics == Panics::PollOfCaller {
                        loop {
                            checkpoint(); // until it panics
                        }
                    }
                    assert!(panics != Panics::Caller, "of the caller");
                };
                workers.run_beside(3, &work, &caller);
            };
            let panic = catch_unwind(AssertUnwindSafe(|| interruptible(|| true, &mut poll, call))).unwrap_err();
            let [begun, ended] = [begun, ended].map(AtomicUsize::into_inner);
            assert!(begun > 0 && begun == ended, "{panics:?}: {begun} begun, {ended} ended");
            let expected = match panics {
                Panics::Caller => "of the caller",
                Panics::Worker => "of a worker",
                Panics::PollWhileWaiting | Panics::PollOfCaller => "of a poll",
            };
            assert_eq!(panic.downcast_ref::<&str>(), Some(&expected));
        }
    }

    #[test]
    fn a_poll_that_panics_cancels_the_workers() {
        let workers = thread_pool(2).expect("threads");
        let begun = AtomicBool::new(false);
        let endless = || loop {
            begun.store(true, Ordering::Relaxed);
            checkpoint();
        };
        let wait = || {
            while !begun.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        };
        let call = || {
            crate::interrupt::with_computation(|computation| {
                let help = || crate::interrupt::take_part(computation, &endless);
                workers.run_beside(2, &help, &wait);
            })
        };
        let panic =
            catch_unwind(AssertUnwindSafe(|| interruptible(|| true, &mut || panic!("of a poll"), call))).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "of a poll");
    }

    /// By a poll of the caller, or while it waits for a worker.
    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "forks")]
    fn a_child_that_a_poll_forks_is_interrupted_and_its_parent_goes_on() {
        const ENDED: libc::c_int = 7;
        for is_waiting in [false, true] {
            let workers = thread_pool(2).expect("threads");
            let (mut child, parent) = (0, std::process::id());
            let mut fork = || {
                if child == 0 {
                    // SAFETY: the child calls nothing but what is tested, which needs no lock of another thread, and `_exit`.
                    child = unsafe { libc::fork() };
                }
                true
            };
            let main = thread::current().id();
            let slow = |(): &mut (), _: usize| {
                let is_long = (thread::current().id() == main) != is_waiting;
                for _ in 0..if is_long { 60 } else { 0 } {
                    checkpoint();
                    thread::sleep(Duration::from_millis(2));
                }
            };
            let done = interruptible(|| true, &mut fork, || crate::map_with(vec![0, 1], Some(workers), || (), slow));
            if std::process::id() != parent {
                // SAFETY: ends this process, whatever its state.
                unsafe { libc::_exit(if done.is_err() { ENDED } else { 1 }) };
            }
            assert!(done.is_ok());
            if child == 0 {
                continue; // the worker was so late that the caller did everything in time
            }
            let mut status = 0;
            let ended = (0..500).any(|_| {
                thread::sleep(Duration::from_millis(10));
                // SAFETY: `status` is a number that the function may write to.
                unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) == child }
            });
            if !ended {
                // SAFETY: it is the child of this test, which has not been waited for.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
            assert!(ended && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == ENDED, "{is_waiting}: {status}");
        }
    }

    #[test]
    fn what_workers_panic_with_may_panic_when_it_is_dropped() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                // A value without memory, since it is leaked.
                panic_any(());
            }
        }
        let workers = thread_pool(3).expect("threads");
        for _ in 0..if cfg!(miri) { 2 } else { 10 } {
            let begun = AtomicUsize::new(0);
            let fail = || {
                begun.fetch_add(1, Ordering::Relaxed);
                panic_any(Bomb);
            };
            let wait = || {
                while begun.load(Ordering::Relaxed) < 3 {
                    thread::yield_now();
                }
            };
            let panic = catch_unwind(AssertUnwindSafe(|| workers.run_beside(3, &fail, &wait))).unwrap_err();
            assert!(panic.is::<Bomb>());
            std::mem::forget(panic);
        }
    }
}
