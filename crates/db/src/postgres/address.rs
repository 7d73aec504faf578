//! PostgreSQL URLs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::{Tls, Trust};
use crate::error::DbError;
use crate::options::SecretUrl;

/// The address and options of a connection. Not `Debug`, because it contains the password.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    /// `None` if TLS is never used.
    pub(super) tls: Option<Tls>,
    /// The longest time of a statement; `None` uses the server's setting. Zero means no limit.
    pub(super) statement_timeout: Option<Duration>,
    /// The longest idle time of a transaction, with the same rules.
    pub(super) idle_in_transaction_timeout: Option<Duration>,
    /// True if statements are prepared under names. `None`: they are if the server, or a pooler
    /// before it, keeps them.
    pub(super) named_statements: Option<bool>,
}

impl Address {
    /// Parses a URL, with the parameters that the driver knows and those that it does not.
    pub(super) fn parse(url: &SecretUrl) -> Result<Address, DbError> {
        let (rest, own) = Own::take_from(url.expose())?;
        // The parser's own message may quote a part of the password.
        let mut config: Config = rest.parse().map_err(|_| {
            DbError::Open(
                "the PostgreSQL URL is not valid (special characters in a password must be \
                 percent-encoded)"
                    .into(),
            )
        })?;
        let (mode, trust) = own.tls()?;
        config.ssl_mode(mode);
        let tls = match mode {
            SslMode::Disable => None,
            _ => Some(Tls::new(trust, own.root.as_deref())?),
        };
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNANSWERED_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("driftline");
        }
        let options = config.get_options().unwrap_or_default().to_owned();
        let default = |name: &str, default| (!options.contains(name)).then_some(default);
        let statement = default(STATEMENT_TIMEOUT, DEFAULT_STATEMENT_TIMEOUT);
        let idle = default(IDLE_TIMEOUT, DEFAULT_IDLE_TIMEOUT);
        Ok(Address {
            statement_timeout: own.statement_timeout.or(statement),
            idle_in_transaction_timeout: own.idle_timeout.or(idle),
            named_statements: own.named_statements,
            config,
            tls,
        })
    }
}

/// The same connection for PostgreSQL's own programs, which read it from their environment. The
/// list of processes does not show it.
pub(crate) fn client_environment(
    url: &SecretUrl,
) -> Result<Vec<(&'static str, OsString)>, DbError> {
    let (_, own) = Own::take_from(url.expose())?;
    let Address { config, .. } = Address::parse(url)?;
    let mut found: Vec<(&'static str, OsString)> = Vec::new();
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.into(),
        Host::Unix(path) => path.clone().into_os_string(),
    });
    let hosts: Vec<OsString> = hosts.collect();
    let ports: Vec<OsString> = config
        .get_ports()
        .iter()
        .map(|port| port.to_string().into())
        .collect();
    let comma = OsStr::new(",");
    found.push(("PGHOST", hosts.join(comma)));
    found.push(("PGPORT", ports.join(comma)));
    let user = config.get_user().unwrap_or_default();
    found.push(("PGUSER", user.into()));
    found.push(("PGDATABASE", config.get_dbname().unwrap_or(user).into()));
    if let Some(password) = config.get_password() {
        found.push(("PGPASSWORD", OsString::from_vec(password.to_vec())));
    }
    let verifies = matches!(own.mode.as_deref(), Some("verify-ca" | "verify-full"));
    let root = own.root.or(verifies.then(|| "system".to_owned()));
    found.extend(own.mode.map(|mode| ("PGSSLMODE", mode.into())));
    found.extend(root.map(|root| ("PGSSLROOTCERT", root.into())));
    found.push(("PGAPPNAME", "driftline backup".into()));
    found.retain(|(_, value)| !value.is_empty());
    Ok(found)
}

/// The parameters that the driver does not know, or knows only in part.
#[derive(Default)]
struct Own {
    mode: Option<String>,
    root: Option<String>,
    statement_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    named_statements: Option<bool>,
}

impl Own {
    /// Removes these parameters from a URL, or from words of the form `key=value`.
    fn take_from(text: &str) -> Result<(String, Own), DbError> {
        let mut own = Own::default();
        let (start, query, separator) = match text.split_once('?') {
            _ if !text.contains("://") => ("", text, " "),
            Some((start, query)) => (start, query, "&"),
            None => return Ok((text.to_owned(), own)),
        };
        let mut kept = Vec::new();
        for pair in query.split(separator) {
            let taken = match pair.split_once('=') {
                Some((key, value)) => own.take(key, &decoded(value))?,
                None => false,
            };
            if !taken {
                kept.push(pair);
            }
        }
        let between = if start.is_empty() { "" } else { "?" };
        Ok((format!("{start}{between}{}", kept.join(separator)), own))
    }

    /// Stores a parameter's value; returns true if the parameter is one of these.
    fn take(&mut self, key: &str, value: &str) -> Result<bool, DbError> {
        match key {
            "sslmode" => self.mode = Some(value.to_owned()),
            "sslrootcert" => self.root = Some(value.to_owned()),
            STATEMENT_TIMEOUT => self.statement_timeout = Some(duration(key, value)?),
            IDLE_TIMEOUT => self.idle_timeout = Some(duration(key, value)?),
            PREPARED_STATEMENTS => self.named_statements = is_on(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The TLS mode as PostgreSQL's own clients interpret it: with a root certificate, the chain is
    /// checked.
    fn tls(&self) -> Result<(SslMode, Trust), DbError> {
        let named = match self.root {
            Some(_) => Trust::Authority,
            None => Trust::Anyone,
        };
        match self.mode.as_deref() {
            Some("disable") => Ok((SslMode::Disable, Trust::Anyone)),
            Some("prefer") | None => Ok((SslMode::Prefer, Trust::Anyone)),
            Some("require") => Ok((SslMode::Require, named)),
            Some("verify-ca") => Ok((SslMode::Require, Trust::Authority)),
            Some("verify-full") => Ok((SslMode::Require, Trust::AuthorityAndName)),
            Some(_) => Err(DbError::Open(
                "the PostgreSQL URL's sslmode must be disable, prefer, require, verify-ca or \
                 verify-full"
                    .into(),
            )),
        }
    }
}

/// A value without percent-encoding. A `+` stays itself, as in the driver.
fn decoded(value: &str) -> String {
    percent_encoding::percent_decode_str(value)
        .decode_utf8_lossy()
        .into_owned()
}

/// A time in PostgreSQL's notation: `30s`, `5min`, or a number of ms.
fn duration(key: &str, value: &str) -> Result<Duration, DbError> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ms_each = match &value[digits.len()..] {
        "" | "ms" => Some(1),
        "s" => Some(1_000),
        "min" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let count: Option<u32> = digits.parse().ok();
    let ms = count.zip(ms_each).map(|(count, ms)| u64::from(count) * ms);
    ms.filter(|ms| *ms <= i32::MAX as u64)
        .map(Duration::from_millis)
        .ok_or_else(|| {
            DbError::Open(format!(
                "the PostgreSQL URL's {key} must be a time such as 30s or 5min, or 0 for none"
            ))
        })
}

/// True if statements are prepared; `None` if that must be detected.
fn is_on(value: &str) -> Result<Option<bool>, DbError> {
    match value {
        "auto" => Ok(None),
        "true" => Ok(Some(true)),
        "false" => Ok(Some(false)),
        _ => Err(DbError::Open(format!(
            "the PostgreSQL URL's {PREPARED_STATEMENTS} must be auto, true or false"
        ))),
    }
}

const PREPARED_STATEMENTS: &str = "prepared_statements";
pub(super) const STATEMENT_TIMEOUT: &str = "statement_timeout";
pub(super) const IDLE_TIMEOUT: &str = "idle_in_transaction_session_timeout";
/// Longer than any healthy statement takes. Counting a large source's entries takes a minute.
const DEFAULT_STATEMENT_TIMEOUT: Duration = Duration::from_secs(300);
/// A transaction waits only for the computation of this process. An idle one holds locks for which
/// others wait. If its machine vanishes, they wait for this time, which equals the time of leases.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// A machine that vanishes sends no reset. The connection breaks if it acknowledges nothing for
/// this time. Longer statements are still acknowledged.
const UNANSWERED_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, DbError> {
        Address::parse(&SecretUrl::new(text))
    }

    fn error_of(text: &str) -> String {
        match parse(text) {
            Ok(_) => panic!("{text} is taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_the_driver_does_not_know_is_taken_out() {
        for text in [
            "postgres://me:pw@db.example/x?sslmode=disable&statement_timeout=30s&user=you",
            "host=db.example sslmode=disable statement_timeout=30s user=you password=pw dbname=x",
        ] {
            let address = parse(text).expect("a good URL");
            assert_eq!(address.config.get_user(), Some("you"));
            assert_eq!(address.config.get_dbname(), Some("x"));
            assert_eq!(address.config.get_ssl_mode(), SslMode::Disable);
            assert!(address.tls.is_none());
            assert_eq!(address.statement_timeout, Some(Duration::from_secs(30)));
            let idle = address.idle_in_transaction_timeout;
            assert_eq!(idle, Some(DEFAULT_IDLE_TIMEOUT));
        }
    }

    #[test]
    fn times_are_what_postgresql_takes_for_such() {
        for (text, ms) in [
            ("0", 0),
            ("250", 250),
            ("250ms", 250),
            ("5min", 300_000),
            ("1h", 3_600_000),
        ] {
            let url = format!("postgres://h/d?sslmode=disable&statement_timeout={text}");
            let address = parse(&url).expect("a good URL");
            assert_eq!(address.statement_timeout, Some(Duration::from_millis(ms)));
        }
        for text in ["", "s", "-1", "5 s", "1d5", "99999999999", "1000h"] {
            let url = format!("postgres://h/d?idle_in_transaction_session_timeout={text}");
            assert!(error_of(&url).contains("must be a time"), "{text}");
        }
        let options = "postgres://h/d?sslmode=disable&options=-c%20statement_timeout%3D7s";
        let address = parse(options).expect("a good URL");
        assert_eq!(address.statement_timeout, None);
    }

    #[test]
    fn prepared_statements_are_found_out_unless_told() {
        for (text, named) in [
            ("", None),
            ("&prepared_statements=auto", None),
            ("&prepared_statements=true", Some(true)),
            ("&prepared_statements=false", Some(false)),
        ] {
            let address = parse(&format!("postgres://h/d?sslmode=disable{text}"));
            assert_eq!(address.expect("a good URL").named_statements, named);
        }
        let error = error_of("postgres://h/d?prepared_statements=no");
        assert!(error.contains("auto, true or false"), "{error}");
    }

    #[test]
    fn modes_are_those_of_postgresqls_clients() {
        use SslMode::{Disable, Prefer, Require};
        use Trust::{Anyone, Authority, AuthorityAndName};
        for (text, mode, trust) in [
            ("", Prefer, Anyone),
            ("sslmode=disable", Disable, Anyone),
            ("sslmode=prefer", Prefer, Anyone),
            ("sslmode=require", Require, Anyone),
            ("sslmode=require&sslrootcert=a", Require, Authority),
            ("sslmode=verify-ca", Require, Authority),
            ("sslmode=verify-full", Require, AuthorityAndName),
        ] {
            let (_, own) = Own::take_from(&format!("postgres://h/d?{text}")).expect("taken");
            assert_eq!(own.tls(), Ok((mode, trust)), "{text}");
        }
        for mode in ["allow", "verify", "verify-fully", "VERIFY-FULL", ""] {
            let url = format!("postgres://me:secret@h/d?sslmode={mode}");
            let error = error_of(&url);
            assert!(
                error.contains("verify-full") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
