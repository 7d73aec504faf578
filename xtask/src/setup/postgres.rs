use std::path::PathBuf;
use std::{env, fs};

/// Debian's packages of the server.
pub(super) const PACKAGES: [&str; 1] = ["postgresql"];

/// Whether the server's programs are on PATH or where Debian puts them.
pub(super) fn is_installed() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    env::split_paths(&path)
        .chain(versions)
        .any(|folder: PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}
