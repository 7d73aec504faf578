//! Throw-away databases for tests.

mod cluster;
mod dump;
mod fresh;
mod link;
mod pooler;
mod schema;

pub use cluster::{Cluster, ClusterError};
pub use dump::{dump, load};
pub use fresh::{Fresh, databases, postgres_database};
pub use link::{Cuts, Link};
pub use pooler::Pooler;
pub use schema::schema;
