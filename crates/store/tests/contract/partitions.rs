//! Months of history on PostgreSQL: what a new store has, and how months come and go while others write.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use driftline_db::{
    Db,
    testing::{Fresh, is_distributed},
};
use driftline_store::{
    Root, Store, StoreError, Tx, block_on, database_clock,
    partitions::{self, MONTHS_AHEAD, Month, TABLES},
    testing,
};

const DAY_MS: i64 = 86_400_000;

fn run(db: &Db, sql: &str) {
    try_run(db, sql).expect(sql);
}

fn try_run(db: &Db, sql: &str) -> Result<(), StoreError> {
    let sql = sql.to_owned();
    db.write_blocking(Root::none(), move |tx| {
        tx.execute(&sql, &[])?;
        Ok(())
    })
}

fn now_ms(db: &Db) -> i64 {
    let now = db.read_blocking(database_clock::now_ms);
    now.expect("the time")
}

/// A row in each table.
fn add(tx: &mut Tx<'_>, post: i64, at_ms: i64) -> Result<(), StoreError> {
    tx.execute(
        "insert into count_history (post_id, at_ms, favourites, instance_id) values ($1, $2, 1, 1)",
        &[&post, &at_ms],
    )?;
    tx.execute(
        "insert into post_history (post_id, seq, kind, at_ms, raw, instance_id)
         values ($1, 1, 'edit', $2, '{}', 1)",
        &[&post, &at_ms],
    )?;
    Ok(())
}

fn add_now(db: &Db, post: i64, at_ms: i64) {
    let added = db.write_blocking(Root::none(), move |tx| add(tx, post, at_ms));
    added.expect("a row");
}

/// What a table has: posts with their times, in order.
fn rows(db: &Db, table: &str) -> Vec<(i64, i64)> {
    let sql = format!("select post_id, at_ms from {table} order by 1, 2");
    let read = move |tx: &mut Tx<'_>| {
        tx.query(&sql, &[], |row| {
            Ok((row.i64("post_id")?, row.i64("at_ms")?))
        })
    };
    db.read_blocking(read).expect("rows")
}

/// The names of a table's partitions.
fn partitions_of(db: &Db, table: &'static str) -> Vec<String> {
    let read = move |tx: &mut Tx<'_>| {
        tx.query(
            "select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
             where i.inhparent = to_regclass($1) order by 1",
            &[&table],
            |row| row.text("name"),
        )
    };
    db.read_blocking(read).expect("names")
}

fn months_of(table: &str, now: Month) -> Vec<String> {
    let months = (1..=MONTHS_AHEAD).map(|months| format!("{table}_{}", now.plus(months)));
    let others = ["default", "first"].map(|other| format!("{table}_{other}"));
    months.chain(others).collect()
}

#[test]
fn a_new_store_has_the_months_to_come() {
    let store = testing::open(&Fresh::postgres());
    assert_eq!(block_on(partitions::make_ahead(&store)), Ok(()));
    let now = Month::of(now_ms(&store));
    let reaches = block_on(partitions::reaches(&store)).expect("how far they reach");
    assert_eq!(reaches.len(), TABLES.len());
    for reach in reaches {
        let until = now.plus(MONTHS_AHEAD + 1);
        assert_eq!((reach.until_ms, reach.default_rows), (until.start_ms(), 0));
        assert_eq!(
            partitions_of(&store, reach.table),
            months_of(reach.table, now)
        );
    }
    // PostgreSQL's calendar is the same.
    let theirs = store.read_blocking(|tx| {
        let sql = "select cast(1000 * extract(epoch from month) as bigint) as start_ms
             from generate_series(timestamp '1600-01-01', '2800-01-01', '1 month') as month";
        tx.query(sql, &[], |row| row.i64("start_ms"))
    });
    let first = Month::of(-11_676_096_000_000);
    for (months, start_ms) in (0..).zip(theirs.expect("months")) {
        assert_eq!(first.plus(months).start_ms(), start_ms);
    }
    store.close_blocking();
    let file = testing::open(&Fresh::sqlite());
    assert_eq!(block_on(partitions::reaches(&file)), Ok(Vec::new()));
    assert_eq!(block_on(partitions::make_ahead(&file)), Ok(()));
    file.close_blocking();
}

#[test]
fn rows_of_any_time_lie_in_the_partition_of_their_time() {
    let store = testing::open(&Fresh::postgres());
    let now_ms = now_ms(&store);
    let month = Month::of(now_ms);
    let next_month_ms = month.plus(1).start_ms();
    let times = [
        i64::MIN,
        -5,
        0,
        now_ms - 400 * DAY_MS,
        now_ms,
        next_month_ms - 1,
        next_month_ms,
        month.plus(2).start_ms() + 5,
        month.plus(MONTHS_AHEAD + 1).start_ms(),
        253_402_300_800_000,
        i64::MAX,
    ];
    for (post, at_ms) in (1..).zip(times) {
        add_now(&store, post, at_ms);
    }
    let expected: Vec<(i64, i64)> = (1..).zip(times).collect();
    for table in TABLES {
        assert_eq!(rows(&store, table), expected);
        let first = rows(&store, &format!("{table}_first"));
        assert_eq!(first, expected[..6], "{table}");
        for months in 1..=MONTHS_AHEAD {
            let month = month.plus(months);
            let of_month: Vec<_> = expected
                .iter()
                .filter(|(_, at_ms)| Month::of(*at_ms) == month && *at_ms < i64::MAX)
                .copied()
                .collect();
            assert_eq!(rows(&store, &format!("{table}_{month}")), of_month);
        }
        assert_eq!(
            rows(&store, &format!("{table}_default")),
            expected[8..],
            "{table}"
        );
    }
    store.close_blocking();
}

#[test]
fn processes_that_make_months_at_once_make_each_once() {
    let fresh = Fresh::postgres();
    let store = testing::open(&fresh);
    let now = Month::of(now_ms(&store));
    let others = [(); 4].map(|()| Store::open(fresh.target.clone()).expect("a store"));
    for _ in 0..5 {
        for table in TABLES {
            for month in 1..=MONTHS_AHEAD {
                run(&store, &format!("drop table {table}_{}", now.plus(month)));
            }
        }
        let start = Barrier::new(others.len());
        thread::scope(|scope| {
            for other in &others {
                scope.spawn(|| {
                    start.wait();
                    // Who waits for too long for another tries it again.
                    while let Err(error) = block_on(partitions::make_ahead(other)) {
                        let is_busy =
                            matches!(&error, StoreError::Db(driftline_db::DbError::Busy(_)));
                        assert!(is_busy, "{error}");
                    }
                });
            }
        });
        for table in TABLES {
            assert_eq!(partitions_of(&store, table), months_of(table, now));
        }
    }
    others.iter().for_each(|other| other.close_blocking());
    store.close_blocking();
}

#[test]
fn what_the_default_partition_has_of_a_month_moves_there() {
    let store = testing::open(&Fresh::postgres());
    let now = Month::of(now_ms(&store));
    let missing = now.plus(2);
    for table in TABLES {
        run(&store, &format!("drop table {table}_{missing}"));
    }
    let last_ms = missing.plus(1).start_ms() - 1;
    add_now(&store, 1, missing.start_ms());
    add_now(&store, 2, last_ms);
    add_now(&store, 3, i64::MAX);
    let reaches = block_on(partitions::reaches(&store)).expect("how far they reach");
    for reach in reaches {
        assert_eq!(
            (reach.until_ms, reach.default_rows),
            (missing.start_ms(), 3)
        );
    }
    block_on(partitions::make_ahead(&store)).expect("a month");
    let reaches = block_on(partitions::reaches(&store)).expect("how far they reach");
    for reach in reaches {
        let until_ms = now.plus(MONTHS_AHEAD + 1).start_ms();
        assert_eq!((reach.until_ms, reach.default_rows), (until_ms, 1));
        let moved = rows(&store, &format!("{}_{missing}", reach.table));
        assert_eq!(moved, [(1, missing.start_ms()), (2, last_ms)]);
        assert_eq!(rows(&store, reach.table).len(), 3);
    }
    store.close_blocking();
}

#[test]
fn a_table_in_use_is_not_waited_for_and_nobody_queues_behind_the_wait() {
    let store = testing::open(&Fresh::postgres());
    let now = Month::of(now_ms(&store));
    run(&store, &format!("drop table count_history_{}", now.plus(3)));
    let (hold, held) = (mpsc::channel::<()>(), mpsc::channel());
    let (release, told) = (hold.0, held.0);
    let mut until = Some(hold.1);
    let other = store.clone();
    let holder = thread::spawn(move || {
        other.write_blocking(Root::none(), move |tx| {
            tx.query("select 1 from count_history", &[], |_| Ok(()))?;
            let _ = told.send(());
            if let Some(until) = until.take() {
                let _ = until.recv_timeout(Duration::from_secs(60));
            }
            Ok::<_, StoreError>(())
        })
    });
    held.1.recv().expect("it is held");
    let maker = store.clone();
    let making = thread::spawn(move || {
        let begun = Instant::now();
        (block_on(partitions::make_ahead(&maker)), begun.elapsed())
    });
    // Who reads the table locks the default partition as well.
    let mut longest = Duration::ZERO;
    while !making.is_finished() {
        let begun = Instant::now();
        rows(&store, "count_history");
        longest = longest.max(begun.elapsed());
    }
    let (made, took) = making.join().expect("no panic");
    assert!(
        matches!(made, Err(StoreError::Db(driftline_db::DbError::Busy(_)))),
        "{made:?}"
    );
    assert!(took < Duration::from_secs(5) && longest < Duration::from_secs(5));
    release.send(()).expect("it is released");
    holder.join().expect("no panic").expect("a read");
    block_on(partitions::make_ahead(&store)).expect("it is free");
    store.close_blocking();
}

#[test]
fn a_month_goes_by_one_statement_while_others_write() {
    let store = testing::open(&Fresh::postgres());
    let now_ms = now_ms(&store);
    let month = Month::of(now_ms).plus(1);
    let fill = "insert into count_history (post_id, at_ms, favourites, instance_id)
         select n, cast($1 as bigint) + n, n, 1 from generate_series(1, 15000) as n";
    let filled = store.write_blocking(Root::none(), move |tx| {
        tx.execute(fill, &[&month.start_ms()])
    });
    assert_eq!(filled, Ok(15_000));
    let (is_over, writes) = (AtomicBool::new(false), 3);
    let (written, longest) = thread::scope(|scope| {
        let writers: Vec<_> = (1..=writes)
            .map(|writer| {
                let (store, is_over) = (&store, &is_over);
                scope.spawn(move || {
                    let (mut written, mut longest) = (0, Duration::ZERO);
                    while !is_over.load(Ordering::Relaxed) {
                        let begun = Instant::now();
                        written += 1;
                        add_now(store, writer * 1_000_000 + written, now_ms);
                        longest = longest.max(begun.elapsed());
                    }
                    (written, longest)
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(100));
        run(&store, &format!("drop table count_history_{month}"));
        thread::sleep(Duration::from_millis(100));
        is_over.store(true, Ordering::Relaxed);
        let done = writers
            .into_iter()
            .map(|writer| writer.join().expect("a writer"));
        done.fold((0, Duration::ZERO), |sum, one| {
            (sum.0 + one.0, sum.1.max(one.1))
        })
    });
    assert!(
        written > writes && longest < Duration::from_secs(5),
        "{written}, {longest:?}"
    );
    let left = rows(&store, "count_history").len();
    assert_eq!(i64::try_from(left), Ok(written));
    store.close_blocking();
}

/// Each partition is looked into through its key, whatever it holds.
#[test]
fn a_posts_history_is_read_through_the_key_of_each_partition() {
    if is_distributed() {
        return;
    }
    let store = testing::open(&Fresh::postgres());
    let now_ms = now_ms(&store);
    for (table, columns, values) in [
        (
            "count_history",
            "post_id, at_ms, instance_id",
            "n, cast($1 as bigint) + n, 1",
        ),
        (
            "post_history",
            "post_id, at_ms, seq, kind, raw, instance_id",
            "n, cast($1 as bigint) + n, 1, 'edit', '{}', 1",
        ),
    ] {
        // The last one is the default partition's.
        for months in 0..=MONTHS_AHEAD + 1 {
            let start_ms = Month::of(now_ms).plus(months).start_ms();
            let sql = format!(
                "insert into {table} ({columns}) select {values} from generate_series(1, 5000) as n"
            );
            let filled =
                store.write_blocking(Root::none(), move |tx| tx.execute(&sql, &[&start_ms]));
            assert_eq!(filled, Ok(5_000));
        }
        run(&store, &format!("analyze {table}"));
    }
    for sql in [
        "select at_ms, favourites from count_history where post_id = 7 and instance_id = 1 order by at_ms",
        "select post_id, at_ms from count_history where post_id = any('{7,8}') and instance_id = 1
         order by post_id, at_ms",
        "select seq, raw from post_history where post_id = 7 and instance_id = 1 order by seq",
        "select coalesce((select max(h.seq) from post_history h
             where h.post_id = 7 and h.instance_id = 1), 0) + 1",
        "delete from post_history where post_id = any('{7,8}') and instance_id = 1",
        "delete from count_history where post_id = any('{7,8}') and instance_id = 1",
    ] {
        let explain = format!("explain {sql}");
        let plan =
            store.read_blocking(move |tx| tx.query(&explain, &[], |row| row.text("QUERY PLAN")));
        let plan = plan.expect("a plan").join("\n");
        assert!(!plan.contains("Seq Scan"), "{plan}");
        let looks = plan.matches("_pkey").count();
        let all = 2 + usize::try_from(MONTHS_AHEAD).expect("few");
        assert_eq!(looks, all, "{plan}");
    }
    store.close_blocking();
}
