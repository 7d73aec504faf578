//! Nodes of ID layouts, and the processes that lease them.

pub mod node_lease;
