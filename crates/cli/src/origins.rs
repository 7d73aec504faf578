//! Where the values of a configuration come from, and how messages name them.

use std::path::PathBuf;

use figment::{Figment, Metadata};

/// Where the values of a configuration come from.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// The values, with what set each.
    pub values: Figment,
}

impl Origins {
    /// Where a key is set, and its name there: `driftline.toml: "refresh.lease"`, or
    /// `the environment: "DRIFTLINE_REFRESH__LEASE"`.
    pub fn name(&self, path: &[&str]) -> String {
        let is_variable = is_variable(self.values.find_metadata(&path.join(".")));
        let (origin, key) = (self.of(is_variable), Self::key(path, is_variable));
        format!("{origin}: {key:?}")
    }

    /// The environment, or the file.
    pub fn of(&self, is_variable: bool) -> String {
        match &self.file {
            _ if is_variable => "the environment".to_owned(),
            Some(file) => file.display().to_string(),
            None => "the configuration".to_owned(),
        }
    }

    /// A key as it is written there.
    pub fn key(path: &[&str], is_variable: bool) -> String {
        if is_variable {
            format!("DRIFTLINE_{}", path.join("__").to_uppercase())
        } else {
            path.join(".")
        }
    }
}

/// Whether a value was set by the environment.
pub fn is_variable(metadata: Option<&Metadata>) -> bool {
    metadata.is_some_and(|metadata| metadata.name.contains("environment"))
}
