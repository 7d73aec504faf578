use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use driftline_db::testing::databases;
use driftline_db::{DbError, Target};

use crate::{SOURCE, TABLES, gate, insert, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_finishes_what_is_queued_and_joins_the_threads() {
    for fresh in databases() {
        let db = fresh.open(TABLES);
        let (wait, entered, open) = gate();
        let running = tokio::spawn({
            let db = db.clone();
            async move {
                db.write(SOURCE, move |tx| {
                    wait()?;
                    insert(tx, 1)
                })
                .await
            }
        });
        tokio::task::spawn_blocking(move || entered.recv())
            .await
            .expect("a task")
            .expect("runs");
        // Closing waits without blocking its thread.
        let mut waiting = pin!(db.close());
        let polled = waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        let closing = tokio::spawn({
            let db = db.clone();
            async move { db.close().await }
        });
        assert!(!closing.is_finished());
        open.send(()).expect("the write waits");
        assert_eq!(running.await.expect("a task"), Ok(()));
        closing.await.expect("a task");
        assert_eq!(
            db.write(SOURCE, |tx| insert(tx, 2)).await,
            Err(DbError::Closed)
        );
        assert_eq!(
            db.read(|_| Ok::<_, DbError>(())).await,
            Err(DbError::Closed)
        );
        db.close().await;

        if let Target::Sqlite { path } = &fresh.target {
            let log = path.with_extension("db-wal");
            assert!(!log.exists(), "the last connection was closed");
        }
        let again = fresh.open(TABLES);
        let ids = again
            .read(|tx| tx.query("select id from post", &[], |row| row.i64(0)))
            .await;
        assert_eq!(ids, Ok::<_, DbError>(vec![1]));
        again.close().await;
    }
}

/// A connection that only reads may not take the log away, so the writer's waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_outlives_the_last_write_leaves_no_log() {
    for fresh in databases() {
        let db = fresh.open(TABLES);
        assert_eq!(db.write(SOURCE, |tx| insert(tx, 1)).await, Ok(()));
        let (wait, entered, open) = gate();
        let running = tokio::spawn({
            let db = db.clone();
            async move { db.read(move |_| wait()).await }
        });
        tokio::task::spawn_blocking(move || entered.recv())
            .await
            .expect("a task")
            .expect("runs");
        let mut closing = pin!(db.close());
        let polled = closing
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        if let Target::Sqlite { path } = &fresh.target {
            // The writer has written the log into the file, and would be closed.
            let log = path.with_extension("db-wal");
            until("the log is empty", || {
                std::fs::metadata(&log).map_or(0, |log| log.len()) == 0
            });
        }
        open.send(()).expect("the read waits");
        assert_eq!(running.await.expect("a task"), Ok(()));
        closing.await;
        if let Target::Sqlite { path } = &fresh.target {
            assert!(
                !path.with_extension("db-wal").exists(),
                "the log was taken away"
            );
        }
    }
}

#[tokio::test]
async fn dropping_the_last_handle_on_an_async_thread_is_harmless() {
    for fresh in databases() {
        let db = fresh.open(TABLES);
        db.write(SOURCE, |tx| insert(tx, 1)).await.expect("a write");
        drop(db);
    }
}
