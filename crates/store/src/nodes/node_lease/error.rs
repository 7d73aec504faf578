use driftline_db::DbError;
use driftline_id::NodeError;
use driftline_id::window::{BeginError, RecordError};

/// A node that cannot be leased, or a lease that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeLeaseError {
    /// Another process holds the node.
    #[error(
        "the node {node} of {layout} is held by '{holder}'; stop that process, or use another \
         node: if it crashed, its lease ends in {ends_in_ms} ms"
    )]
    Held {
        /// The layout's name.
        layout: &'static str,
        /// The node's number.
        node: u64,
        /// The holder.
        holder: String,
        /// The time until the lease ends unless it is renewed, in ms.
        ends_in_ms: i64,
    },

    /// All nodes of the layout are held.
    #[error(
        "all {count} nodes of {layout} are held; stop a process that holds one, wait for the lease \
         of one that crashed to end, or use a layout with more nodes"
    )]
    AllHeld {
        /// The layout's name.
        layout: &'static str,
        /// The number of its nodes.
        count: u64,
    },

    /// The record does not let a window begin.
    #[error("the node {node} of {layout}: {error}")]
    Begin {
        /// The layout's name.
        layout: &'static str,
        /// The node's number.
        node: u64,
        /// The reason.
        #[source]
        error: BeginError,
    },

    /// The stored record is invalid.
    #[error("the node {node} of {layout}: {error}")]
    Record {
        /// The layout's name.
        layout: &'static str,
        /// The node's number.
        node: u64,
        /// The reason.
        #[source]
        error: RecordError,
    },

    /// The lease has ended and the node was taken over, or its row was changed by hand. A retry is
    /// useless.
    #[error(
        "the lease on the node {node} of {layout} was lost{}; lease a node again, and find out why \
         this one was not renewed in time", taken_by(.holder.as_deref())
    )]
    Lost {
        /// The layout's name.
        layout: &'static str,
        /// The node's number.
        node: u64,
        /// The present holder of the node, if there is one.
        holder: Option<String>,
    },

    /// The layout has no nodes that can be leased.
    #[error(transparent)]
    Node(#[from] NodeError),

    /// The node belongs to another layout than the leased nodes.
    #[error("the node is of {given}, but the nodes of {layout} are leased here; use one of them")]
    OtherLayout {
        /// The name of the leased layout.
        layout: &'static str,
        /// The name of the node's layout.
        given: &'static str,
    },

    /// The generator used another window.
    #[error("the retired generator had another window; release each lease with its own")]
    OtherWindow,

    /// The database failed. Renewing may be repeated: the window's end is unchanged.
    #[error(transparent)]
    Db(#[from] DbError),
}

fn taken_by(holder: Option<&str>) -> String {
    holder.map_or_else(String::new, |holder| format!(" to '{holder}'"))
}
