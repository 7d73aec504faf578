//! `config`: the configuration shown and checked.

use clap::Subcommand;
use figment::value::Value as Written;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use crate::{
    config::{Config, checks, keys::KEYS},
    duration::show_ms,
    error::CliError,
    options::global_options::Global,
    origins::{Layer, Origins},
    output,
    table::{self, left},
};

/// What can be asked of the configuration.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigCommand {
    /// Show every key with its value and where it comes from; secrets are masked.
    Show,
    /// Check all that a start would, without a lock, the network or the database.
    Check,
}

/// A key as it is shown.
#[derive(Serialize)]
pub struct Row {
    /// Its name, as `section.key`.
    pub key: String,
    /// Its value, secrets masked.
    value: Value,
    /// Its value. May hold a secret: never shown.
    #[serde(skip)]
    pub unmasked: Value,
    /// What sets it.
    from: Layer,
    /// The file's path, or the name of the variable or of the flag.
    origin: Option<String>,
}

impl ConfigCommand {
    /// Runs it. Needs no configuration that is valid.
    ///
    /// # Errors
    /// [`CliError::Usage`] with all faults, a line each.
    pub fn run(self, global: &Global) -> Result<(), CliError> {
        match self {
            Self::Show => {
                let config = Config::read(global).map_err(|faults| all(&faults))?;
                output::reply(global.json, &rows(&config)?, |rows| shown(rows))
            }
            Self::Check => check(global),
        }
    }
}

fn check(global: &Global) -> Result<(), CliError> {
    let (config, mut faults) = Config::inspect(global);
    for fault in checks::of_a_start(&config) {
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let file = config.origins.file;
    if global.json {
        output::json(&json!({ "valid": faults.is_empty(), "faults": faults }))?;
    }
    if !faults.is_empty() {
        return Err(all(&faults));
    }
    if global.json {
        return Ok(());
    }
    let from = file.map_or_else(
        || "there is no file".to_owned(),
        |file| file.display().to_string(),
    );
    output::line(&format!("the configuration is valid ({from})"))
}

fn all(faults: &[String]) -> CliError {
    CliError::usage(faults.join("\ndriftline: "))
}

/// Every key with its value.
///
/// # Errors
/// [`CliError::Usage`] if the ages are invalid.
pub fn rows(config: &Config) -> Result<Vec<Row>, CliError> {
    let mut rows = Vec::new();
    for key in KEYS.iter() {
        let path: Vec<&str> = key.path.split('.').collect();
        if key.path == "refresh.ages" {
            rows.extend(ages(config)?);
            continue;
        }
        let layer = config.origins.layer(&path);
        let value = match layer {
            Layer::Default => key.default.clone(),
            Layer::Flag => by_flag(config, key.path),
            Layer::File | Layer::Environment => written(&config.origins, key.path),
        };
        rows.push(row(&config.origins, &path, value));
    }
    Ok(rows)
}

fn row(origins: &Origins, path: &[&str], unmasked: Value) -> Row {
    let from = origins.layer(path);
    let key = path.join(".");
    let value = match (key.as_str(), &unmasked) {
        ("store.database_url" | "server.public_url", Value::String(url)) => json!(masked(url)),
        (_, value) => value.clone(),
    };
    Row {
        key,
        value,
        unmasked,
        from,
        origin: match from {
            Layer::Default => None,
            Layer::File => Some(origins.of(from)),
            Layer::Environment | Layer::Flag => Some(Origins::key(path, from)),
        },
    }
}

/// The effective table, by ages as they are written, or as the default has them.
fn ages(config: &Config) -> Result<Vec<Row>, CliError> {
    let refresh = &config.refresh;
    let plan = refresh.plan()?;
    let names = refresh.ages.iter().flat_map(|ages| ages.keys());
    let names: Vec<&String> = names.collect();
    let bands = plan.ages.bands().iter().map(|band| {
        let is_this = |name: &&&String| {
            crate::duration::parse_ms(name).is_ok_and(|age_ms| age_ms == band.below_ms)
        };
        let written = names.iter().find(is_this);
        let age = written.map_or_else(|| show_ms(band.below_ms), |&name| name.clone());
        let value = json!(show_ms(band.every_ms));
        row(&config.origins, &["refresh", "ages", &age], value)
    });
    Ok(bands.collect())
}

fn by_flag(config: &Config, key: &str) -> Value {
    let store = &config.store;
    match key {
        "store.data" => json!(store.data.as_ref().map(|data| data.to_string_lossy())),
        "log.format" => json!(config.log.format),
        "store.database_pool" => json!(store.database_pool),
        "store.database_url" => json!(store.database_url.as_ref().map(|url| url.expose_secret())),
        _ => Value::Null,
    }
}

fn written(origins: &Origins, key: &str) -> Value {
    let value: Option<Written> = origins.values.find_value(key).ok();
    value.map_or(Value::Null, |value| json!(value))
}

/// A URL without passwords.
fn masked(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return MASK.to_owned();
    };
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return MASK.to_owned();
    }
    let is_secret = |name: &str| name.to_lowercase().contains("password");
    if url.query_pairs().any(|(name, _)| is_secret(&name)) {
        let pairs = url.query_pairs().into_owned();
        let pairs: Vec<(String, String)> = pairs
            .map(|(name, value)| match is_secret(&name) {
                true => (name, MASK.to_owned()),
                false => (name, value),
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    url.to_string()
}

fn shown(rows: &[Row]) -> Vec<String> {
    table::lines(rows.iter().map(|row| {
        let value = match &row.value {
            Value::Null => "-".to_owned(),
            value => value.to_string(),
        };
        let origin = row.origin.as_deref().unwrap_or("default");
        [
            left("KEY", &row.key),
            left("VALUE", value),
            left("FROM", origin),
        ]
    }))
}

const MASK: &str = "***";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked_wherever_they_are() {
        for (url, shown) in [
            ("postgres://me:pw@h:5/d", "postgres://me:***@h:5/d"),
            (
                "postgres://me@h/d?sslmode=require",
                "postgres://me@h/d?sslmode=require",
            ),
            (
                "postgres://h/d?password=pw&a=b",
                "postgres://h/d?password=***&a=b",
            ),
            ("host=h password=pw", "***"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
