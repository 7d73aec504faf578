use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};

use super::error::classify;
use super::session::Session;
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
        if config.get_application_name().is_none() {
            config.application_name("driftline");
        }
        let search_path = schema.map(|schema| format!("set search_path to {}", quote(schema)));
        Ok(Server {
            config,
            search_path,
        })
    }

    pub(crate) fn connect(&self) -> Result<Session, DbError> {
        let mut client = self.client()?;
        if let Some(search_path) = &self.search_path {
            client
                .batch_execute(search_path)
                .map_err(|error| classify(&error))?;
        }
        Ok(Session::new(client))
    }

    /// Makes the schema if it does not exist; fails at once if the server cannot be used.
    pub(crate) fn prepare(&self, schema: Option<&str>) -> Result<(), DbError> {
        let mut client = self
            .client()
            .map_err(|error| DbError::Open(error.to_string()))?;
        let Some(schema) = schema else { return Ok(()) };
        let exists = client
            .query_opt("select 1 from pg_namespace where nspname = $1", &[&schema])
            .map_err(|error| classify(&error))?;
        if exists.is_none() {
            // Two processes may both find it missing; `if not exists` can still collide.
            let made =
                client.batch_execute(&format!("create schema if not exists {}", quote(schema)));
            match made.map_err(|error| classify(&error)) {
                Err(DbError::Conflict { .. }) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn client(&self) -> Result<Client, DbError> {
        self.config.connect(NoTls).map_err(|error| {
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

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
