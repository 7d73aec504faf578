//! Connection poolers: their detection, and their treatment of statements.

use std::hash::{BuildHasher, RandomState};

use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// The properties of the other end of a new connection.
pub(super) struct Found {
    /// True if there is a pooler. It may give each transaction another server connection, which
    /// others also use.
    pub(super) is_pooled: bool,
    /// True if the server supports LZ4 compression.
    pub(super) has_lz4: bool,
    /// True if the server notices the end of a connection while it works or waits for a lock, as it
    /// does since version 14.
    pub(super) checks_connections: bool,
}

/// A new mark for one connection.
pub(super) fn new_mark() -> String {
    format!("{:016x}", RandomState::new().hash_one(0))
}

/// The setting for the interval at which a server checks that a client is still connected.
pub(super) const CHECK_INTERVAL: &str = "client_connection_check_interval";

/// The option that gives a connection its mark. A server keeps it; poolers reject or ignore it.
pub(super) fn option(mark: &str) -> String {
    format!("-c {MARK}={mark}")
}

/// Asks the server for the mark.
pub(super) async fn find(client: &Client, mark: &str) -> Result<Found, Error> {
    let sql = format!(
        "select current_setting('{MARK}', true), exists (select from pg_settings
             where name = 'default_toast_compression' and 'lz4' = any(enumvals)),
         exists (select from pg_settings where name = '{CHECK_INTERVAL}')"
    );
    let answer = client.simple_query(&sql).await?;
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let column = |index| row.and_then(|row| row.get(index));
    Ok(Found {
        is_pooled: column(0) != Some(mark),
        has_lz4: column(1) == Some("t"),
        checks_connections: column(2) == Some("t"),
    })
}

/// True if a pooler keeps prepared statements, which it then knows under names of its own. Other
/// poolers pass the names on, so that the next transaction finds no statement under its name, or
/// another client's.
pub(super) async fn keeps_statements(client: &Client) -> Result<bool, Error> {
    // One transaction has one server connection.
    client.batch_execute("begin").await?;
    let names = async {
        let statement = client.prepare(NAMES).await?;
        let names = client.query(&statement, &[]).await?;
        // The statement is closed with its last row, while the connection is still the same.
        Ok::<Vec<String>, Error>(names.iter().map(|row| row.get(0)).collect())
    };
    let names = names.await;
    client.batch_execute("rollback").await?;
    let names = match names {
        Ok(names) => names,
        // Another client has left a statement of that name.
        Err(error) if error.as_db_error().is_some() => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(!names.is_empty() && !names.iter().any(|name| is_ours(name)))
}

/// True if the driver chooses such names: `s` and a number.
fn is_ours(name: &str) -> bool {
    let number = name.strip_prefix('s').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

const MARK: &str = "driftline.connection";
const NAMES: &str = "select name::text from pg_prepared_statements \
    where statement like '%driftline looks for its own name%'";
