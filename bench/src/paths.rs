//! Where things are.

use std::{env, path::PathBuf};

/// The driftline binary, where the main workspace builds it unless configured otherwise.
pub(crate) const DRIFTLINE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/driftline");

/// A folder on a disk: the system's temporary files may be kept in memory.
pub(crate) fn disk() -> PathBuf {
    env::var_os("DRIFTLINE_BENCH_DISK").map_or_else(|| "/var/tmp".into(), PathBuf::from)
}
