//! The nodes that a process requests, and the length of their leases.

use driftline_id::{
    Layout, Node,
    window::{Record, WindowConfig},
};

use super::error::NodeLeaseError;

/// The layout, the holder and the windows of the nodes to lease.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) layout: Layout,
    pub(super) window_config: WindowConfig,
    pub(super) holder: String,
}

impl Claim {
    /// The record of the node's next window, after the one in `previous`.
    pub(super) fn next_record(
        &self,
        node: &Node,
        previous: Option<&str>,
        now_us: i64,
    ) -> Result<Record, NodeLeaseError> {
        let (layout, number) = (self.layout.name(), node.number());
        let previous = previous.map(Record::parse).transpose();
        let previous = previous.map_err(|error| NodeLeaseError::Record {
            layout,
            node: number,
            error,
        })?;
        Record::begin(previous.as_ref(), node, PLACE, now_us, &self.window_config).map_err(
            |error| NodeLeaseError::Begin {
                layout,
                node: number,
                error,
            },
        )
    }
}

/// The length of a lease from a commit on: to its window's end plus the margin. A window after a
/// crashed holder ends later than a length from now.
pub(super) fn life_ms(record: &Record, now_us: i64) -> i64 {
    let left_us = record.until_us().saturating_sub(now_us).max(0);
    left_us / 1_000 + LEASE_MARGIN_MS
}

/// The time by which a lease is longer than its window, in ms.
///
/// A holder begins to renew well before its window's end. It has this additional time before
/// another process may take its node, for a database that is away, and for a clock that stepped
/// back.
pub const LEASE_MARGIN_MS: i64 = 10_000;

pub(super) const PLACE: &str = "node_lease";
