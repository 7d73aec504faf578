//! Throw-away databases for tests.

mod cluster;
mod dump;
mod fresh;
mod schema;

pub use cluster::{Cluster, ClusterError};
pub use dump::{dump, load};
pub use fresh::{Fresh, databases, postgres_database};
pub use schema::schema;
