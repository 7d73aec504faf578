//! Nodes of ID layouts, and the processes that hold them.

pub mod node_lease;
