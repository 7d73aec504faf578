use std::env;

use super::url::UrlParts;
use crate::db::Db;
use crate::error::DbError;
use crate::options::{Options, SecretUrl, Target};
use crate::postgres::{Server, Session, SessionPurpose};

/// A PostgreSQL server that is named for the tests of one run, which use it instead of clusters of
/// their own.
#[derive(Debug)]
pub struct NamedServer {
    url: SecretUrl,
    /// The prefix of the names of this run's schemas and databases.
    prefix: String,
}

/// The reason why tests cannot use a server. No text contains the password.
#[derive(Debug, thiserror::Error)]
pub enum NamedServerError {
    /// The URL does not have the form that tests can parse.
    #[error(
        "the URL must be of the form postgres://user[:password]@host[:port]/database (special \
         characters percent-encoded)"
    )]
    Url,

    /// The name of the run cannot be part of a schema's name.
    #[error("the name of a run has letters a-z, digits and _ only, at most 30")]
    Run,

    /// The connection failed, or the server did not answer.
    #[error("the server cannot be used: {0}")]
    Unusable(#[from] DbError),

    /// The role may not create the objects that tests need.
    #[error(
        "the role must be allowed to create {what}, since each test has its own: {error} ({advice})"
    )]
    Forbidden {
        /// The kind of object.
        what: &'static str,
        /// The server's answer.
        error: DbError,
        /// The statement that allows it.
        advice: &'static str,
    },
}

/// The dropped objects of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The number of schemas of the named database.
    pub schemas: usize,
    /// The number of databases.
    pub databases: usize,
    /// The objects that could not be dropped, with the reasons.
    pub left: Vec<String>,
}

impl NamedServer {
    /// The server of `DRIFTLINE_TEST_POSTGRES_URL`, for the run of [`TEST_RUN`]; `None` if there is
    /// no URL.
    ///
    /// # Errors
    /// The same as those of [`NamedServer::check`].
    pub fn of_environment() -> Option<Result<NamedServer, NamedServerError>> {
        let url = env::var(TEST_URL).ok()?;
        Some(NamedServer::check(&url, &run().unwrap_or_default()))
    }

    /// Checks that tests can use the server, by creating the objects that they create. The run's
    /// name is part of each name that tests choose if [`TEST_RUN`] has it.
    ///
    /// # Errors
    /// [`NamedServerError`] with the reason if they cannot.
    pub fn check(url: &str, run: &str) -> Result<NamedServer, NamedServerError> {
        UrlParts::parse(url).ok_or(NamedServerError::Url)?;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if run.is_empty() || run.len() > MAX_RUN || !run.chars().all(is_plain) {
            return Err(NamedServerError::Run);
        }
        let server = NamedServer {
            url: SecretUrl::new(url),
            prefix: prefix(run),
        };
        let mut session = server.session()?;
        for (what, kind, advice) in [
            (
                "schemas",
                "schema",
                "grant create on database NAME to ROLE, or name a database that it owns",
            ),
            ("databases", "database", "alter role ROLE createdb"),
        ] {
            let name = format!("{}check", server.prefix);
            let made = session.script(&format!("create {kind} {name}"));
            made.map_err(|error| NamedServerError::Forbidden {
                what,
                error,
                advice,
            })?;
            session.script(&format!("drop {kind} {name}"))?;
        }
        Ok(server)
    }

    /// Drops the schemas and databases of this run only. Its tests must have ended.
    ///
    /// # Errors
    /// [`DbError`] if the server cannot list them.
    pub fn drop_all(&self) -> Result<Dropped, DbError> {
        let mut dropped = Dropped::default();
        let (schemas, databases) = self.names()?;
        let mut session = self.session()?;
        // A process that was killed may still hold locks, until the server notices.
        session.script("set lock_timeout = '20s'")?;
        for name in schemas {
            match session.script(&format!("drop schema {} cascade", quoted(&name))) {
                Ok(()) => dropped.schemas += 1,
                Err(error) => dropped.left.push(format!("schema {name}: {error}")),
            }
        }
        for name in databases {
            match session.script(&format!("drop database {} with (force)", quoted(&name))) {
                Ok(()) => dropped.databases += 1,
                Err(error) => dropped.left.push(format!("database {name}: {error}")),
            }
        }
        Ok(dropped)
    }

    /// The run's schemas and databases.
    fn names(&self) -> Result<(Vec<String>, Vec<String>), DbError> {
        let target = Target::Postgres {
            url: self.url.clone(),
            schema: None,
        };
        let mut options = Options::new(target, &[]);
        (options.readers, options.writers) = (1, 1);
        let db = Db::open(options)?;
        let prefix = self.prefix.clone();
        let names = db.read_blocking(move |tx| {
            let mut ask = |sql| tx.query(sql, &[&prefix], |row| row.text(0));
            Ok::<_, DbError>((ask(SCHEMAS)?, ask(DATABASES)?))
        });
        db.close_blocking();
        names
    }

    fn session(&self) -> Result<Session, DbError> {
        Server::new(&self.url, None)?.connect(SessionPurpose::Read)
    }
}

/// The prefix of the names of a run's schemas and databases.
pub(super) fn prefix(run: &str) -> String {
    format!("test_{run}_")
}

/// The run to which this process's tests belong.
pub(super) fn run() -> Option<String> {
    env::var(TEST_RUN).ok()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The environment variable with the URL of a server that tests use instead of clusters of their
/// own.
pub(super) const TEST_URL: &str = "DRIFTLINE_TEST_POSTGRES_URL";
/// The environment variable with the name of a run of tests, which is part of the names of all
/// objects that they create on a server.
pub const TEST_RUN: &str = "DRIFTLINE_TEST_RUN";
/// Names have 63 bytes at most.
const MAX_RUN: usize = 30;
const SCHEMAS: &str =
    "select cast(nspname as text) from pg_namespace where starts_with(cast(nspname as text), $1)";
const DATABASES: &str =
    "select cast(datname as text) from pg_database where starts_with(cast(datname as text), $1)";
