//! A process that is killed in the middle of a migration leaves the version before it.

use std::env;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use driftline_db::testing::{postgres_database, schema};
use driftline_db::{Db, DbError, Migration, Options, SecretUrl, Target};
use rusqlite::{Connection, ErrorCode};

use crate::{migration, read};

static HISTORY: [Migration; 3] = [
    migration(
        1,
        "notes",
        1,
        "create table note (id {i64} primary key not null, body text not null) {strict};
            insert into note (id, body)
            with recursive n (id) as (select 1 union all select id + 1 from n where id < 500)
            select id, 'note ' || id from n;",
    ),
    migration(
        2,
        "lengths",
        2,
        "alter table note add column length {i64} not null default 0;
            update note set length = length(body);",
    ),
    migration(
        3,
        "tags",
        3,
        "create table tag (note_id {i64} not null, tag text not null, primary key (note_id, tag))
                {clustered};
            insert into tag (note_id, tag) select id, body from note;
            alter table note drop column body;",
    ),
];

/// Names the database, for the process that is killed.
const DATABASE: &str = "DRIFTLINE_TEST_MIGRATES";
/// The version whose migration never ends there.
const VERSION: &str = "DRIFTLINE_TEST_MIGRATES_TO";

#[test]
fn a_migration_that_is_killed_leaves_the_version_before() {
    let folder = tempfile::tempdir().expect("a folder");
    for killed in 1..=HISTORY.len() {
        let file = folder.path().join(format!("{killed}.db"));
        for database in [file.display().to_string(), postgres_database()] {
            let mut child = start(&database, killed);
            wait_until(|| {
                assert_eq!(child.try_wait().expect("a child"), None, "it goes on");
                is_migrating(&database, killed)
            });
            child.kill().expect("SIGKILL");
            child.wait().expect("its end");
            let before = &HISTORY[..killed - 1];
            assert_eq!(contents(&database), expected(before), "{database}");
            if !before.is_empty() {
                assert_eq!(Db::check(&target(&database), before), Ok(()));
            }
            let db = Db::open(Options::new(target(&database), &HISTORY)).expect("it is migrated");
            db.close_blocking();
            assert_eq!(contents(&database), expected(&HISTORY), "{database}");
        }
    }
}

/// The process that is killed. Does nothing as a test of its own.
#[test]
fn migrates_until_it_is_killed() {
    let (Ok(database), Ok(version)) = (env::var(DATABASE), env::var(VERSION)) else {
        return;
    };
    let version: usize = version.parse().expect("a version");
    let mut history = HISTORY[..version].to_vec();
    let last = &mut history[version - 1];
    let endless = match target(&database) {
        Target::Sqlite { .. } => ENDLESS_SQLITE,
        Target::Postgres { .. } => ENDLESS_POSTGRES,
    };
    last.sql = String::leak(format!("{}\n{endless}", last.sql));
    let opened = Db::open(Options::new(target(&database), Vec::leak(history)));
    panic!("it was not killed: {opened:?}");
}

const ENDLESS_SQLITE: &str = "create table endless as
    with recursive n (i) as (select 1 union all select i + 1 from n where i < 1000000000000)
    select max(i) as i from n;";
/// The server notices that nobody waits any more.
const ENDLESS_POSTGRES: &str = "set local client_connection_check_interval = '50ms';
    select pg_sleep(600);";

fn start(database: &str, version: usize) -> Child {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command
        .args(["--exact", "migration_kills::migrates_until_it_is_killed"])
        .env(DATABASE, database)
        .env(VERSION, version.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("a process")
}

fn target(database: &str) -> Target {
    match database.starts_with("postgres") {
        true => Target::Postgres {
            url: SecretUrl::new(database),
            schema: None,
        },
        false => Target::Sqlite {
            path: PathBuf::from(database),
        },
    }
}

/// Whether the version before is there and the transaction of this one is under way.
fn is_migrating(database: &str, version: usize) -> bool {
    if let Target::Postgres { .. } = target(database) {
        let sleeps = "select exists (select 1 from pg_stat_activity where pid <> pg_backend_pid()
            and datname = current_database() and query like '%pg_sleep(600)%') as sleeps";
        let db = open(database);
        let sleeps = read(&db, move |tx| tx.query_one(sleeps, &[], |row| row.bool(0)));
        db.close_blocking();
        return sleeps.expect("an answer");
    }
    if version > 1 && Db::check(&target(database), &HISTORY[..version - 1]).is_err() {
        return false;
    }
    let Ok(connection) = Connection::open(database) else {
        return false;
    };
    connection
        .busy_timeout(Duration::ZERO)
        .expect("no time at all");
    let begun = connection.execute_batch("begin immediate; rollback");
    begun.is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "it does not migrate");
        thread::sleep(Duration::from_millis(5));
    }
}

fn open(database: &str) -> Db {
    Db::open(Options::new(target(database), &[])).expect("a database")
}

/// The schema, and every row that it can have.
fn contents(database: &str) -> Vec<String> {
    let db = open(database);
    let lines = read(&db, |tx| {
        let mut lines = schema(tx)?;
        let has = |lines: &[String], start: &str| lines.iter().any(|line| line.starts_with(start));
        for (column, sql) in [
            (
                "note.body",
                "select 'body ' || id || ' ' || body from note order by id",
            ),
            (
                "note.length",
                "select 'length ' || id || ' ' || length from note order by id",
            ),
            (
                "tag.tag",
                "select 'tag ' || note_id || ' ' || tag from tag order by note_id",
            ),
        ] {
            if has(&lines, column) {
                lines.extend(tx.query(sql, &[], |row| row.text(0))?);
            }
        }
        Ok::<_, DbError>(lines)
    });
    db.close_blocking();
    lines.expect("the contents")
}

/// What a database has to which these were applied in peace.
fn expected(migrations: &'static [Migration]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.db").display().to_string();
    Db::open(Options::new(target(&file), migrations))
        .expect("a database")
        .close_blocking();
    contents(&file)
}
