//! The room that a database takes, and what is given back of it.

use std::path::Path;

use driftline_db::{Db, DbError, Migration, Options, Root, Target, Tx, space, testing::Fresh};

use crate::migration;

static FILLED: &[Migration] = &[migration(
    1,
    "filled",
    1,
    "create table filled (id {i64} primary key not null, text text not null)",
)];

fn open(path: &Path) -> Db {
    let path = path.to_owned();
    Db::open(Options::new(Target::Sqlite { path }, FILLED)).expect("a database")
}

/// Writes rows, and deletes all but the first 40 of them.
fn fill(db: &Db) {
    db.write_blocking(Root::none(), |tx| {
        let text = "x".repeat(3_000);
        for id in 0..4_000_i64 {
            let sql = "insert into filled (id, text) values ($1, $2)";
            tx.execute(sql, &[&id, &&*text])?;
        }
        Ok::<_, DbError>(())
    })
    .expect("rows");
    let delete = |tx: &mut Tx<'_>| tx.execute("delete from filled where id >= 40", &[]);
    assert_eq!(db.write_blocking(Root::none(), delete), Ok(3_960));
}

fn pages(db: &Db) -> space::Pages {
    let found = db.read_blocking(space::pages).expect("pages");
    found.expect("a file")
}

fn give_back(db: &Db, most: u32) -> u64 {
    let freed = db.write_blocking(Root::none(), move |tx| space::give_back(tx, most));
    freed.expect("a write")
}

fn rows(db: &Db) -> i64 {
    let count = "select count(*) as found from filled";
    db.read_blocking(|tx| tx.query_one(count, &[], |row| row.i64("found")))
        .expect("a count")
}

#[test]
fn a_new_file_gives_its_free_pages_back_in_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let db = open(&path);
    fill(&db);
    let full = pages(&db);
    assert!(full.is_incremental && full.free > 2_500, "{full:?}");
    assert_eq!(give_back(&db, 1_000), 1_000);
    assert_eq!(pages(&db).free, full.free - 1_000);
    let freed = std::iter::repeat_with(|| give_back(&db, 1_000)).take_while(|freed| *freed > 0);
    assert_eq!(freed.sum::<u64>(), full.free - 1_000);
    let now = pages(&db);
    assert!(now.free == 0 && now.all + full.free <= full.all, "{now:?}");
    assert_eq!(rows(&db), 40);
    db.close_blocking();
    let bytes = std::fs::metadata(&path).expect("the file").len();
    assert_eq!(bytes, now.all * now.page_bytes);
}

#[test]
fn an_older_file_is_written_anew_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("it's.db");
    let older = rusqlite::Connection::open(&path).expect("a file");
    older
        .execute_batch("create table older (id); drop table older")
        .expect("a table");
    drop(older);
    let db = open(&path);
    fill(&db);
    let full = pages(&db);
    assert!(!full.is_incremental && full.free > 2_500, "{full:?}");
    assert_eq!(give_back(&db, 1_000), 0);
    let (vacuumed, written) = driftline_db::block_on(async {
        let write = db.write(Root::none(), |tx| {
            tx.execute("insert into filled (id, text) values (9999, 'new')", &[])
        });
        tokio::join!(db.vacuum(), write)
    });
    assert_eq!((vacuumed, written), (Ok(()), Ok(1)));
    let now = pages(&db);
    assert!(now.is_incremental && now.free == 0, "{now:?}");
    assert!(now.all + 2_500 < full.all, "{now:?}");
    assert_eq!(rows(&db), 41);
    let delete = |tx: &mut Tx<'_>| tx.execute("delete from filled", &[]);
    db.write_blocking(Root::none(), delete).expect("a write");
    let free = pages(&db).free;
    assert!(free > 10 && give_back(&db, 1_000) == free);
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .collect();
    assert_eq!(left.len(), 3, "the copy is gone: {left:?}");
    db.close_blocking();
}

#[test]
fn a_server_shows_its_tables_and_is_not_rewritten() {
    let fresh = Fresh::postgres();
    let db = fresh.open(FILLED);
    fill(&db);
    let tables = db.read_blocking(space::tables).expect("tables");
    let filled = tables.iter().find(|table| table.name == "filled");
    assert!(
        filled.is_some_and(|table| table.bytes > 100_000),
        "{tables:?}"
    );
    assert_eq!(db.read_blocking(space::pages), Ok(None));
    assert_eq!(give_back(&db, 1_000), 0);
    let refused = driftline_db::block_on(db.vacuum());
    assert!(matches!(refused, Err(DbError::Other(_))), "{refused:?}");
    db.close_blocking();
}
