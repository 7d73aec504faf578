//! The sections of the configuration.

use std::path::{Path, PathBuf};

use driftline_api::{people::SignUpMode, transport::Address};
use driftline_core::{social::AccountName, timeline::Settings};
use driftline_mirror::{Policies, Secrets, UpstreamAccess, quotas::Quotas};
use driftline_net::{Http, Options};
use driftline_server::{admin::DEFAULT_SOURCES_PER_ACCOUNT, server_keys::KEY_FILE};
use driftline_store::{Store, refresh::Claims};
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use crate::{
    duration::{HumanMs, duration_or},
    error::CliError,
    options::id_place::{self, LeaseStore, NodeText},
    options::log_format::LogFormat,
    origins::Origins,
    refresh_section::RefreshSection,
    serving, size,
    source_settings::SourceSettings,
};

/// Everything that can be configured. What is not set has the default that
/// `docs/operating.md` lists.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The server.
    pub server: ServerSection,
    /// Where data is kept.
    pub store: StoreSection,
    /// How upstreams are asked.
    pub upstream: UpstreamSection,
    /// What new sources begin with.
    pub defaults: SourceSettings,
    /// How stored posts are kept fresh.
    pub refresh: RefreshSection,
    /// The service of IDs.
    pub id: IdSection,
    /// People's accounts.
    pub accounts: AccountsSection,
    /// Mail to people.
    pub mail: MailSection,
    /// The log.
    pub log: LogSection,
    /// As whom commands are executed; without one as the operator.
    #[serde(skip)]
    pub as_account: Option<AccountName>,
    /// Where these come from.
    #[serde(skip)]
    pub origins: Origins,
}

/// `[log]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// What is logged: a level, or directives as in `RUST_LOG`.
    pub level: Option<String>,
    /// How it is written.
    pub format: LogFormat,
}

/// `[server]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSection {
    /// The address that it listens on.
    pub listen: Option<String>,
    /// The address that clients use, if a proxy is in front of it.
    pub public_url: Option<String>,
    /// The addresses and networks of proxies on other machines.
    pub trusted_proxies: Option<Vec<String>>,
    /// The environment variable that holds the operator's token.
    pub token_env: Option<String>,
    /// The file that holds the operator's token.
    pub token_file: Option<PathBuf>,
    /// The weight of this process among those that share the work.
    pub share: Option<u32>,
    /// The server's name for people.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who runs it.
    pub maintainer: Option<String>,
    /// Their mail address, which everybody sees.
    pub maintainer_mail: Option<String>,
}

/// `[store]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSection {
    /// The data folder.
    pub data: Option<PathBuf>,
    /// The PostgreSQL database that replaces the database file.
    pub database_url: Option<SecretString>,
    /// The schema in it.
    pub database_schema: Option<String>,
    /// The most connections to it.
    pub database_pool: Option<usize>,
    /// Whether the database file is only read: of the flag alone.
    #[serde(skip)]
    pub read_only: bool,
    /// The file with the key of stored credentials, which all processes of a database have.
    pub credentials_key: Option<PathBuf>,
    /// What intake leaves free on the disk of the database file, bytes; 0 for nothing.
    #[serde(deserialize_with = "size::bytes")]
    pub disk_reserve: Option<u64>,
}

/// `[id]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdSection {
    /// Whether `serve` gives out IDs too.
    pub serve: bool,
    /// Where Thrift clients are listened to; `none` for nowhere.
    pub listen_thrift: Option<String>,
    /// Where `id serve` listens to HTTP clients.
    pub listen_http: Option<String>,
    /// Whether other machines may reach those addresses.
    pub allow_remote: bool,
    /// The layout's name.
    pub layout: Option<String>,
    /// The layout's epoch, if not the default.
    pub epoch_ms: Option<i64>,
    /// The node: its number, or the values of its fields.
    pub node: Option<NodeText>,
    /// Where a node is leased.
    pub lease: Option<LeaseStore>,
    /// How long to wait for a clock that is behind.
    pub wait: Option<HumanMs>,
    /// Other services, to be asked about their nodes and clocks.
    #[serde(deserialize_with = "id_place::peers")]
    pub peers: Vec<String>,
    /// Whether they are not asked.
    pub skip_sanity_check: bool,
}

/// `[accounts]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccountsSection {
    /// Who may sign up.
    pub sign_up: SignUpMode,
    /// How many sources of its own an account may have.
    pub sources: Option<u32>,
    /// Whether these may be in private networks, where the operator's may.
    pub allow_private_sources: bool,
}

/// `[mail]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailSection {
    /// The sender.
    pub from: Option<String>,
    /// The SMTP server, without a passphrase; none for files in the data folder.
    pub smtp: Option<String>,
    /// The environment variable that holds the passphrase of its user.
    pub passphrase_env: Option<String>,
    /// The file that holds the passphrase of its user.
    pub passphrase_file: Option<PathBuf>,
}

/// `[upstream]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamSection {
    /// Whether upstreams may be in private networks.
    pub allow_private: bool,
    /// The most that connecting may take.
    pub connect_timeout: Option<HumanMs>,
    /// The most that may pass without a byte.
    pub read_timeout: Option<HumanMs>,
    /// The most that a request may take.
    pub total_timeout: Option<HumanMs>,
    /// The most that may pass on a stream without a byte.
    pub silence_timeout: Option<HumanMs>,
    /// The largest answer, bytes.
    pub max_body_bytes: Option<usize>,
    /// How Driftline introduces itself.
    pub user_agent: Option<String>,
}

impl Config {
    /// The client that asks upstreams.
    ///
    /// # Errors
    /// [`CliError::Usage`] if it cannot be built.
    pub fn http(&self, allow_private: bool) -> Result<Http, CliError> {
        let options = self.http_options(allow_private)?;
        Http::new(options).map_err(CliError::usage)
    }

    /// The options of that client.
    ///
    /// # Errors
    /// [`CliError::Usage`] if a timeout is zero.
    pub fn http_options(&self, allow_private: bool) -> Result<Options, CliError> {
        let upstream = &self.upstream;
        let defaults = Options::default();
        let mut options = Options {
            allow_private: allow_private || upstream.allow_private,
            max_body_bytes: upstream.max_body_bytes.unwrap_or(defaults.max_body_bytes),
            user_agent: upstream.user_agent.clone().unwrap_or(defaults.user_agent),
            ..defaults
        };
        for (key, given, timeout) in [
            (
                "connect_timeout",
                upstream.connect_timeout,
                &mut options.connect_timeout,
            ),
            (
                "read_timeout",
                upstream.read_timeout,
                &mut options.read_timeout,
            ),
            (
                "total_timeout",
                upstream.total_timeout,
                &mut options.total_timeout,
            ),
            (
                "silence_timeout",
                upstream.silence_timeout,
                &mut options.silence_timeout,
            ),
        ] {
            self.check_timeout(key, given)?;
            *timeout = duration_or(given, *timeout);
        }
        Ok(options)
    }

    /// Checks each timeout of `[upstream]`.
    pub fn check_timeouts(&self) -> [Result<(), CliError>; 4] {
        let upstream = &self.upstream;
        [
            ("connect_timeout", upstream.connect_timeout),
            ("read_timeout", upstream.read_timeout),
            ("total_timeout", upstream.total_timeout),
            ("silence_timeout", upstream.silence_timeout),
        ]
        .map(|(key, given)| self.check_timeout(key, given))
    }

    fn check_timeout(&self, key: &str, given: Option<HumanMs>) -> Result<(), CliError> {
        match given {
            Some(HumanMs(0)) => Err(CliError::usage(format!(
                "{} is zero; leave it out for the default",
                self.origins.name(&["upstream", key])
            ))),
            _ => Ok(()),
        }
    }

    /// How upstreams are reached, and what may be asked of them.
    ///
    /// # Errors
    /// [`CliError::Usage`] if `[refresh]` is invalid.
    pub fn access(
        &self,
        store: &Store,
        http: Http,
        data: &Path,
    ) -> Result<UpstreamAccess, CliError> {
        Ok(UpstreamAccess {
            secrets: self.secrets(data),
            quotas: Quotas::new(store.clone(), self.refresh.polling_share()?),
            policies: Policies::new(self.refresh.plan()?),
            claims: Claims::default(),
            keep_deleted: !self.refresh.erase_deleted,
            accounts_reach_private: self.accounts.allow_private_sources,
            ..UpstreamAccess::new(store, http)
        })
    }

    /// Where the key of stored credentials is.
    pub fn secrets(&self, data: &Path) -> Secrets {
        Secrets::new(self.key_file(data))
    }

    /// Its file.
    pub fn key_file(&self, data: &Path) -> PathBuf {
        let configured = self.store.credentials_key.clone();
        configured.unwrap_or_else(|| data.join(KEY_FILE))
    }

    /// How many sources of its own an account may have.
    pub fn sources_per_account(&self) -> u32 {
        self.accounts.sources.unwrap_or(DEFAULT_SOURCES_PER_ACCOUNT)
    }

    /// The configured `public_url`.
    ///
    /// # Errors
    /// [`CliError::Usage`] if it is not a URL of HTTP.
    pub fn public_base(&self) -> Result<Option<Url>, CliError> {
        let text = self.server.public_url.as_deref();
        text.map(serving::public_base).transpose()
    }

    /// The address of the server.
    ///
    /// # Errors
    /// [`CliError::Usage`] if `public_url` is not a URL of HTTP.
    pub fn address(&self) -> Result<Address, CliError> {
        Ok(Address::configured(self.public_base()?.as_ref()))
    }

    /// The settings that new sources begin with.
    pub fn settings(&self) -> Settings {
        self.defaults.or(Settings::default())
    }
}
