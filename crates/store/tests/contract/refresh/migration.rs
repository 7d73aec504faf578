//! A store from before posts were refreshed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use driftline_db::{Db, DbError, Options, Root, testing::databases};
use driftline_store::{MIGRATIONS, testing};

use super::{HOUR_MS, check_schedule};
use crate::world::START_MS;

#[test]
fn recent_posts_of_an_older_store_come_due_and_old_ones_do_not() {
    for fresh in databases() {
        let old = Db::open(Options::new(fresh.target.clone(), &MIGRATIONS[..2])).expect("a store");
        old.write_blocking(Root::none(), |tx| {
            let day_ms = 24 * HOUR_MS;
            let posts = [
                (101, Some(START_MS - day_ms), None),
                (102, Some(START_MS - 29 * day_ms), None),
                (103, Some(START_MS - 31 * day_ms), None),
                (104, None, None),
                (105, Some(START_MS - day_ms), Some(START_MS)),
            ];
            for (id, created_at_ms, deleted_ms) in posts {
                tx.execute(
                    "insert into post (id, instance_id, upstream_id, first_source_id,
                         created_at_ms, read_at_ms, visibility, content_hash, deleted_at_ms,
                         listed, raw)
                     values ($1, 1, $2, 1, $3, $4, 'public', 7, $5, true, '{}')",
                    &[&id, &id.to_string(), &created_at_ms, &START_MS, &deleted_ms],
                )?;
            }
            Ok::<_, DbError>(())
        })
        .expect("posts");
        old.close_blocking();
        let store = testing::open(&fresh);
        let passed = catch_unwind(AssertUnwindSafe(|| {
            assert_eq!(check_schedule(&store), 2);
            let due = store.read_blocking(|tx| {
                tx.query(
                    "select post_id, due_at_ms from schedule order by post_id",
                    &[],
                    |row| Ok((row.i64(0)?, row.i64(1)?)),
                )
            });
            let due: Vec<(i64, i64)> = due.map_err(|error: DbError| error).expect("due times");
            let ids: Vec<i64> = due.iter().map(|(id, _)| *id).collect();
            assert_eq!(ids, [101, 102]);
            let within = START_MS..START_MS + 4 * HOUR_MS;
            assert!(due.iter().all(|(_, due_ms)| within.contains(due_ms)));
        }));
        store.close_blocking();
        assert!(passed.is_ok(), "on {}", fresh.name);
    }
}
