//! Work on several threads at once.

use std::thread;

use crate::failure::Failure;

/// Works with each item on a thread of its own; the results in the order of the items.
pub(crate) fn each<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let work = &work;
    thread::scope(|scope| {
        let threads = items
            .into_iter()
            .map(|item| scope.spawn(move || work(item)));
        let threads: Vec<_> = threads.collect();
        let panicked = |_| Err(Failure::new("a thread panicked"));
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked));
        ended.collect()
    })
}
