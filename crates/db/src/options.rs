use std::fmt;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::migrate::Migration;

/// How to open a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which database.
    pub target: Target,
    /// The schema's history, in ascending order; empty leaves the schema alone and unchecked.
    pub migrations: &'static [Migration],
    /// Threads that read, each with a connection while it does.
    pub readers: usize,
    /// Threads that write, each with a connection while it does. SQLite always has one.
    pub writers: usize,
    /// How long a connection to PostgreSQL is kept that is not used.
    pub max_idle: Duration,
    /// How many jobs may wait in each queue; further callers wait for a slot.
    pub queue: usize,
    /// How many writes SQLite may commit together.
    pub group: usize,
    /// Whether the database is only read: every write is refused, and its schema must be this program's.
    /// For a database file alone.
    pub read_only: bool,
}

impl Options {
    /// The default sizes.
    pub fn new(target: Target, migrations: &'static [Migration]) -> Options {
        let readers = match target {
            // These compute: more of them than cores would only share each other's time, and a
            // read that is short would wait for one that is long.
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

    /// With at most so many connections to PostgreSQL, at least [`Options::MIN_CONNECTIONS`]: half of
    /// them write. SQLite's stay as they are.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Options {
        if let Target::Postgres { .. } = self.target {
            let connections = connections.max(Options::MIN_CONNECTIONS);
            self.writers = connections.div_ceil(2);
            self.readers = connections - self.writers;
        }
        self
    }

    /// One that writes and one that reads: neither ever waits for the other.
    pub const MIN_CONNECTIONS: usize = 2;
    /// More than servers give one program; each may become a thread.
    pub const MAX_CONNECTIONS: usize = 1000;
}

/// The location of the data.
#[derive(Clone, Debug)]
pub enum Target {
    /// A database file, made if it does not exist; its folder must.
    Sqlite {
        /// The file.
        path: PathBuf,
    },
    /// A PostgreSQL database. The URL's `sslmode` and `sslrootcert` determine whether connections are
    /// encrypted and which certificates are accepted, as PostgreSQL's own clients understand them; its
    /// `statement_timeout` and `idle_in_transaction_session_timeout` bound statements (5 min
    /// without) and idle transactions (4 s).
    Postgres {
        /// Where and as whom to connect.
        url: SecretUrl,
        /// The schema that holds the tables, made if it does not exist; without it, the server's
        /// default for the user.
        schema: Option<String>,
    },
}

/// A PostgreSQL URL, which may hold a password and so is never shown.
#[derive(Clone)]
pub struct SecretUrl(String);

impl SecretUrl {
    /// Keeps a URL, unchecked until it is used.
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

/// The row that a write locks first: what it reads and changes must hang below that row.
///
/// PostgreSQL locks it until the commit; SQLite has one writer anyway. On both, the write fails
/// with [`crate::DbError::RootMissing`] if the row does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root(pub(crate) Option<RootRow>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RootRow {
    pub(crate) table: &'static str,
    pub(crate) key_column: &'static str,
    pub(crate) key: i64,
    /// A further column of its key.
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

    /// The row where another column of its key is `key` too: a distributed database finds it by that.
    pub const fn within(self, key_column: &'static str, key: i64) -> Root {
        match self.0 {
            Some(row) => Root(Some(RootRow {
                within: Some((key_column, key)),
                ..row
            })),
            None => self,
        }
    }

    /// No root: for writes that cannot lose an update, such as making the root row itself, or a
    /// claim by one statement.
    pub const fn none() -> Root {
        Root(None)
    }
}
