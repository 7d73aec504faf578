//! What an export into a folder has written.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::lines;

/// The manifest.
pub fn manifest(dir: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(dir.join("manifest.json")).unwrap()).unwrap()
}

/// The files of a kind, as the manifest lists them.
pub fn files(dir: &Path, kind: &str) -> Vec<PathBuf> {
    let manifest = manifest(dir);
    let files = manifest["files"].as_array().unwrap().iter();
    files
        .filter(|file| file["of"] == kind)
        .map(|file| dir.join(file["name"].as_str().unwrap()))
        .collect()
}

/// The lines of JSON of a kind.
pub fn rows(dir: &Path, kind: &str) -> Vec<Value> {
    let files = files(dir, kind).into_iter();
    files
        .flat_map(|file| lines(&fs::read_to_string(file).unwrap()))
        .collect()
}
