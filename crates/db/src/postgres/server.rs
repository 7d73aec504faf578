use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_postgres::config::Host;
use tokio_postgres::{Config, Error};

use super::SessionPurpose;
use super::address::{Address, IDLE_TIMEOUT, STATEMENT_TIMEOUT};
use super::error::classify;
use super::pooler::{self, CHECK_INTERVAL, Found};
use super::session::Session;
use super::tls;
use super::wire::Wire;
use crate::error::DbError;
use crate::migrate::while_reporting;
use crate::options::SecretUrl;
use crate::tx::Tx;

/// The checked address of the server. Not `Debug`, because it contains the password.
#[derive(Clone)]
pub(crate) struct Server {
    address: Address,
    schema: Option<String>,
    seen: Arc<ServerFindings>,
}

/// Findings of earlier connections.
#[derive(Debug, Default)]
struct ServerFindings {
    /// A pooler rejects the mark that distinguishes it from a server.
    refuses_marks: AtomicBool,
    /// Connections get other server processes, which do not know their statements.
    loses_statements: AtomicBool,
    is_pooler_told: AtomicBool,
    /// The server has accepted a connection.
    is_connected: AtomicBool,
    /// A job has completed.
    is_in_use: AtomicBool,
}

/// The properties of a connection that its session needs.
pub(super) struct Traits {
    /// True if a pooler may give each transaction another server connection.
    pub(super) is_pooled: bool,
    /// The settings at the beginning of each transaction, after its first command, if the
    /// connection must not keep them.
    pub(super) settings: String,
    seen: Arc<ServerFindings>,
}

impl Traits {
    /// True if a prepared statement still exists when it is used.
    pub(super) fn keeps_statements(&self) -> bool {
        !self.seen.loses_statements.load(Ordering::Relaxed)
    }

    /// Records that a prepared statement was lost.
    pub(super) fn lose_statements(&self) {
        if !self.seen.loses_statements.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "prepared statements get lost, as behind a connection pooler: none are used any more"
            );
        }
    }
}

impl Server {
    pub(crate) fn new(url: &SecretUrl, schema: Option<&str>) -> Result<Server, DbError> {
        let address = Address::parse(url)?;
        let seen = ServerFindings::default();
        let loses = address.named_statements == Some(false);
        seen.loses_statements.store(loses, Ordering::Relaxed);
        Ok(Server {
            address,
            schema: schema.map(str::to_owned),
            seen: Arc::new(seen),
        })
    }

    /// Connects. A direct connection to the server keeps its settings. Behind a pooler each
    /// transaction sends them, because the connection is shared.
    pub(crate) fn connect(&self, purpose: SessionPurpose) -> Result<Session, DbError> {
        let mark = pooler::new_mark();
        let wire = self.marked_wire(&mark)?;
        let failed = |error: Error| classify(&error);
        let found = wire
            .wait(|client| pooler::find(client, &mark))
            .map_err(failed)?;
        let mut settings = self.settings(purpose, &found);
        if found.is_pooled {
            self.meet_pooler(&wire)?;
        } else {
            wire.wait(|client| client.batch_execute(&settings))
                .map_err(failed)?;
            settings.clear();
        }
        let traits = Traits {
            is_pooled: found.is_pooled,
            settings,
            seen: Arc::clone(&self.seen),
        };
        Ok(Session::new(wire, traits, purpose == SessionPurpose::Write))
    }

    /// Connects for a migration, and makes the schema if it does not exist.
    pub(crate) fn prepare(&self) -> Result<Session, DbError> {
        let connected = self.connect(SessionPurpose::Migrate);
        let mut session = connected.map_err(|error| match error {
            DbError::Denied(message) => DbError::Denied(message),
            error => DbError::Open(error.to_string()),
        })?;
        let Some(schema) = &self.schema else {
            return Ok(session);
        };
        session.begin("begin");
        let exists = Tx::postgres(&mut session).query_opt(
            "select 1 from pg_namespace where nspname = $1",
            &[schema],
            |_| Ok(()),
        );
        session.roll_back();
        if exists?.is_none() {
            // Two processes may both find it missing. Even `if not exists` can then collide.
            match session.script(&format!("create schema if not exists {}", quote(schema))) {
                Err(DbError::Conflict { .. }) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(session)
    }

    /// Runs work that begins with a connection. Until the first such work is done, the log says
    /// what it waits for.
    pub(crate) fn saying_what_it_waits_for<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.seen.is_in_use.load(Ordering::Relaxed) {
            return work();
        }
        let report = |elapsed: Duration| {
            let what = match self.seen.is_connected.load(Ordering::Relaxed) {
                false => "a connection, which it has not taken yet",
                true => "the answer to a statement",
            };
            tracing::warn!(
                "waiting for {what}: PostgreSQL at {}, for {} s so far; the server may be \
                 overloaded, or a connection pooler before it may have no connection left for \
                 this process",
                self.addresses(),
                elapsed.as_secs()
            );
        };
        while_reporting(FIRST_REPORT, report, work)
    }

    /// Records that a job has completed.
    pub(super) fn mark_in_use(&self) {
        self.seen.is_in_use.store(true, Ordering::Relaxed);
    }

    /// The statement that sets a connection's settings, or those of one transaction. Empty if there
    /// are none.
    fn settings(&self, purpose: SessionPurpose, found: &Found) -> String {
        let Address {
            statement_timeout,
            idle_in_transaction_timeout,
            ..
        } = self.address;
        let statement_timeout = match purpose {
            // Building an index of a large table takes long.
            SessionPurpose::Migrate => Some(Duration::ZERO),
            SessionPurpose::Write | SessionPurpose::Read => statement_timeout,
        };
        let ms = |timeout: Duration| timeout.as_millis().to_string();
        let is_write = purpose == SessionPurpose::Write;
        let is_short = purpose != SessionPurpose::Migrate;
        let settings = [
            (STATEMENT_TIMEOUT, statement_timeout.map(ms)),
            (IDLE_TIMEOUT, idle_in_transaction_timeout.map(ms)),
            // Plans by keys have high costs, which would start just-in-time compilation: it takes longer than they do.
            ("jit", is_short.then(|| "off".to_owned())),
            // PostgreSQL's own method takes a third of the time of storing a post.
            (
                "default_toast_compression",
                (is_write && found.has_lz4).then(|| "lz4".to_owned()),
            ),
            ("search_path", self.schema.as_deref().map(quote)),
            (
                CHECK_INTERVAL,
                (!found.is_pooled && found.checks_connections).then(|| "1000".to_owned()),
            ),
        ];
        // The connections of a pooler come from its own machine.
        let options = self.address.config.get_options().unwrap_or_default();
        let liveness = LIVENESS
            .iter()
            .filter(|(name, _)| !found.is_pooled && !options.contains(name));
        let liveness = liveness.map(|(name, value)| (*name, Some((*value).to_owned())));
        let settings = settings
            .into_iter()
            .chain(liveness)
            .filter_map(|(name, value)| {
                let value = literal(&value?);
                Some(format!(
                    "set_config('{name}', {value}, {})",
                    found.is_pooled
                ))
            });
        let settings: Vec<String> = settings.collect();
        match settings.is_empty() {
            true => String::new(),
            // One statement, because each costs time on the server.
            false => format!("; select {}", settings.join(", ")),
        }
    }

    /// Finds out how a pooler treats statements, unless the operator has said it.
    fn meet_pooler(&self, wire: &Wire) -> Result<(), DbError> {
        let keeps = match self.address.named_statements {
            Some(named) => named,
            None => wire
                .wait(pooler::keeps_statements)
                .map_err(|error| classify(&error))?,
        };
        // Several poolers may share one address, so a feature that one of them loses is not used
        // with any.
        self.seen
            .loses_statements
            .fetch_or(!keeps, Ordering::Relaxed);
        if !self.seen.is_pooler_told.swap(true, Ordering::Relaxed) {
            let kept = if keeps { "" } else { " not" };
            tracing::info!(
                "a connection pooler is before PostgreSQL at {}: statements are{kept} prepared",
                self.addresses()
            );
        }
        Ok(())
    }

    /// Connects, with a mark that only the server itself accepts.
    fn marked_wire(&self, mark: &str) -> Result<Wire, DbError> {
        let config = &self.address.config;
        if !self.seen.refuses_marks.load(Ordering::Relaxed) {
            let options = config.get_options().unwrap_or_default();
            let mut marked = config.clone();
            marked.options(format!("{options} {}", pooler::option(mark)).trim_start());
            match self.wire(&marked)? {
                Err(error) if may_refuse_options(&error) => {
                    let plain = self.wire(config)?;
                    self.seen
                        .refuses_marks
                        .fetch_or(plain.is_ok(), Ordering::Relaxed);
                    return plain.map_err(|error| self.refused(&error));
                }
                connected => return connected.map_err(|error| self.refused(&error)),
            }
        }
        self.wire(config)?.map_err(|error| self.refused(&error))
    }

    fn wire(&self, config: &Config) -> Result<Result<Wire, Error>, DbError> {
        let wire = Wire::connect(config, self.address.tls.as_ref())?;
        let is_connected = wire.is_ok();
        self.seen
            .is_connected
            .store(is_connected, Ordering::Relaxed);
        Ok(wire)
    }

    fn refused(&self, error: &Error) -> DbError {
        let reason = match error.as_db_error() {
            Some(refusal) => refusal.message().to_owned(),
            None => tls::explain(error).unwrap_or_else(|| {
                std::error::Error::source(error)
                    .map_or_else(|| error.to_string(), ToString::to_string)
            }),
        };
        // A rejection before the log-in has no code.
        let lacks_password = reason == PASSWORD_MISSING;
        let remedy = match class_of(error) {
            Some(INVALID_AUTHORIZATION) => "; check user and password in the database's URL",
            Some(NO_DATABASE) => "; create it, or name another one in the database's URL",
            None if lacks_password => "; the database's URL has none",
            None if is_io(error) => "; check the address, and that the server runs",
            _ => "",
        };
        let message = format!(
            "cannot connect to PostgreSQL at {}: {reason}{remedy}",
            self.addresses()
        );
        match class_of(error) {
            Some(INVALID_AUTHORIZATION) => DbError::Denied(message),
            None if lacks_password => DbError::Denied(message),
            _ => DbError::ConnectionLost(message),
        }
    }

    fn addresses(&self) -> String {
        let config = &self.address.config;
        let ports = config.get_ports();
        let names = config.get_hosts().iter().enumerate().map(|(n, host)| {
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

/// A quoted name in SQL.
fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A quoted text in SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The log says within three seconds what is missing.
const FIRST_REPORT: Duration = Duration::from_millis(2_500);

/// True if a server's rejection may concern `options`, for which poolers have no common code. Such
/// an error does not concern the log-in, the database, the server's resources or its end.
fn may_refuse_options(error: &Error) -> bool {
    let others = [INVALID_AUTHORIZATION, "3D", "53", "57"];
    class_of(error).is_some_and(|class| !others.contains(&class))
}

/// The class of a server's error.
fn class_of(error: &Error) -> Option<&str> {
    error.code().and_then(|code| code.code().get(..2))
}

/// True if the server could not be reached.
fn is_io(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.is::<std::io::Error>())
}

/// The message of `tokio-postgres`.
const PASSWORD_MISSING: &str = "password missing";
const NO_DATABASE: &str = "3D";
/// The class of a wrong password, or of an account that does not exist.
const INVALID_AUTHORIZATION: &str = "28";

/// With these the server notices within 2 s that this machine has vanished, and ends its sessions.
/// A session that waits for a row may get it just before it is ended, and then holds it for the
/// same time again. Others get the row within 4 s, the time of leases.
const LIVENESS: [(&str, &str); 4] = [
    ("tcp_keepalives_idle", "1"),
    ("tcp_keepalives_interval", "1"),
    ("tcp_keepalives_count", "1"),
    ("tcp_user_timeout", "2000"),
];
