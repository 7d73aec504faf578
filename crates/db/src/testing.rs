//! Throw-away databases for tests.

mod cluster;
mod dump;
mod failover;
mod fresh;
mod link;
mod named;
mod node;
mod nodes;
mod outage;
mod pooler;
mod schema;
mod statements;
mod url;

pub use cluster::{Cluster, ClusterError};
pub use dump::dump;
pub use failover::Failover;
pub use fresh::{Fresh, databases, postgres_database};
pub use link::{Cuts, Link};
pub use named::{Dropped, NamedServer, NamedServerError, TEST_RUN};
pub use node::Node;
pub use nodes::{TEST_DISTRIBUTED, is_distributed};
pub use outage::Outage;
pub use pooler::Pooler;
pub use schema::schema;
pub(crate) use statements::Sender;
pub use statements::{SentStatement, StatementWatcher};
pub use url::with_parameters;
