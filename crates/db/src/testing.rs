//! Throw-away databases for tests.

mod cluster;
mod fresh;

pub use cluster::{Cluster, ClusterError};
pub use fresh::{Fresh, databases};
