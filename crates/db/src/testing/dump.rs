//! A database as SQL text, for comparisons.

use std::process::Command;

use rusqlite::{Connection, Transaction};

use crate::options::Target;

/// The whole database as statements.
///
/// # Panics
/// If the database cannot be read. PostgreSQL's `pg_dump` must be on the path.
pub fn dump(target: &Target) -> String {
    match target {
        Target::Sqlite { path } => {
            let mut connection = Connection::open(path).expect("the database file");
            let snapshot = connection.transaction().expect("a snapshot");
            sqlite_text(&snapshot).expect("the database's text")
        }
        Target::Postgres { url, schema } => {
            let schema = schema.as_deref().expect("a schema of the test's own");
            let mut command = Command::new("pg_dump");
            command
                .args(["--inserts", "--no-owner", "--no-privileges", "--schema"])
                .args([schema, url.expose()]);
            let output = command.output().expect("pg_dump");
            assert!(output.status.success(), "pg_dump failed");
            let text = String::from_utf8(output.stdout).expect("text");
            let statements = text
                .lines()
                .filter(|line| !(line.is_empty() || line.starts_with("--")))
                // These are commands for `psql`, not for the server.
                .filter(|line| !line.starts_with('\\'));
            let text: String = statements.flat_map(|line| [line, "\n"]).collect();
            text.replace(schema, SCHEMA)
        }
    }
}

fn sqlite_text(snapshot: &Transaction<'_>) -> Result<String, rusqlite::Error> {
    let mut text = String::from("begin;\n");
    let mut objects = snapshot.prepare(
        "select type, name, sql from sqlite_schema where sql is not null and name not like 'sqlite\\_%' escape '\\'
         order by type = 'index', name",
    )?;
    let objects = objects.query_map([], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, String>(2)?,
        ))
    })?;
    for object in objects {
        let (kind, name, sql) = object?;
        text.push_str(&format!("{sql};\n"));
        if kind != "table" {
            continue;
        }
        let mut columns =
            snapshot.prepare("select name from pragma_table_info($1) order by cid")?;
        let columns: Vec<String> = columns
            .query_map([&name], |row| {
                Ok(format!("quote({})", row.get::<_, String>(0)?))
            })?
            .collect::<Result<_, _>>()?;
        let values = columns.join(" || ',' || ");
        let mut rows = snapshot.prepare(&format!("select {values} from {name}"))?;
        for row in rows.query_map([], |row| row.get::<_, String>(0))? {
            text.push_str(&format!("insert into {name} values({});\n", row?));
        }
    }
    text.push_str("commit;\n");
    Ok(text)
}

/// The name of the schema in a dump.
const SCHEMA: &str = "schema_of_the_dump";
