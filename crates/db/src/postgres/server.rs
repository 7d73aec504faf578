use std::fmt::Write;
use std::time::Duration;

use tokio_postgres::config::Host;

use super::SessionPurpose;
use super::address::{Address, IDLE_TIMEOUT, STATEMENT_TIMEOUT};
use super::error::classify;
use super::session::Session;
use super::tls;
use super::wire::Wire;
use crate::error::DbError;
use crate::options::SecretUrl;

/// Where to connect, checked. Not `Debug`: it holds the password.
#[derive(Clone)]
pub(crate) struct Server {
    address: Address,
    /// The statement that makes names mean this schema's tables.
    search_path: Option<String>,
}

impl Server {
    pub(crate) fn new(url: &SecretUrl, schema: Option<&str>) -> Result<Server, DbError> {
        let address = Address::parse(url)?;
        let search_path = schema.map(|schema| format!("set search_path to {}", quote(schema)));
        Ok(Server {
            address,
            search_path,
        })
    }

    pub(crate) fn connect(&self, purpose: SessionPurpose) -> Result<Session, DbError> {
        let wire = self.wire()?;
        let statement_timeout = match purpose {
            // An index of a large table takes its time.
            SessionPurpose::Migrate => Some(Duration::ZERO),
            SessionPurpose::Write | SessionPurpose::Read => self.address.statement_timeout,
        };
        let mut settings = String::new();
        for (name, timeout) in [
            (STATEMENT_TIMEOUT, statement_timeout),
            (IDLE_TIMEOUT, self.address.idle_in_transaction_timeout),
        ] {
            if let Some(timeout) = timeout {
                let _ = write!(settings, "set {name} = {}; ", timeout.as_millis());
            }
        }
        if purpose == SessionPurpose::Write {
            // Plans by keys have high prices, which would set just-in-time compiling going.
            settings.push_str("set jit = off; ");
            settings.push_str(QUICKLY_PACKED);
        }
        if let Some(search_path) = &self.search_path {
            settings.push_str(search_path);
        }
        if !settings.is_empty() {
            wire.wait(|client| client.batch_execute(&settings))
                .map_err(|error| classify(&error))?;
        }
        Ok(Session::new(wire, purpose == SessionPurpose::Write))
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
        let Address { config, tls, .. } = &self.address;
        Wire::connect(config, tls.as_ref())?.map_err(|error| {
            let reason = match error.as_db_error() {
                Some(refusal) => refusal.message().to_owned(),
                None => tls::explain(&error).unwrap_or_else(|| {
                    std::error::Error::source(&error)
                        .map_or_else(|| error.to_string(), ToString::to_string)
                }),
            };
            DbError::ConnectionLost(format!(
                "cannot connect to PostgreSQL at {}: {reason}",
                self.addresses()
            ))
        })
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

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Large texts are packed with LZ4 where the server was built with it: its own way takes a third of
/// the time of storing a post.
const QUICKLY_PACKED: &str = "select set_config(name, 'lz4', false) from pg_settings \
    where name = 'default_toast_compression' and 'lz4' = any(enumvals); ";
