//! Copies of a database: proven, of one snapshot, restored to the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use driftline_db::backup::{self, CopyKind, Snapshot, Watch, Work};
use driftline_db::testing::{Fresh, databases, postgres_database};
use driftline_db::{Db, DbError, Dialect, Options, SecretUrl, Target};

use super::{SOURCE, TABLES, insert, read};

fn watch() -> Box<Watch> {
    Box::new(|_| true)
}

fn nothing() -> Box<Work> {
    Box::new(|_| Ok(()))
}

fn kind(target: &Target) -> CopyKind {
    match target {
        Target::Sqlite { .. } => CopyKind::File,
        Target::Postgres { .. } => CopyKind::Dump,
    }
}

fn copy(target: &Target, to: &Path) -> Snapshot {
    backup::copy(target, to, nothing(), watch()).expect("a copy")
}

/// A second database of the same kind, empty.
fn second(target: &Target, folder: &Path) -> Target {
    match target {
        Target::Sqlite { .. } => Target::Sqlite {
            path: folder.join("second.db"),
        },
        Target::Postgres { schema, .. } => Target::Postgres {
            url: SecretUrl::new(postgres_database()),
            schema: schema.clone(),
        },
    }
}

fn fill(db: &Db) {
    let filled = db.write_blocking(SOURCE, |tx| {
        for id in 1..=500 {
            tx.execute(
                "insert into post (source_id, id, body, hidden, likes, raw)
                 values (1, $1, $2, $3, $4, $5)",
                &[
                    &id,
                    &(id % 3 > 0).then(|| format!("tab\there, \\ and\nline {id}")),
                    &(id % 2 == 0),
                    &(id * 7),
                    &vec![0_u8, b'\\', b'\n', 255],
                ],
            )?;
        }
        Ok::<_, DbError>(())
    });
    filled.expect("rows");
}

/// Runs a test on a database of each kind that has posts, with a folder for copies.
fn on_filled(test: impl Fn(&Fresh, &Db, &Path)) {
    for fresh in databases() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = fresh.open(TABLES);
        fill(&db);
        test(&fresh, &db, folder.path());
        db.close_blocking();
    }
}

#[test]
fn a_copy_is_proven_and_restored_to_the_same() {
    on_filled(|fresh, db, folder| {
        let path = folder.join("copy");
        let snapshot = copy(&fresh.target, &path);
        let posts = snapshot.tables.iter().find(|table| table.name == "post");
        assert_eq!(posts.map(|table| table.rows), Some(500), "{}", fresh.name);
        // What comes later is not in it.
        db.write_blocking(SOURCE, |tx| insert(tx, 1_000))
            .expect("a row");
        let found = backup::read(kind(&fresh.target), &path, watch()).expect("it is whole");
        assert_eq!(
            backup::difference(&snapshot.tables, &found),
            None,
            "{}",
            fresh.name
        );
        let target = second(&fresh.target, folder);
        backup::restore(&path, &snapshot, &target, true, nothing(), watch()).expect("a restore");
        let again = copy(&target, &folder.join("again"));
        assert_eq!(again, snapshot, "{}", fresh.name);
        let refused = backup::restore(&path, &snapshot, &target, true, nothing(), watch());
        assert!(refused.is_err(), "{}: it has rows already", fresh.name);
    });
}

#[test]
fn a_changed_row_is_found_and_nothing_is_restored() {
    on_filled(|fresh, db, folder| {
        let path = folder.join("copy");
        let mut snapshot = copy(&fresh.target, &path);
        let post = snapshot
            .tables
            .iter_mut()
            .find(|table| table.name == "post");
        post.expect("a table").digest.replace_range(0..1, "x");
        let target = second(&fresh.target, folder);
        let refused = backup::restore(&path, &snapshot, &target, true, nothing(), watch());
        let refused = refused.expect_err("it differs").to_string();
        assert!(
            refused.contains("rows of the table post have changed"),
            "{refused}"
        );
        // A program does not take what is there for a database, and another try clears it away.
        if db.dialect() == Dialect::Postgres {
            let opened = Db::open(Options::new(target.clone(), TABLES)).map(|_| ());
            let opened = opened.expect_err("it is not whole").to_string();
            assert!(opened.contains("was not finished"), "{opened}");
            let snapshot = copy(&fresh.target, &folder.join("good"));
            backup::restore(&path, &snapshot, &target, true, nothing(), watch())
                .expect("another try");
        }
    });
}

#[test]
fn a_damaged_copy_is_found() {
    on_filled(|fresh, _, folder| {
        let path = folder.join("copy");
        let snapshot = copy(&fresh.target, &path);
        let mut bytes = std::fs::read(&path).expect("bytes");
        let middle = bytes.len() * 3 / 4;
        bytes[middle..middle + 64].fill(0x55);
        std::fs::write(&path, bytes).expect("a damaged copy");
        match backup::read(kind(&fresh.target), &path, watch()) {
            Ok(found) => {
                let difference = backup::difference(&snapshot.tables, &found);
                assert!(difference.is_some(), "{}", fresh.name);
            }
            Err(error) => assert!(matches!(error, DbError::Damaged(_)), "{error:?}"),
        }
    });
}

/// Writers neither wait for a copy nor make it begin again, and it is of one moment.
#[test]
fn a_copy_ends_while_rows_are_written() {
    on_filled(|fresh, db, folder| {
        let path = folder.join("copy");
        // Several steps of a copy.
        for id in 501..=540 {
            let big = vec![7_u8; 256 << 10];
            let done = db.write_blocking(SOURCE, move |tx| {
                insert(tx, id)?;
                tx.execute("update post set raw = $2 where id = $1", &[&id, &big])
            });
            done.expect("a row");
        }
        let (is_ended, written) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let writer = {
            let (db, is_ended, written) = (db.clone(), is_ended.clone(), written.clone());
            thread::spawn(move || {
                let mut longest = std::time::Duration::ZERO;
                for id in 1_000.. {
                    if is_ended.load(Ordering::Relaxed) {
                        return longest;
                    }
                    let started = Instant::now();
                    // Both or none.
                    let done = db.write_blocking(SOURCE, move |tx| {
                        insert(tx, id)?;
                        tx.execute("update source set cursor = $1 where id = 1", &[&id])?;
                        Ok::<_, DbError>(())
                    });
                    done.expect("a commit");
                    longest = longest.max(started.elapsed());
                    written.fetch_add(1, Ordering::Relaxed);
                }
                longest
            })
        };
        while written.load(Ordering::Relaxed) < 10 {
            thread::yield_now();
        }
        let seen = written.clone();
        // The copy goes on only while others write.
        let (mut before, mut steps) = (0, 0);
        let among_writes: Box<Watch> = Box::new(move |_| {
            let now = seen.load(Ordering::Relaxed);
            while seen.load(Ordering::Relaxed) == before {
                thread::yield_now();
            }
            before = now;
            steps += 1;
            steps < 300
        });
        let snapshot = backup::copy(&fresh.target, &path, nothing(), among_writes).expect("a copy");
        is_ended.store(true, Ordering::Relaxed);
        let longest = writer.join().expect("a writer");
        assert!(
            longest.as_secs() < 5,
            "{}: a writer waited {longest:?}",
            fresh.name
        );
        let target = second(&fresh.target, folder);
        backup::restore(&path, &snapshot, &target, true, nothing(), watch()).expect("a restore");
        let restored = Db::open(Options::new(target, TABLES)).expect("a database");
        let (last, cursor) = read(&restored, |tx| {
            tx.query_one(
                "select max(p.id) as last, max(s.cursor) as cursor from post p, source s
                 where s.id = 1",
                &[],
                |row| Ok((row.i64("last")?, row.i64("cursor")?)),
            )
        })
        .expect("a query");
        assert_eq!(last, cursor, "{}: of one moment", fresh.name);
        restored.close_blocking();
    });
}

#[test]
fn a_copy_that_is_interrupted_says_so() {
    for fresh in databases() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = fresh.open(TABLES);
        fill(&db);
        let path = folder.path().join("copy");
        let ended = backup::copy(&fresh.target, &path, nothing(), Box::new(|_| false));
        assert_eq!(ended, Err(DbError::Interrupted), "{}", fresh.name);
        db.close_blocking();
    }
}

/// Copies a database file as an archivist does, with its log where asked for, and takes all rights to write.
fn read_only_copy(with_log: bool) -> (tempfile::TempDir, PathBuf) {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let original = folder.path().join("a.db");
    let target = Target::Sqlite {
        path: original.clone(),
    };
    let db = Db::open(Options::new(target, TABLES)).expect("a database");
    fill(&db);
    let copies = folder.path().join("copies, and 100%");
    std::fs::create_dir(&copies).expect("a folder");
    let copy = copies.join("a.db");
    if with_log {
        std::fs::copy(&original, &copy).expect("a copy");
        std::fs::copy(folder.path().join("a.db-wal"), copies.join("a.db-wal")).expect("its log");
        db.close_blocking();
    } else {
        db.close_blocking();
        std::fs::copy(&original, &copy).expect("a copy");
    }
    for entry in std::fs::read_dir(&copies).expect("entries").flatten() {
        std::fs::set_permissions(entry.path(), Permissions::from_mode(0o444)).expect("a mode");
    }
    std::fs::set_permissions(&copies, Permissions::from_mode(0o555)).expect("a mode");
    (folder, copy)
}

#[test]
fn a_read_only_file_is_read_and_stays_as_it_is() {
    let (_folder, path) = read_only_copy(false);
    let bytes = std::fs::read(&path).expect("bytes");
    let open = |read_only| {
        Db::open(Options {
            read_only,
            ..Options::new(Target::Sqlite { path: path.clone() }, TABLES)
        })
    };
    let db = open(true).expect("a database");
    let count = read(&db, |tx| {
        tx.query_one("select count(*) from post", &[], |row| row.i64(0))
    });
    assert_eq!(count, Ok(500));
    let refused = db.write_blocking(SOURCE, |tx| insert(tx, 1));
    assert!(matches!(refused, Err(DbError::Denied(_))), "{refused:?}");
    db.close_blocking();
    let beside = std::fs::read_dir(path.parent().expect("a folder")).expect("entries");
    assert_eq!(beside.count(), 1, "nothing was put beside it");
    assert_eq!(std::fs::read(&path).expect("bytes"), bytes);
}

#[test]
fn a_log_that_cannot_be_read_is_an_error_that_says_so() {
    let (_folder, path) = read_only_copy(true);
    let opened = Db::open(Options {
        read_only: true,
        ..Options::new(Target::Sqlite { path }, TABLES)
    });
    let refused = opened.map(|_| ()).expect_err("the log counts");
    assert!(
        matches!(&refused, DbError::Denied(text) if text.contains("write-ahead log")),
        "{refused:?}"
    );
}

#[test]
fn a_file_of_another_schema_is_not_migrated_when_it_is_only_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let options = Options::new(Target::Sqlite { path }, &TABLES[..0]);
    Db::open(options.clone())
        .expect("a database")
        .close_blocking();
    let opened = Db::open(Options {
        read_only: true,
        migrations: TABLES,
        ..options
    });
    let refused = opened.map(|_| ()).expect_err("it is older");
    assert!(matches!(refused, DbError::Migration(_)), "{refused:?}");
}
