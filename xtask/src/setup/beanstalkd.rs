use std::env;

/// Debian's package of the server.
pub(super) const PACKAGES: [&str; 1] = ["beanstalkd"];

/// Whether its program is on PATH.
pub(super) fn is_installed() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join("beanstalkd").is_file())
}
