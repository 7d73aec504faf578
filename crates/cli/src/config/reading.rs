//! What is written in the file and in the environment, and what is wrong with it.

use std::path::PathBuf;

use figment::{
    Figment,
    error::Kind,
    providers::{Env, Format as _, Serialized, Toml},
    value::{Dict, Value},
};

use super::{
    Config,
    key_lines::{KeyLines, SyntaxFault},
    keys, suggestion,
};
use crate::{
    options::global_options::Global,
    origins::{Layer, Origins},
};

/// Reads the file and the environment, whatever their keys and values. Returns the faults of the file, too: that
/// it cannot be read, or its lines that are not TOML.
pub fn read(global: &Global) -> (Origins, Vec<String>) {
    let (mut figment, mut lines, mut faults) = (Figment::new(), KeyLines::default(), Vec::new());
    let file = file(global);
    if let Some(path) = &file {
        let shown = path.display();
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let (of_keys, text, wrong) = KeyLines::read(&text);
                faults.extend(wrong.into_iter().map(|SyntaxFault { line, message }| {
                    format!("{shown}:{line}: this is not TOML: {message}")
                }));
                lines = of_keys;
                figment = figment.merge(Toml::string(&text));
            }
            Err(error) => faults.push(format!("the configuration {shown} cannot be read: {error}")),
        }
    }
    let environment = Env::prefixed(PREFIX)
        .filter(|key| key.as_str().contains("__"))
        .split("__");
    let origins = Origins {
        file,
        lines,
        values: figment.merge(environment),
        flags: Vec::new(),
    };
    (origins, faults)
}

/// The values of known keys that are of the right kind, and the faults of all others: each with the key and its
/// origin, and without any value, which may be a secret.
pub fn values(origins: &Origins) -> (Config, Vec<String>) {
    let written: Dict = match origins.values.extract() {
        Ok(written) => written,
        Err(error) => return (Config::default(), vec![wrong(&error, Layer::File, origins)]),
    };
    let (mut faults, mut right) = (Vec::new(), written.clone());
    right.retain(|section, value| {
        let before = faults.len();
        match value {
            _ if !keys::sections().contains(&section.as_str()) => {
                faults.push(unknown(&[section], origins));
            }
            Value::Dict(_, values) => {
                values.retain(|key, value| {
                    let found = faults_of([section, key], value, origins);
                    let is_right = found.is_empty();
                    faults.extend(found);
                    is_right
                });
                return true;
            }
            _ => faults.extend(fault(&[section], value, origins)),
        }
        faults.len() == before
    });
    faults.extend(misspelled_variables(&written));
    let values = match faults.is_empty() {
        true => origins.values.extract(),
        false => Figment::from(Serialized::defaults(right)).extract(),
    };
    let config = values.unwrap_or_else(|error| {
        faults.push(wrong(&error, Layer::File, origins));
        Config::default()
    });
    (config, faults)
}

/// What is wrong with a key of a section; of a table of ages with each of them.
fn faults_of([section, key]: [&str; 2], value: &Value, origins: &Origins) -> Vec<String> {
    let path = [section, key];
    match value {
        _ if !keys::of_section(section).any(|known| known == key) => vec![unknown(&path, origins)],
        Value::Dict(_, ages) if path == ["refresh", "ages"] => {
            let ages = ages.iter();
            ages.filter_map(|(age, value)| fault(&[section, key, age], value, origins))
                .collect()
        }
        _ => fault(&path, value, origins).into_iter().collect(),
    }
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
    let (origin, key) = (origins.at(layer, path), Origins::key(path, layer));
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
    let path: Vec<&str> = error.path.iter().map(String::as_str).collect();
    let origin = origins.at(layer, &path);
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

const PREFIX: &str = "DRIFTLINE_";
const FILE: &str = "driftline.toml";
