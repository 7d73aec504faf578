use std::fmt;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::migrate::Migration;

/// The options of an opening.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database.
    pub target: Target,
    /// The schema's history, in ascending order. If empty, the schema is neither changed nor
    /// checked.
    pub migrations: &'static [Migration],
    /// The number of reading threads, each with a connection during a read.
    pub readers: usize,
    /// The number of writing threads, each with a connection during a write. SQLite always has one.
    pub writers: usize,
    /// The time after which an unused connection to PostgreSQL is closed.
    pub max_idle: Duration,
    /// The number of jobs that may wait in each queue. Further callers wait for a slot.
    pub queue: usize,
    /// The number of writes that SQLite may commit together.
    pub group: usize,
    /// True if the database is only read: every write is rejected, and the schema must be exactly
    /// the program's. For a database file only.
    pub read_only: bool,
}

impl Options {
    /// The default sizes.
    pub fn new(target: Target, migrations: &'static [Migration]) -> Options {
        let readers = match target {
            // These compute. More of them than cores would share each other's time, and a short
            // read would wait for a long one.
            Target::Sqlite { .. } => available_parallelism().map_or(2, usize::from).clamp(2, 8),
            // These wait for a server.
            Target::Postgres { .. } => 4,
        };
        Options {
            target,
            migrations,
            readers,
            writers: 4,
            max_idle: Duration::from_secs(60),
            queue: 1024,
            group: 128,
            read_only: false,
        }
    }

    /// The same options with at most `connections` connections to PostgreSQL, and at least
    /// [`Options::MIN_CONNECTIONS`]. Half of them write. The sizes for SQLite stay the same.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Options {
        if let Target::Postgres { .. } = self.target {
            let connections = connections.max(Options::MIN_CONNECTIONS);
            self.writers = connections.div_ceil(2);
            self.readers = connections - self.writers;
        }
        self
    }

    /// One that writes and one that reads, so that neither waits for the other.
    pub const MIN_CONNECTIONS: usize = 2;
    /// More than servers allow to one program. Each may become a thread.
    pub const MAX_CONNECTIONS: usize = 1000;
}

/// The location of the data.
#[derive(Clone, Debug)]
pub enum Target {
    /// A database file, made if it does not exist. Its folder must exist.
    Sqlite {
        /// The file.
        path: PathBuf,
    },
    /// A PostgreSQL database. The URL's `sslmode` and `sslrootcert` determine whether connections are
    /// encrypted and which certificates are accepted, as PostgreSQL's own clients understand them; its
    /// `statement_timeout` and `idle_in_transaction_session_timeout` bound statements (5 min
    /// without) and idle transactions (4 s).
    Postgres {
        /// The address and the user of the connection.
        url: SecretUrl,
        /// The schema that contains the tables, made if it does not exist. Without it, the server's
        /// default for the user.
        schema: Option<String>,
    },
}

/// A PostgreSQL URL. It may contain a password and so is never shown.
#[derive(Clone)]
pub struct SecretUrl(String);

impl SecretUrl {
    /// Stores a URL, which is not checked before its first use.
    pub fn new(url: impl Into<String>) -> SecretUrl {
        SecretUrl(url.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretUrl(…)")
    }
}

/// The row that a write locks first. The rows that it reads and changes must be descendants of that
/// row.
///
/// PostgreSQL locks it until the commit. SQLite has only one writer. On both, the write fails with
/// [`crate::DbError::RootMissing`] if the row does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root(pub(crate) Option<RootRow>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RootRow {
    pub(crate) table: &'static str,
    pub(crate) key_column: &'static str,
    pub(crate) key: i64,
    /// Another column of its key.
    pub(crate) within: Option<(&'static str, i64)>,
}

impl Root {
    /// The row of `table` whose unique `key_column` is `key`.
    pub const fn row(table: &'static str, key_column: &'static str, key: i64) -> Root {
        Root(Some(RootRow {
            table,
            key_column,
            key,
            within: None,
        }))
    }

    /// The same row, with `key` in another column of its key. A distributed database finds the row
    /// by it.
    pub const fn within(self, key_column: &'static str, key: i64) -> Root {
        match self.0 {
            Some(row) => Root(Some(RootRow {
                within: Some((key_column, key)),
                ..row
            })),
            None => self,
        }
    }

    /// No root. For writes that cannot lose an update, such as the insertion of the root row, or a
    /// claim in one statement.
    pub const fn none() -> Root {
        Root(None)
    }
}
