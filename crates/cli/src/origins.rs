//! Where the values of a configuration come from, and how messages name them.

use std::path::PathBuf;

use figment::{Figment, Metadata};
use serde::Serialize;

use crate::config::key_lines::KeyLines;

/// Where the values of a configuration come from.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// The lines of its keys.
    pub lines: KeyLines,
    /// The values of the file and the environment, with what set each.
    pub values: Figment,
    /// The keys that flags set, as `section.key`.
    pub flags: Vec<&'static str>,
}

/// What sets a key; later ones are stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Nothing does.
    Default,
    /// The file.
    File,
    /// A variable of the environment.
    Environment,
    /// A flag.
    Flag,
}

impl Origins {
    /// Where a key is set, and its name there: `driftline.toml:7: "refresh.lease"`, or
    /// `the environment: "DRIFTLINE_REFRESH__LEASE"`.
    pub fn name(&self, path: &[&str]) -> String {
        let layer = self.layer(path);
        let (origin, key) = (self.at(layer, path), Self::key(path, layer));
        match layer {
            Layer::Flag => key,
            _ => format!("{origin}: {key:?}"),
        }
    }

    /// What sets a key.
    pub fn layer(&self, path: &[&str]) -> Layer {
        let key = path.join(".");
        match self.flags.contains(&key.as_str()) {
            true => Layer::Flag,
            false => self.layer_written(path).unwrap_or(Layer::Default),
        }
    }

    /// The file or the environment, if one of them sets the key.
    pub fn layer_written(&self, path: &[&str]) -> Option<Layer> {
        let metadata = self.values.find_metadata(&path.join("."));
        metadata.map(|metadata| match is_variable(metadata) {
            true => Layer::Environment,
            false => Layer::File,
        })
    }

    /// The name of a layer.
    pub fn of(&self, layer: Layer) -> String {
        match (&self.file, layer) {
            (_, Layer::Flag) => "the command line".to_owned(),
            (_, Layer::Environment) => "the environment".to_owned(),
            (Some(file), _) => file.display().to_string(),
            (None, _) => "the configuration".to_owned(),
        }
    }

    /// The name of a layer, for the file with the line of a key.
    pub fn at(&self, layer: Layer, path: &[&str]) -> String {
        let origin = self.of(layer);
        match (layer, self.lines.get(path)) {
            (Layer::File, Some(line)) => format!("{origin}:{line}"),
            _ => origin,
        }
    }

    /// A key as it is written there.
    pub fn key(path: &[&str], layer: Layer) -> String {
        match layer {
            Layer::Environment => format!("DRIFTLINE_{}", path.join("__").to_uppercase()),
            Layer::Flag if path == ["log", "format"] => "--log-format".to_owned(),
            Layer::Flag => {
                let key = path.last().copied().unwrap_or_default();
                format!("--{}", key.replace('_', "-"))
            }
            Layer::Default | Layer::File => path.join("."),
        }
    }
}

fn is_variable(metadata: &Metadata) -> bool {
    metadata.name.contains("environment")
}
