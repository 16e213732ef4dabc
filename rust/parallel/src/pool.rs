//! The thread pools of this process, by their number of workers.
//!
//! Starting threads takes longer than most calls run, so pools are kept. A process uses few sizes (one, as a rule), so they
//! are in a list that is searched from its head.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The head of the list of pools, the latest first. Nodes are never removed or changed once they are in the list.
static POOLS: AtomicPtr<PoolNode> = AtomicPtr::new(ptr::null_mut());

struct PoolNode {
    /// The process that made the pool. A forked child finds the nodes of its parent, but their threads do not exist in it.
    process: u32,
    /// The number of threads of `pool`.
    workers: usize,
    pool: ThreadPool,
    next: *const PoolNode,
}

/// Returns the pool of this process that has `workers` threads, making it at the first call.
///
/// Pools live as long as the process. Finding one takes no lock, so a process that forks at any moment leaves its child
/// nothing locked; the child makes new pools, since threads do not survive a fork. Returns `None` if the system
/// cannot start the threads: results do not depend on the number of threads, so the caller can do the work alone.
pub fn thread_pool(workers: usize) -> Option<&'static ThreadPool> {
    let process = process::id();
    let mut head = POOLS.load(Ordering::Acquire);
    if let Some(pool) = find(head, process, workers) {
        return Some(pool);
    }
    let name = |i| format!("wordpiece-{i}");
    let pool = ThreadPoolBuilder::new().num_threads(workers).thread_name(name).build().ok()?;
    let node = Box::into_raw(Box::new(PoolNode { process, workers, pool, next: head }));
    loop {
        match POOLS.compare_exchange(head, node, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: `node` came from `Box::into_raw` and is now in the list, whose nodes are never freed or changed.
            Ok(_) => return Some(unsafe { &(*node).pool }),
            Err(now) => {
                if let Some(pool) = find(now, process, workers) {
                    // Another thread was quicker.
                    // SAFETY: `node` came from `Box::into_raw` and is not in the list, so nothing else points to it.
                    drop(unsafe { Box::from_raw(node) });
                    return Some(pool);
                }
                head = now;
                // SAFETY: `node` came from `Box::into_raw` and is not in the list, so this is the only access to it.
                unsafe { (*node).next = head };
            }
        }
    }
}

/// Searches the list that begins at `node`, which must be null or have come from [`POOLS`].
fn find(mut node: *const PoolNode, process: u32, workers: usize) -> Option<&'static ThreadPool> {
    // SAFETY: `POOLS` and each `next` hold null or a pointer to a node of the list, which is never freed or changed.
    while let Some(this) = unsafe { node.as_ref() } {
        if (this.process, this.workers) == (process, workers) {
            return Some(&this.pool);
        }
        node = this.next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::thread_pool;

    #[test]
    fn one_pool_for_each_number_of_workers() {
        let pools: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| thread_pool(2).expect("threads"))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(pools.iter().all(|pool| std::ptr::eq(*pool, pools[0])), "threads that race find the same pool");
        assert_eq!(pools[0].current_num_threads(), 2);
        assert_eq!(thread_pool(3).expect("threads").current_num_threads(), 3);
    }
}
