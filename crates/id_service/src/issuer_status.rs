//! The state of the service, for clients.

use std::{collections::BTreeMap, time::Instant};

use driftline_id::ClockPolicy;
use parking_lot::Mutex;
use serde::Serialize;
use utoipa::ToSchema;

use super::Issuer;

/// The state of a service.
#[derive(Debug, Serialize, ToSchema)]
pub struct IssuerStatus {
    /// The layout's name.
    #[schema(example = "twitter")]
    layout: &'static str,
    /// The node over all of its fields.
    node: u64,
    /// The node's fields.
    #[schema(value_type = BTreeMap<String, u64>)]
    fields: BTreeMap<&'static str, u64>,
    /// `refuse`, or `wait`.
    #[schema(example = "refuse")]
    policy: &'static str,
    /// The longest wait for a clock that is behind, in ms; 0 where it is not waited for.
    policy_wait_ms: u32,
    /// The service's clock, in Unix ms.
    now_ms: i64,
    /// The end of the times that are recorded for the node, in Unix ms.
    window_until_ms: i64,
    /// The own clock less the mean of the peers' clocks, in ms; null without peers.
    clock_offset_ms: Option<i64>,
    /// How far the clock has been set, forward or back, since the service started, in ms.
    clock_step_ms: i64,
    /// The last Unix ms that the layout has.
    end_of_life_ms: i64,
    /// What to do about a layout that ends within a year.
    warning: Option<String>,
}

/// How far the clock is off the peers' clocks, and how far it was set.
#[derive(Debug)]
pub(super) struct ClockOffsets {
    of_peers_ms: Mutex<Option<i64>>,
    started_us: i64,
    started: Instant,
}

impl IssuerStatus {
    pub(super) fn of(issuer: &Issuer, offsets: &ClockOffsets) -> Self {
        let now_us = issuer.now_us();
        let layout = issuer.layout();
        let now_ms = now_us.div_euclid(1_000);
        let (policy, policy_wait_ms) = match issuer.policy() {
            ClockPolicy::Refuse => ("refuse", 0),
            ClockPolicy::Wait { at_most_ms } => ("wait", at_most_ms),
        };
        Self {
            layout: layout.name(),
            node: issuer.node().number(),
            fields: issuer.node().fields().collect(),
            policy,
            policy_wait_ms,
            now_ms,
            window_until_ms: issuer.window_until_us().div_euclid(1_000),
            clock_offset_ms: offsets.of_peers_ms(),
            clock_step_ms: offsets.step_ms(issuer),
            end_of_life_ms: layout.end_of_life_ms(),
            warning: layout
                .expires_within_a_year(now_ms)
                .map(|warning| warning.to_string()),
        }
    }
}

impl ClockOffsets {
    pub(super) fn new(issuer: &Issuer) -> Self {
        Self {
            of_peers_ms: Mutex::new(None),
            started_us: issuer.now_us(),
            started: Instant::now(),
        }
    }

    /// The own clock less the mean of the peers' clocks at the last check.
    pub(super) fn of_peers_ms(&self) -> Option<i64> {
        *self.of_peers_ms.lock()
    }

    pub(super) fn set(&self, of_peers_ms: Option<i64>) {
        *self.of_peers_ms.lock() = of_peers_ms;
    }

    /// How far the clock differs from a monotonic clock since the start. The time that a machine was
    /// suspended counts too.
    pub(super) fn step_ms(&self, issuer: &Issuer) -> i64 {
        let shown_us = issuer.now_us().saturating_sub(self.started_us);
        let passed_us = i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        (shown_us - passed_us) / 1_000
    }
}
