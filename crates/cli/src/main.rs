//! The `driftline` binary.
fn main() {}
