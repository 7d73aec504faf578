//! Where the values of a configuration come from, and how messages name them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// Where the values of a configuration come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    file: Option<PathBuf>,
    /// What the environment sets: `refresh.lease`, in lower case.
    variables: BTreeSet<String>,
}

impl Origins {
    /// Of a file, if there is one, and of what the environment sets above it.
    pub fn new(file: Option<&Path>, variables: impl IntoIterator<Item = String>) -> Self {
        Self {
            file: file.map(Path::to_owned),
            variables: variables.into_iter().collect(),
        }
    }

    /// Where a key is set, and its name there: `driftline.toml: "refresh.lease"`, or
    /// `the environment: "DRIFTLINE_REFRESH__LEASE"`.
    pub fn name(&self, path: &[&str]) -> String {
        let is_variable = self.variables.contains(&path.join(".").to_lowercase());
        format!(
            "{}: {:?}",
            self.of(is_variable),
            Self::key(path, is_variable)
        )
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
