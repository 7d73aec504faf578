//! Archives of `pg_dump`.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;

use super::digest::RowsDigest;
use super::programs::Program;
use super::{
    AppliedMigration, Progress, Snapshot, TableDigest, Watch, Work, applied, compare, go_on,
};
use crate::error::DbError;
use crate::options::SecretUrl;
use crate::postgres::{Server, Session, SessionPurpose, client_environment};
use crate::sqlite::create_private;
use crate::tx::Tx;

/// The size of the rows without indexes, as packed on the server.
pub(super) fn size(url: &SecretUrl, schema: Option<&str>) -> Result<u64, DbError> {
    let mut session = Server::new(url, schema)?.connect(SessionPurpose::Read)?;
    session.begin("begin isolation level repeatable read read only");
    let size = Tx::postgres(&mut session).query_one(
        "select coalesce(cast(sum(pg_table_size(oid)) as bigint), 0) from pg_class
         where relnamespace = current_schema()::regnamespace and relkind = 'r'",
        &[],
        |row| row.i64(0),
    );
    session.roll_back();
    size.map(i64::cast_unsigned)
}

/// Copies the schema with `pg_dump`, whose snapshot a transaction here exports. The transaction
/// reads the same rows for their digests.
pub(super) fn copy(
    url: &SecretUrl,
    schema: Option<&str>,
    to: &Path,
    check: &mut Work,
    watch: &mut Watch,
) -> Result<Snapshot, DbError> {
    let mut session = Server::new(url, schema)?.connect(SessionPurpose::Migrate)?;
    refuse_pooler(&session)?;
    session.begin("begin isolation level repeatable read read only");
    session.script(UNBOUNDED)?;
    check(&mut Tx::postgres(&mut session))?;
    let mut tx = Tx::postgres(&mut session);
    let (schema, version) = schema_and_version(&mut tx)?;
    let id = tx.query_one("select pg_export_snapshot()", &[], |row| row.text(0))?;
    let migrations = applied(&mut tx)?;
    let names = table_names(&mut tx)?;
    if names.is_empty() {
        return Err(DbError::Open(format!("the schema {schema} has no tables")));
    }
    let program = Program::find("pg_dump", version)?;
    let pattern = format!("--schema={}", quote(&schema));
    let snapshot = format!("--snapshot={id}");
    let arguments = [
        "--format=custom",
        "--encoding=UTF8",
        "--no-owner",
        "--no-privileges",
        "--no-password",
        &pattern,
        &snapshot,
    ];
    let arguments = arguments.map(OsString::from);
    let (running, mut out) = program.start(&arguments, &client_environment(url)?, &[])?;
    // Bytes pass through this process, so that the copy ends with it.
    let mut file = create_private(to).map_err(|error| of_io(to, &error))?;
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    let mut unsynced = 0;
    loop {
        let count = out.read(&mut buffer).map_err(|error| of_io(to, &error))?;
        if count == 0 {
            break;
        }
        file.write_all(&buffer[..count])
            .map_err(|error| of_io(to, &error))?;
        bytes += count as u64;
        if bytes >= unsynced + UNSYNCED_BYTES {
            unsynced = bytes;
            file.sync_data().map_err(|error| of_io(to, &error))?;
        }
        go_on(watch, Progress::Copied { bytes, of: None })?;
    }
    running.end()?;
    file.sync_all().map_err(|error| of_io(to, &error))?;
    let tables = digests(&mut session, &names, watch)?;
    session.roll_back();
    Ok(Snapshot {
        schema: Some(schema),
        migrations,
        tables,
    })
}

/// The digests of the tables in an archive. `pg_restore` writes each table's rows in the form in
/// which a server copies them out.
pub(super) fn read(path: &Path, watch: &mut Watch) -> Result<Vec<TableDigest>, DbError> {
    let program = Program::find("pg_restore", 0)?;
    let arguments = [OsString::from("--file=-"), path.into()];
    let (running, out) = program.start(&arguments, &[], &[])?;
    let mut out = BufReader::with_capacity(1 << 20, out);
    let mut found = Vec::new();
    let mut current: Option<(String, RowsDigest)> = None;
    let mut rows = 0_u64;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = out.read_until(b'\n', &mut line);
        if read.map_err(|error| of_io(path, &error))? == 0 {
            break;
        }
        match current.take() {
            Some((name, digest)) if line == b"\\.\n" => found.push(digest.end(name)),
            Some((name, mut digest)) => {
                digest.add(&line);
                current = Some((name, digest));
                rows += 1;
                if rows.is_multiple_of(ROWS) {
                    go_on(watch, Progress::Read { rows })?;
                }
            }
            None => current = copied_table(&line).map(|name| (name, RowsDigest::default())),
        }
    }
    running
        .end()
        .map_err(|error| DbError::Damaged(error.to_string()))?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The table's name in `COPY schema.name (columns) FROM stdin;`.
fn copied_table(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line).ok()?;
    let (name, _) = line.strip_prefix("COPY ")?.split_once(" (")?;
    line.trim_end().ends_with(" FROM stdin;").then_some(())?;
    let name = name.rsplit('.').next()?;
    Some(name.trim_matches('"').replace("\"\"", "\""))
}

/// Restores in three steps, each of which either happens or does not. First come the tables, except
/// for the rows that record the applied migrations. The transaction that has compared the tables
/// then adds these rows. The statistics come last. A program cannot use tables without these rows,
/// and another attempt removes them.
pub(super) fn restore(
    copy: &Path,
    snapshot: &Snapshot,
    (url, schema): (&SecretUrl, Option<&str>),
    verify: bool,
    finish: &mut Work,
    watch: &mut Watch,
) -> Result<(), DbError> {
    let mut session = Server::new(url, schema)?.prepare()?;
    refuse_pooler(&session)?;
    session.begin("begin");
    session.script(UNBOUNDED)?;
    let (schema, version) = schema_and_version(&mut Tx::postgres(&mut session))?;
    if let Some(copied) = &snapshot.schema
        && *copied != schema
    {
        return Err(DbError::Open(format!(
            "the backup is of the schema {copied}, and this is {schema}: restore it into one of that name"
        )));
    }
    clear(&mut session, &schema)?;
    session.commit()?;
    restore_tables(copy, &schema, version, url, watch)?;
    session.begin("begin");
    session.script(UNBOUNDED)?;
    let mut tx = Tx::postgres(&mut session);
    for AppliedMigration {
        version,
        name,
        compat_version,
        digest,
    } in &snapshot.migrations
    {
        tx.execute(
            "insert into migration (version, name, compat_version, digest) values ($1, $2, $3, $4)",
            &[version, name, compat_version, digest],
        )?;
    }
    let names = table_names(&mut tx)?;
    if verify {
        let found = digests(&mut session, &names, watch)?;
        compare(&snapshot.tables, &found)?;
    }
    finish(&mut Tx::postgres(&mut session))?;
    session.commit()?;
    for name in names {
        // Without statistics only plans are worse.
        if let Err(error) = session.script(&format!("analyze {}", quote(&name))) {
            tracing::info!(%error, "a restored table was not analyzed; autovacuum will do it");
        }
    }
    Ok(())
}

/// Fails if the schema has tables, but removes those of an interrupted restore.
fn clear(session: &mut Session, schema: &str) -> Result<(), DbError> {
    let mut tx = Tx::postgres(session);
    let names = tx.query(
        "select relname::text from pg_class where relnamespace = current_schema()::regnamespace
             and relkind in ('r', 'p', 'v', 'm', 'S', 'f')
         order by relname::text collate \"C\"",
        &[],
        |row| row.text(0),
    )?;
    if names.is_empty() {
        return Ok(());
    }
    let is_unfinished = names.iter().any(|name| name == "migration")
        && tx.query_one("select count(*) from migration", &[], |row| row.i64(0))? == 0;
    if !is_unfinished {
        return Err(DbError::NotEmpty(format!(
            "the schema {schema} of the database has tables already, such as {}",
            names[0]
        )));
    }
    for name in names {
        session.script(&format!("drop table if exists {} cascade", quote(&name)))?;
    }
    Ok(())
}

fn restore_tables(
    copy: &Path,
    schema: &str,
    version: u32,
    url: &SecretUrl,
    watch: &mut Watch,
) -> Result<(), DbError> {
    let program = Program::find("pg_restore", version)?;
    let list = [OsString::from("--list"), copy.into()];
    let (running, mut out) = program.start(&list, &[], &[])?;
    let mut listed = String::new();
    out.read_to_string(&mut listed)
        .map_err(|error| of_io(copy, &error))?;
    running
        .end()
        .map_err(|error| DbError::Damaged(error.to_string()))?;
    let left_out = format!(" TABLE DATA {schema} migration ");
    let list: Vec<&str> = listed
        .lines()
        .filter(|line| !line.contains(&left_out))
        .collect();
    let mut environment = client_environment(url)?;
    let database = environment.iter().find(|(name, _)| *name == "PGDATABASE");
    let database = database.map_or_else(OsString::new, |(_, value)| value.clone());
    environment.retain(|(name, _)| *name != "PGDATABASE");
    let mut to = OsString::from("--dbname=");
    to.push(database);
    let mut arguments = [
        "--single-transaction",
        "--exit-on-error",
        "--no-owner",
        "--no-privileges",
        "--no-password",
        "--use-list=/dev/stdin",
    ]
    .map(OsString::from)
    .to_vec();
    arguments.push(format!("--schema={schema}").into());
    arguments.push(to);
    arguments.push(copy.into());
    let (running, _out) = program.start(&arguments, &environment, list.join("\n").as_bytes())?;
    running.end_while(|| go_on(watch, Progress::Read { rows: 0 }))
}

fn refuse_pooler(session: &Session) -> Result<(), DbError> {
    match session.is_pooled() {
        false => Ok(()),
        true => Err(DbError::Open(
            "a connection pooler is before the server, and pg_dump and pg_restore need one of its own \
             connections: name the server itself in the database URL"
                .into(),
        )),
    }
}

/// The schema in use, and the server's major version.
fn schema_and_version(tx: &mut Tx<'_>) -> Result<(String, u32), DbError> {
    let (schema, version) = tx.query_one(
        "select current_schema()::text, current_setting('server_version_num')",
        &[],
        |row| Ok((row.opt_text(0)?, row.text(1)?)),
    )?;
    let schema = schema.ok_or_else(|| {
        DbError::Open("the database has no schema to work in: create one, or name one".into())
    })?;
    let version: u32 = version.parse().unwrap_or(0);
    Ok((schema, version / 10_000))
}

/// The tables that have rows themselves.
fn table_names(tx: &mut Tx<'_>) -> Result<Vec<String>, DbError> {
    tx.query(
        "select relname::text from pg_class
         where relnamespace = current_schema()::regnamespace and relkind = 'r'
         order by relname::text collate \"C\"",
        &[],
        |row| row.text(0),
    )
}

fn digests(
    session: &mut Session,
    names: &[String],
    watch: &mut Watch,
) -> Result<Vec<TableDigest>, DbError> {
    let mut rows = 0_u64;
    let mut found = Vec::new();
    for name in names {
        let mut digest = RowsDigest::default();
        let copy = format!("copy {} to stdout", quote(name));
        session.copy_out(&copy, &mut |row| {
            digest.add(row);
            rows += 1;
            match rows.is_multiple_of(ROWS) {
                true => go_on(watch, Progress::Read { rows }),
                false => Ok(()),
            }
        })?;
        found.push(digest.end(name.clone()));
    }
    Ok(found)
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn of_io(path: &Path, error: &std::io::Error) -> DbError {
    DbError::Other(format!("{}: {error}", path.display()))
}

/// The transaction waits while another program works, and reads whole tables.
const UNBOUNDED: &str = "set local idle_in_transaction_session_timeout = 0; \
    set local statement_timeout = 0; set local bytea_output = 'hex'";
/// The bytes that may wait for the disk.
const UNSYNCED_BYTES: u64 = 32 << 20;
/// The number of rows between two calls of the watch.
const ROWS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_rows_follow_are_found() {
        let table = |line: &str| copied_table(line.as_bytes());
        let post = Some("post".to_owned());
        assert_eq!(table("COPY public.post (id, raw) FROM stdin;\n"), post);
        assert_eq!(table("COPY \"a.b\".\"post\" (id) FROM stdin;\n"), post);
        assert_eq!(table("CREATE TABLE public.post (\n"), None);
        assert_eq!(table("COPY public.post (id) TO stdout;\n"), None);
    }
}
