//! The keys of the configuration, with the values that hold where nothing sets them.

use std::sync::LazyLock;

use driftline_api::OwnInstance;
use driftline_core::{refresh::AgeTable, timeline::Settings};
use driftline_mirror::{POLLING_SHARE, refresh::RefreshOptions};
use driftline_net::Options;
use driftline_server::admin::DEFAULT_SOURCES_PER_ACCOUNT;
use serde_json::{Value, json};

use crate::{
    duration::show_ms, listen, logs, options::id_options::DEFAULT_THRIFT, source_settings,
};

/// A key, as `section.key`.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub path: &'static str,
    /// Its value where nothing sets it; null for none. What depends on the machine is described.
    pub default: Value,
}

/// The sections, in the order of the documents.
pub fn sections() -> &'static [&'static str] {
    &[
        "server", "store", "upstream", "defaults", "refresh", "id", "accounts", "mail", "log",
    ]
}

/// The names of all keys.
pub fn all() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.path)
}

/// The names of a section's keys, without the section.
pub fn of_section(section: &str) -> impl Iterator<Item = &'static str> {
    all().filter_map(move |path| {
        let (of, key) = path.split_once('.')?;
        (of == section).then_some(key)
    })
}

/// All keys.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    let mut section = |name: &'static str, of: Vec<(&'static str, Value)>| {
        keys.extend(of.into_iter().map(|(path, default)| {
            debug_assert!(path.starts_with(name));
            Key { path, default }
        }));
    };
    let own = OwnInstance::default();
    section(
        "server",
        vec![
            ("server.listen", json!(listen::DEFAULT)),
            ("server.public_url", Value::Null),
            ("server.trusted_proxies", Value::Null),
            ("server.token_env", Value::Null),
            ("server.token_file", Value::Null),
            ("server.share", json!(1)),
            ("server.name", json!(own.info.name())),
            ("server.description", json!(own.info.description())),
            ("server.maintainer", Value::Null),
            ("server.maintainer_mail", Value::Null),
        ],
    );
    section(
        "store",
        vec![
            ("store.data", data_folder()),
            ("store.database_url", Value::Null),
            ("store.database_schema", Value::Null),
            ("store.database_pool", json!(DATABASE_POOL)),
            ("store.credentials_key", Value::Null),
            ("store.disk_reserve", Value::Null),
        ],
    );
    let upstream = Options::default();
    let time = |time: std::time::Duration| json!(show_ms(time.as_millis() as i64));
    section(
        "upstream",
        vec![
            ("upstream.allow_private", json!(upstream.allow_private)),
            ("upstream.connect_timeout", time(upstream.connect_timeout)),
            ("upstream.read_timeout", time(upstream.read_timeout)),
            ("upstream.total_timeout", time(upstream.total_timeout)),
            ("upstream.silence_timeout", time(upstream.silence_timeout)),
            ("upstream.max_body_bytes", json!(upstream.max_body_bytes)),
            ("upstream.user_agent", json!(upstream.user_agent)),
        ],
    );
    section("defaults", source_settings::written(&Settings::default()));
    let refresh = RefreshOptions::new("");
    section(
        "refresh",
        vec![
            ("refresh.off", json!(false)),
            ("refresh.policy", json!("age")),
            ("refresh.ages", Value::Null),
            (
                "refresh.skew",
                json!(show_ms(AgeTable::default().skew_ms())),
            ),
            ("refresh.buffer_ttl", time(refresh.buffer_ttl)),
            ("refresh.lease", time(refresh.lease)),
            ("refresh.workers", json!(refresh.workers)),
            ("refresh.polling_share", json!(POLLING_SHARE)),
            ("refresh.credentials", json!([])),
            ("refresh.erase_deleted", json!(false)),
        ],
    );
    section(
        "id",
        vec![
            ("id.serve", json!(false)),
            ("id.listen_thrift", json!(DEFAULT_THRIFT)),
            ("id.listen_http", Value::Null),
            ("id.allow_remote", json!(false)),
            ("id.layout", json!("twitter")),
            ("id.epoch_ms", Value::Null),
            ("id.node", Value::Null),
            ("id.lease", Value::Null),
            ("id.wait", Value::Null),
            ("id.peers", json!([])),
            ("id.skip_sanity_check", json!(false)),
        ],
    );
    section(
        "accounts",
        vec![
            ("accounts.sign_up", json!("closed")),
            ("accounts.sources", json!(DEFAULT_SOURCES_PER_ACCOUNT)),
            ("accounts.allow_private_sources", json!(false)),
        ],
    );
    section(
        "mail",
        vec![
            ("mail.from", Value::Null),
            ("mail.smtp", Value::Null),
            ("mail.passphrase_env", Value::Null),
            ("mail.passphrase_file", Value::Null),
        ],
    );
    section(
        "log",
        vec![
            ("log.level", json!(logs::DEFAULT)),
            ("log.format", json!("text")),
        ],
    );
    keys
});

/// The platform's folder for data.
fn data_folder() -> Value {
    let folders = directories::ProjectDirs::from("", "", "driftline");
    folders.map_or(Value::Null, |folders| {
        json!(folders.data_dir().to_string_lossy())
    })
}

/// Connections to PostgreSQL, at most.
const DATABASE_POOL: usize = 8;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use figment::{Figment, error::Kind, providers::Serialized};

    use super::*;
    use crate::config::Config;

    /// The keys that serde knows, by the error of one that it does not know.
    fn known_to_serde(path: &str) -> BTreeSet<&'static str> {
        let unknown = Figment::from(Serialized::default(path, 0));
        let error = unknown.extract::<Config>().unwrap_err();
        match error.kind {
            Kind::UnknownField(_, known) => known.iter().copied().collect(),
            kind => panic!("{path}: {kind:?}"),
        }
    }

    #[test]
    fn the_list_has_the_keys_that_are_read() {
        let listed: BTreeSet<&str> = sections().iter().copied().collect();
        assert_eq!(listed, known_to_serde("?"));
        for section in sections() {
            let listed: BTreeSet<&str> = of_section(section).collect();
            assert_eq!(listed, known_to_serde(&format!("{section}.?")), "{section}");
        }
    }

    #[test]
    fn defaults_can_be_written_and_say_what_their_absence_does() {
        for key in KEYS.iter().filter(|key| !key.default.is_null()) {
            let written = Figment::from(Serialized::default(key.path, &key.default));
            let config = written.extract::<Config>();
            let config = config.unwrap_or_else(|error| panic!("{}: {error}", key.path));
            assert_eq!(
                config.settings(),
                Config::default().settings(),
                "{}",
                key.path
            );
        }
    }

    #[test]
    fn every_key_is_documented() {
        let text = include_str!("../../../../docs/operating.md");
        let (_, rest) = text.split_once("## Configuration").unwrap();
        let (_, rest) = rest.split_once("```toml").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let mut section = "";
        let mut documented = BTreeSet::new();
        for line in example.lines() {
            if let Some((name, _)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
                section = name;
                // A table is a key of its section.
                documented.insert(name.to_owned());
            } else if let Some((key, _)) = line.trim_start_matches("# ").split_once(" = ") {
                documented.insert(format!("{section}.{key}"));
            }
        }
        for path in all() {
            assert!(
                documented.contains(path),
                "{path} is not in docs/operating.md"
            );
        }
    }
}
