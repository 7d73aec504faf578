//! The embedded database: one writer that commits in groups, and a pool of readers.

mod connection;
mod error;
mod statement;
mod vacuum;

use std::time::{Duration, Instant};

use rusqlite::Connection;

pub(crate) use connection::{
    HELD, create_private, may_write, open_immutable, open_reader, open_to_read, open_writer,
};
pub(crate) use error::classify;
pub(crate) use statement::{command, each, execute, script};
pub(crate) use vacuum::vacuum;

use crate::error::DbError;
use crate::job::{Job, Ran};
use crate::queue::Queue;
use crate::stats::Counters;
use crate::tx::Tx;

/// Runs writes until the queue is closed and empty, and calls `between` between their transactions.
pub(crate) fn write_all(
    connection: &Connection,
    queue: &Queue,
    most: usize,
    counters: &Counters,
    between: impl Fn(),
) {
    while let Some(first) = queue.pop() {
        write_group(connection, first, queue, most, counters);
        between();
    }
    if let Err(error) = connection.execute_batch("pragma optimize; pragma wal_checkpoint(truncate)")
    {
        tracing::debug!(%error, "the last checkpoint was left to the next start");
    }
}

/// Runs reads, each on one snapshot, until the queue is closed and empty.
pub(crate) fn read_all(connection: &Connection, queue: &Queue) {
    while let Some(mut job) = queue.pop() {
        let mut end = command(connection, "begin deferred");
        if end.is_ok() {
            // The error of a read concerns only that read. There is nothing to commit or to run
            // again.
            end = match job.run(&mut Tx::sqlite(connection)) {
                Ran::Commit | Ran::RollBack => Ok(()),
                Ran::Again(error) => Err(error),
            };
            roll_back(connection);
        }
        job.finish(end);
    }
}

/// Runs `first`, and the other jobs that are queued by then, in one transaction.
///
/// Each job of a group has a savepoint, so that a failing one leaves no trace. A single job needs
/// none. All answers wait for the commit, and its failure applies to all: a job may have been
/// rejected because of a row that another job of the group had just written.
fn write_group(
    connection: &Connection,
    first: Box<dyn Job>,
    queue: &Queue,
    most: usize,
    counters: &Counters,
) {
    let shared = most > 1 && queue.len() > 0;
    if let Err(error) = command(connection, "begin immediate") {
        return first.finish(Err(error));
    }
    let started = Instant::now();
    let mut group = Vec::new();
    let mut kept = 0;
    let mut end = Ok(());
    let mut next = Some(first);
    while let Some(mut job) = next.take() {
        let ran = run_one(connection, job.as_mut(), shared);
        group.push(job);
        match ran {
            Ok(Ran::Commit) => kept += 1,
            Ok(Ran::RollBack) => {}
            Ok(Ran::Again(error)) | Err(error) => end = Err(error),
        }
        // Some errors, such as a full disk, make SQLite roll back by itself.
        if end.is_ok() && connection.is_autocommit() {
            end = Err(DbError::Other("SQLite rolled the transaction back".into()));
        }
        if shared && end.is_ok() && group.len() < most && started.elapsed() < GROUP_TIME {
            next = queue.try_pop();
        }
    }
    if end.is_ok() && kept > 0 {
        end = command(connection, "commit");
    }
    if !connection.is_autocommit() {
        roll_back(connection);
    }
    if end.is_ok() && kept > 0 {
        counters.committed(kept);
    }
    // A single failed job keeps its own, more precise error.
    if group.len() == 1 && kept == 0 {
        end = Ok(());
    }
    for job in group {
        job.finish(end.clone());
    }
}

fn run_one(connection: &Connection, job: &mut dyn Job, shared: bool) -> Result<Ran, DbError> {
    if shared {
        command(connection, "savepoint job")?;
    }
    let ran = job.run(&mut Tx::sqlite(connection));
    if shared && !connection.is_autocommit() {
        if ran != Ran::Commit {
            command(connection, "rollback to savepoint job")?;
        }
        command(connection, "release savepoint job")?;
    }
    Ok(ran)
}

fn roll_back(connection: &Connection) {
    if let Err(error) = command(connection, "rollback") {
        tracing::warn!(%error, "a rollback failed");
    }
}

/// The time in which a group accepts further jobs. The first one waits for all of them.
const GROUP_TIME: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::job::Call;
    use crate::options::Root;

    type Answer = tokio::sync::oneshot::Receiver<Result<(), DbError>>;

    fn queue_insert(queue: &Queue, parent: i64) -> Answer {
        let (job, answer) = Call::boxed("".into(), Root::none(), move |tx: &mut Tx<'_>| {
            tx.execute("insert into child (parent) values ($1)", &[&parent])
                .map(|_| ())
        });
        let pushed = pin!(queue.push(job)).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(pushed, Poll::Ready(Ok(())));
        answer
    }

    /// Queues inserts of the parents and runs the first three as one group, on the given tables.
    fn group_of_three(tables: &str, parents: [i64; 4]) -> (Connection, Queue, Vec<Answer>) {
        let connection = Connection::open_in_memory().expect("a database");
        connection.execute_batch(tables).expect("tables");
        let queue = Queue::new(10);
        let answers = parents.map(|parent| queue_insert(&queue, parent));
        assert_eq!(writes_of_next_group(&connection, &queue), 0);
        (connection, queue, answers.into())
    }

    fn writes_of_next_group(connection: &Connection, queue: &Queue) -> u64 {
        let counters = Counters::default();
        let first = queue.try_pop().expect("a job");
        write_group(connection, first, queue, 3, &counters);
        counters.lock().writes
    }

    /// A foreign key that is checked at the commit is the only way to make a commit fail.
    #[test]
    fn a_groups_failed_commit_is_everybodys() {
        let (connection, queue, mut answers) = group_of_three(
            "pragma foreign_keys = on;
             create table parent (id integer primary key);
             create table child (
                 parent integer references parent (id) deferrable initially deferred
             );
             insert into parent values (1);",
            [1, 7, 1, 1],
        );
        for answer in &mut answers[..3] {
            assert!(matches!(answer.try_recv(), Ok(Err(DbError::Constraint(_)))));
        }
        assert_eq!(writes_of_next_group(&connection, &queue), 1);
        assert_eq!(answers[3].try_recv(), Ok(Ok(())));
        let count: i64 = connection
            .query_row("select count(*) from child", [], |row| row.get(0))
            .expect("a count");
        assert_eq!(count, 1);
    }

    #[test]
    fn a_group_that_sqlite_rolls_back_fails_as_a_whole() {
        let (connection, queue, mut answers) = group_of_three(
            "create table child (parent integer unique on conflict rollback);
             insert into child values (7);",
            [1, 7, 2, 3],
        );
        assert!(matches!(answers[0].try_recv(), Ok(Err(DbError::Other(_)))));
        assert!(matches!(answers[1].try_recv(), Ok(Err(_))));
        assert!(answers[2].try_recv().is_err(), "not run yet");
        assert_eq!(writes_of_next_group(&connection, &queue), 2);
        assert_eq!(answers[2].try_recv(), Ok(Ok(())));
    }
}
