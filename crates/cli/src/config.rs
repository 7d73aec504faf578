//! The configuration: a TOML file, then the environment, then flags.

use std::path::{Path, PathBuf};

use driftline_core::timeline::Settings;
use driftline_mirror::{Policies, Secrets, UpstreamAccess, quotas::Quotas};
use driftline_net::{Http, Options};
use driftline_store::{Store, refresh::Claims};
use figment::{
    Figment,
    error::Kind,
    providers::{Env, Format as _, Toml},
};
use secrecy::SecretString;
use serde::Deserialize;

use crate::{
    cli::Global,
    duration::{HumanMs, duration_or},
    error::CliError,
    id_options::{self, LeaseStore, NodeText},
    origins::{Origins, is_variable},
    refresh_section::RefreshSection,
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
}

/// `[server]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSection {
    /// The address that it listens on.
    pub listen: Option<String>,
    /// The address that clients use, if a proxy is in front of it.
    pub public_url: Option<String>,
    /// The environment variable that holds the operator's token.
    pub token_env: Option<String>,
    /// The file that holds the operator's token.
    pub token_file: Option<PathBuf>,
    /// The weight of this process among those that share the work.
    pub share: Option<u32>,
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
    #[serde(deserialize_with = "id_options::peers")]
    pub peers: Vec<String>,
    /// Whether they are not asked.
    pub skip_sanity_check: bool,
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
    /// Reads the file and the environment and puts the flags above them.
    ///
    /// # Errors
    /// [`CliError::Usage`] naming the invalid key and its origin.
    pub fn load(global: &Global) -> Result<Self, CliError> {
        let mut figment = Figment::new();
        let file = file(global);
        if let Some(path) = &file {
            let text = std::fs::read_to_string(path).map_err(|error| {
                let path = path.display();
                CliError::usage(format!("the configuration {path} cannot be read: {error}"))
            })?;
            figment = figment.merge(Toml::string(&text));
        }
        let environment = Env::prefixed("DRIFTLINE_")
            .filter(|key| key.as_str().contains("__"))
            .split("__");
        let values = figment.merge(environment);
        let origins = Origins { file, values };
        let config = origins.values.extract();
        let mut config: Self = config.map_err(|error| wrong(&error, &origins))?;
        config.refresh.origins = origins;
        let store = &mut config.store;
        store.data = global.data.clone().or(store.data.take());
        store.database_pool = global.database_pool.or(store.database_pool);
        store.database_url = global.database_url.clone().or(store.database_url.take());
        Ok(config)
    }

    /// The client that asks upstreams.
    ///
    /// # Errors
    /// [`CliError::Usage`] if it cannot be built.
    pub fn http(&self, allow_private: bool) -> Result<Http, CliError> {
        let upstream = &self.upstream;
        let defaults = Options::default();
        let mut options = Options {
            allow_private: allow_private || upstream.allow_private,
            max_body_bytes: upstream.max_body_bytes.unwrap_or(defaults.max_body_bytes),
            user_agent: upstream.user_agent.clone().unwrap_or(defaults.user_agent),
            ..defaults
        };
        for (given, timeout) in [
            (upstream.connect_timeout, &mut options.connect_timeout),
            (upstream.read_timeout, &mut options.read_timeout),
            (upstream.total_timeout, &mut options.total_timeout),
            (upstream.silence_timeout, &mut options.silence_timeout),
        ] {
            if given == Some(HumanMs(0)) {
                return Err(CliError::usage(
                    "a timeout in [upstream] is zero; leave it out for the default",
                ));
            }
            *timeout = duration_or(given, *timeout);
        }
        Http::new(options).map_err(CliError::usage)
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
            ..UpstreamAccess::new(store, http)
        })
    }

    /// Where the key of stored credentials is.
    pub fn secrets(&self, data: &Path) -> Secrets {
        Secrets::new(data.join(KEY_FILE))
    }

    /// The settings that new sources begin with.
    pub fn settings(&self) -> Settings {
        self.defaults.or(Settings::default())
    }
}

/// The file of `--config`; or `driftline.toml` here; or the one in the
/// platform's folder for configurations.
fn file(global: &Global) -> Option<PathBuf> {
    if let Some(path) = &global.config {
        return Some(path.clone());
    }
    let platform = directories::ProjectDirs::from("", "", "driftline");
    let platform = platform.map(|folders| folders.config_dir().join(FILE));
    let mut places = std::iter::once(PathBuf::from(FILE)).chain(platform);
    places.find(|path| path.is_file())
}

/// One line, without any value: it may be a secret.
fn wrong(error: &figment::Error, origins: &Origins) -> CliError {
    let from_environment = is_variable(error.metadata.as_ref());
    let origin = origins.of(from_environment);
    let key = |last: Option<&str>| {
        let mut path: Vec<&str> = error.path.iter().map(String::as_str).collect();
        path.extend(last.filter(|last| path.last() != Some(last)));
        Origins::key(&path, from_environment)
    };
    let message = match &error.kind {
        Kind::UnknownField(field, known) => format!(
            "{origin}: there is no key {:?}; the keys there are {}",
            key(Some(field)),
            known.join(", ")
        ),
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => {
            let expected = expected.to_string();
            format!("{origin}: {:?} must be {}", key(None), in_words(&expected))
        }
        Kind::UnknownVariant(_, known) => {
            let known: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
            format!("{origin}: {:?} must be {}", key(None), known.join(" or "))
        }
        Kind::Message(message) if error.path.is_empty() => {
            format!("{origin} is not TOML: {}", without_source(message))
        }
        Kind::Message(message) => format!("{origin}: {:?}: {message}", key(None)),
        _ => format!("{origin}: {:?} cannot be used", key(None)),
    };
    CliError::usage(message)
}

/// What is expected, in words, where serde has Rust's name for it.
fn in_words(expected: &str) -> &str {
    match expected {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number, 0 or more",
        "isize" | "i64" | "i32" | "i16" | "i8" => "a whole number",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list, such as [\"one\", \"two\"]",
        "a map" => "a table of keys and values",
        other if other.starts_with("struct ") => "a table of keys and values",
        other => other,
    }
}

/// A parser's message without the lines of the file that it quotes.
fn without_source(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let kept = lines.filter(|line| !line.is_empty() && !line.contains('|'));
    kept.collect::<Vec<_>>().join(": ")
}

const KEY_FILE: &str = "credentials.key";
const FILE: &str = "driftline.toml";
