//! What is written in the file and in the environment, and what is wrong with it.

use std::path::PathBuf;

use figment::{
    Figment,
    error::Kind,
    providers::{Env, Format as _, Serialized, Toml},
    value::{Dict, Value},
};

use super::{Config, keys, suggestion};
use crate::{
    cli::Global,
    origins::{Layer, Origins},
};

/// Reads the file and the environment, whatever their keys and values.
///
/// # Errors
/// The fault of the file, if it cannot be read.
pub fn read(global: &Global) -> Result<Origins, Vec<String>> {
    let mut figment = Figment::new();
    let file = file(global);
    if let Some(path) = &file {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let path = path.display();
            vec![format!("the configuration {path} cannot be read: {error}")]
        })?;
        figment = figment.merge(Toml::string(&text));
    }
    let environment = Env::prefixed(PREFIX)
        .filter(|key| key.as_str().contains("__"))
        .split("__");
    Ok(Origins {
        file,
        values: figment.merge(environment),
        flags: Vec::new(),
    })
}

/// The values, each of a known key and of the right kind.
///
/// # Errors
/// All faults, each with the key and its origin and without any value: it may be a secret.
pub fn values(origins: &Origins) -> Result<Config, Vec<String>> {
    let written: Dict = match origins.values.extract() {
        Ok(written) => written,
        Err(error) => return Err(vec![wrong(&error, Layer::File, origins)]),
    };
    let mut faults = Vec::new();
    for (section, value) in &written {
        match value {
            _ if !keys::sections().contains(&section.as_str()) => {
                faults.push(unknown(&[section], origins));
            }
            Value::Dict(_, values) => {
                let checked = values.iter().map(|(key, value)| {
                    let path = [section.as_str(), key.as_str()];
                    match keys::of_section(section).any(|known| known == key) {
                        true => fault(&path, value, origins),
                        false => Some(unknown(&path, origins)),
                    }
                });
                faults.extend(checked.flatten());
            }
            _ => faults.extend(fault(&[section], value, origins)),
        }
    }
    faults.extend(misspelled_variables(&written));
    if !faults.is_empty() {
        return Err(faults);
    }
    let values = origins.values.extract();
    values.map_err(|error| vec![wrong(&error, Layer::File, origins)])
}

/// What is wrong with one value by itself.
fn fault(path: &[&str], value: &Value, origins: &Origins) -> Option<String> {
    let alone = Figment::from(Serialized::default(&path.join("."), value));
    let error = alone.extract::<Config>().err()?;
    let written: Vec<&str> = error.path.iter().map(String::as_str).collect();
    let layer = origins
        .layer_written(&written)
        .unwrap_or_else(|| origins.layer(path));
    Some(wrong(&error, layer, origins))
}

fn unknown(path: &[&str], origins: &Origins) -> String {
    let layer = origins.layer(path);
    let (origin, key) = (origins.of(layer), Origins::key(path, layer));
    let hint = match (suggestion::key(path), path) {
        (Some(near), _) => {
            let near: Vec<&str> = near.split('.').collect();
            format!("did you mean {:?}?", Origins::key(&near, layer))
        }
        (None, [section, _]) => {
            let known: Vec<&str> = keys::of_section(section).collect();
            format!("the keys there are {}", known.join(", "))
        }
        (None, _) => format!("the sections are {}", keys::sections().join(", ")),
    };
    format!("{origin}: there is no key {key:?}; {hint}")
}

/// Variables that lack the second underscore after the section. Others without it are not of the
/// configuration.
fn misspelled_variables(written: &Dict) -> Vec<String> {
    let server = written.get("server").and_then(Value::as_dict);
    let token = server
        .and_then(|server| server.get("token_env"))
        .and_then(Value::as_str);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| Some(name.as_str()) != token && !name.contains("__"))
        .collect();
    names.sort();
    let near = |name: &String| {
        let key = suggestion::variable(name.strip_prefix(PREFIX)?)?;
        let near = Origins::key(&key.split('.').collect::<Vec<_>>(), Layer::Environment);
        Some(format!(
            "the environment: {name:?} is no key; did you mean {near:?}?"
        ))
    };
    names.iter().filter_map(near).collect()
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

/// One line, without any value.
fn wrong(error: &figment::Error, layer: Layer, origins: &Origins) -> String {
    let origin = origins.of(layer);
    let path: Vec<&str> = error.path.iter().map(String::as_str).collect();
    let key = Origins::key(&path, layer);
    match &error.kind {
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => {
            let expected = expected.to_string();
            format!("{origin}: {key:?} must be {}", in_words(&expected))
        }
        Kind::UnknownVariant(_, known) => {
            let known: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
            format!("{origin}: {key:?} must be {}", known.join(" or "))
        }
        Kind::Message(message) if path.is_empty() => {
            format!("{origin} is not TOML: {}", without_source(message))
        }
        Kind::Message(message) => format!("{origin}: {key:?}: {message}"),
        _ => format!("{origin}: {key:?} cannot be used"),
    }
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

const PREFIX: &str = "DRIFTLINE_";
const FILE: &str = "driftline.toml";
