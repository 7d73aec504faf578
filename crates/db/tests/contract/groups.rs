use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use driftline_db::testing::{Fresh, databases};
use driftline_db::{Db, DbError};

use crate::{SOURCE, TABLES, gate, ids, insert, until, write};

/// One poll, as a runtime would do it.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Opens with one writer and a short queue.
fn open_narrow(fresh: &Fresh, queue: usize) -> Db {
    let mut options = fresh.options(TABLES);
    options.writers = 1;
    options.queue = queue;
    Db::open(options).expect("a database")
}

#[test]
fn sqlite_commits_what_is_queued_together() {
    let fresh = Fresh::sqlite();
    let db = &fresh.open(TABLES);
    let (wait, entered, open) = gate();
    thread::scope(|scope| {
        scope.spawn(|| write(db, move |_| wait()).expect("a write"));
        entered.recv().expect("the write runs");
        let writes: Vec<_> = (0..20)
            .map(|id| {
                scope.spawn(move || {
                    write(db, move |tx| {
                        insert(tx, id)?;
                        match id % 5 {
                            1 => insert(tx, id),
                            2 => panic!("on purpose"),
                            3 => {
                                let _ = insert(tx, id);
                                Ok(())
                            }
                            _ => Ok(()),
                        }
                    })
                })
            })
            .collect();
        until("all are queued", || db.stats().write_queue == 20);
        open.send(()).expect("the write waits");
        for (id, write) in writes.into_iter().enumerate() {
            let result = write.join().expect("no panic");
            match id % 5 {
                1 => assert!(
                    matches!(result, Err(DbError::Conflict { .. })),
                    "{id}: {result:?}"
                ),
                2 => assert_eq!(result, Err(DbError::Panicked), "{id}"),
                3 => assert!(
                    matches!(result, Err(DbError::Poisoned(_))),
                    "{id}: {result:?}"
                ),
                _ => assert_eq!(result, Ok(()), "{id}"),
            }
        }
    });
    assert_eq!(ids(db), [0, 4, 5, 9, 10, 14, 15, 19]);
    let stats = db.stats();
    assert_eq!(stats.writes, 9);
    // A group is also bounded in time, which panics with backtraces may take.
    assert!(stats.commits < 9 && stats.largest_group > 1, "{stats:?}");
    db.close_blocking();
}

#[test]
fn a_dropped_future_is_skipped_while_queued_and_commits_once_running() {
    for fresh in databases() {
        let db = open_narrow(&fresh, 10);
        let (wait, entered, open) = gate();
        {
            let mut running = pin!(db.write(SOURCE, move |tx| {
                insert(tx, 1)?;
                wait()
            }));
            assert!(poll_once(running.as_mut()).is_pending());
            entered.recv().expect("the write runs");
        }
        {
            let mut queued = pin!(db.write(SOURCE, |tx| insert(tx, 2)));
            assert!(poll_once(queued.as_mut()).is_pending());
            until("it is queued", || db.stats().write_queue == 1);
        }
        open.send(()).expect("the write waits");
        write(&db, |tx| insert(tx, 3)).expect("a write");
        assert_eq!(ids(&db), [1, 3]);
        db.close_blocking();
    }
}

#[test]
fn a_full_queue_makes_callers_wait() {
    for fresh in databases() {
        let db = open_narrow(&fresh, 2);
        let (wait, entered, open) = gate();
        let mut running = pin!(db.write(SOURCE, move |_| wait()));
        assert!(poll_once(running.as_mut()).is_pending());
        entered.recv().expect("the write runs");
        let mut waiting: Vec<_> = (0..5)
            .map(|id| Box::pin(db.write(SOURCE, move |tx| insert(tx, id))))
            .collect();
        for write in &mut waiting {
            assert!(poll_once(write.as_mut()).is_pending());
        }
        assert_eq!(db.stats().write_queue, 2);
        // One that gives up while it waits for a slot leaves no trace.
        drop(waiting.remove(3));
        open.send(()).expect("the write waits");
        until("all have run", || {
            waiting.retain_mut(|write| poll_once(write.as_mut()).is_pending());
            waiting.is_empty()
        });
        assert_eq!(ids(&db), [0, 1, 2, 4]);
        db.close_blocking();
    }
}
