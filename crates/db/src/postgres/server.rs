use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::Purpose;
use super::error::classify;
use super::session::Session;
use super::wire::Wire;
use crate::error::DbError;
use crate::options::SecretUrl;

/// Where to connect, checked. Not `Debug`: it holds the password.
#[derive(Clone)]
pub(crate) struct Server {
    config: Config,
    /// The statement that makes names mean this schema's tables.
    search_path: Option<String>,
}

impl Server {
    pub(crate) fn new(url: &SecretUrl, schema: Option<&str>) -> Result<Server, DbError> {
        if url.expose().contains("sslmode=verify") {
            return Err(no_tls());
        }
        // The parser's own message may quote a part of the password.
        let mut config: Config = url.expose().parse().map_err(|_| {
            DbError::Open(
                "the PostgreSQL URL is not valid (special characters in a password must be \
                 percent-encoded)"
                    .into(),
            )
        })?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(no_tls());
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNANSWERED_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("driftline");
        }
        let search_path = schema.map(|schema| format!("set search_path to {}", quote(schema)));
        Ok(Server {
            config,
            search_path,
        })
    }

    pub(crate) fn connect(&self, purpose: Purpose) -> Result<Session, DbError> {
        let wire = self.wire()?;
        let mut settings = String::new();
        if purpose == Purpose::Write {
            settings.push_str(BY_KEYS);
            settings.push_str(QUICKLY_PACKED);
        }
        if let Some(search_path) = &self.search_path {
            settings.push_str(search_path);
        }
        if !settings.is_empty() {
            wire.wait(|client| client.batch_execute(&settings))
                .map_err(|error| classify(&error))?;
        }
        Ok(Session::new(wire))
    }

    /// Makes the schema if it does not exist; fails at once if the server cannot be used.
    pub(crate) fn prepare(&self, schema: Option<&str>) -> Result<(), DbError> {
        let wire = self
            .wire()
            .map_err(|error| DbError::Open(error.to_string()))?;
        let Some(schema) = schema else { return Ok(()) };
        let exists = wire
            .wait(async |client| {
                let named = "select 1 from pg_namespace where nspname = $1";
                client.query_opt(named, &[&schema]).await
            })
            .map_err(|error| classify(&error))?;
        if exists.is_none() {
            // Two processes may both find it missing; `if not exists` can still collide.
            let make = format!("create schema if not exists {}", quote(schema));
            let made = wire.wait(|client| client.batch_execute(&make));
            match made.map_err(|error| classify(&error)) {
                Err(DbError::Conflict { .. }) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wire(&self) -> Result<Wire, DbError> {
        Wire::connect(&self.config)?.map_err(|error| {
            let reason = match error.as_db_error() {
                Some(refusal) => refusal.message().to_owned(),
                None => std::error::Error::source(&error)
                    .map_or_else(|| error.to_string(), ToString::to_string),
            };
            DbError::ConnectionLost(format!(
                "cannot connect to PostgreSQL at {}: {reason}",
                self.addresses()
            ))
        })
    }

    fn addresses(&self) -> String {
        let ports = self.config.get_ports();
        let names = self.config.get_hosts().iter().enumerate().map(|(n, host)| {
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

fn no_tls() -> DbError {
    DbError::Unsupported(
        "the PostgreSQL URL requires TLS, which this version does not speak: use sslmode=disable \
         on a trusted network, or a local tunnel"
            .into(),
    )
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Writes look rows up by keys. A plan that was made while a table was small or had no statistics
/// would read the whole table instead, and be kept when the table has grown. Without just-in-time
/// compiling, which the prices of plans that are switched off would set going.
const BY_KEYS: &str = "set enable_seqscan = off; set enable_hashjoin = off; \
    set enable_mergejoin = off; set jit = off; ";
/// Large texts are packed with LZ4 where the server was built with it: its own way takes a third of
/// the time of storing a post.
const QUICKLY_PACKED: &str = "select set_config(name, 'lz4', false) from pg_settings \
    where name = 'default_toast_compression' and 'lz4' = any(enumvals); ";
/// A machine that is gone sends no reset: what it does not acknowledge for so long breaks the
/// connection. A statement that takes longer is acknowledged all the same.
const UNANSWERED_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
