use std::env;

/// Debian's packages of the server, with its own benchmark.
pub(super) const PACKAGES: [&str; 1] = ["redis-server"];

/// Whether its programs are on PATH.
pub(super) fn is_installed() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| {
        folder.join("redis-server").is_file() && folder.join("redis-benchmark").is_file()
    })
}
