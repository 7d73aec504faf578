//! Watches the clock, the window and the layout's end while the service runs.

use std::{sync::Arc, time::Duration};

use driftline_runtime::{
    FaultLog, Weight,
    metrics::{
        ID_CLOCK_OFFSET, ID_CLOCK_STEP, ID_LAYOUT_DAYS_LEFT, ID_LAYOUT_LEFT, ID_LEASE_HELD,
        ID_WINDOW_FAILURES, ID_WINDOW_LEFT,
    },
    now_ms, show_ms,
};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    Issuer,
    held_node::{ExtensionFailure, HeldNode},
    issuer_status::ClockOffsets,
    peers::Peers,
    sanity,
};

/// Checks the service every second and the peers now and then, until `stopped` is set. Sets `lost`
/// once another process holds the node.
pub(super) async fn watch(
    issuer: Arc<Issuer>,
    offsets: Arc<ClockOffsets>,
    held_node: Arc<Mutex<Option<HeldNode>>>,
    peers: Peers,
    mut stopped: watch::Receiver<bool>,
    lost: watch::Sender<bool>,
) {
    let layout = issuer.layout();
    if let Some(warning) = layout.expires_within_a_year(issuer.now_us().div_euclid(1_000)) {
        tracing::warn!("{warning}");
    }
    let looking = async {
        let mut extending = Extending::default();
        let mut seconds = interval(EVERY);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            seconds.tick().await;
            if look(&issuer, &offsets, &held_node, &mut extending) {
                lost.send_replace(true);
            }
        }
    };
    tokio::select! {
        () = looking => {}
        () = check_peers(&issuer, &offsets, peers) => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
}

async fn check_peers(issuer: &Arc<Issuer>, offsets: &ClockOffsets, peers: Peers) {
    if peers.is_empty() {
        return std::future::pending().await;
    }
    let mut log = FaultLog::default();
    loop {
        sleep(PEERS_EVERY).await;
        let reached = peers.ask(issuer).await;
        offsets.set(sanity::mean_offset_ms(&reached));
        match sanity::check(issuer, &reached) {
            Ok(()) => {
                if let Some(wrong_ms) = log.succeeded(now_ms()) {
                    tracing::warn!(
                        "the sanity check of the peers passes again, after {}",
                        show_ms(wrong_ms)
                    );
                }
            }
            Err(error) => {
                if log.failed(Weight::Lasting, now_ms()) {
                    tracing::warn!(%error, "the sanity check of the peers fails");
                }
            }
        }
    }
}

/// Exports the state as metrics. Returns whether the node is lost.
fn look(
    issuer: &Issuer,
    offsets: &ClockOffsets,
    held_node: &Mutex<Option<HeldNode>>,
    extending: &mut Extending,
) -> bool {
    let now_us = issuer.now_us();
    let until_us = issuer.window_until_us();
    let left_us = until_us.saturating_sub(now_us);
    ID_WINDOW_LEFT.set(left_us as f64 / 1e6);
    ID_LEASE_HELD.set(f64::from(u8::from(left_us > 0)));
    let step_ms = offsets.step_ms(issuer);
    ID_CLOCK_STEP.set(step_ms as f64 / 1e3);
    // NaN where no peer answers: an old offset would look like a current one.
    let offset_ms = offsets.of_peers_ms().map_or(f64::NAN, |ms| ms as f64);
    ID_CLOCK_OFFSET.set(offset_ms / 1e3);
    let end_ms = issuer.layout().end_of_life_ms();
    let life_ms = end_ms.saturating_sub(now_us.div_euclid(1_000));
    ID_LAYOUT_LEFT.set(life_ms as f64 / 1e3);
    ID_LAYOUT_DAYS_LEFT.set(life_ms as f64 / MS_A_DAY);
    let failure = held_node.lock().as_ref().and_then(HeldNode::take_failure);
    if failure.is_some() {
        ID_WINDOW_FAILURES.increment(1);
    }
    extending.looked(failure.as_ref(), until_us, now_ms());
    failure.is_some_and(|failure| failure.is_lost)
}

/// Whether the node's window is extended, and when to log that.
#[derive(Default)]
struct Extending {
    log: FaultLog,
    /// Where the window ended when it was last not extended, Unix µs.
    failed_until_us: i64,
    is_lost: bool,
}

impl Extending {
    /// Records a check. That nothing has failed since the last one does not prove success: an attempt
    /// may take longer.
    fn looked(&mut self, failure: Option<&ExtensionFailure>, until_us: i64, now_ms: i64) {
        let Some(failure) = failure else {
            if until_us > self.failed_until_us
                && let Some(failed_ms) = self.log.succeeded(now_ms)
            {
                tracing::warn!(
                    "the node's window is extended again, after {}",
                    show_ms(failed_ms)
                );
            }
            return;
        };
        self.failed_until_us = until_us;
        let is_new = self.log.failed(Weight::Lasting, now_ms);
        // The loss is permanent, so it is logged even after other failures.
        if is_new || (failure.is_lost && !self.is_lost) {
            tracing::warn!(
                error = failure.message,
                "the node's window was not extended"
            );
        }
        self.is_lost |= failure.is_lost;
    }
}

const EVERY: Duration = Duration::from_secs(1);
const PEERS_EVERY: Duration = Duration::from_secs(30);
const MS_A_DAY: f64 = 86_400_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use driftline_runtime::testing::Warnings;

    #[test]
    fn a_window_that_is_not_extended_is_logged_once_and_its_loss_once() {
        let (warnings, _guard) = Warnings::listen();
        let failure = |is_lost| ExtensionFailure {
            message: "the database is away".to_owned(),
            is_lost,
        };
        let mut extending = Extending::default();
        for seconds in 0..10 {
            extending.looked(Some(&failure(false)), 700, seconds * 2_000);
            extending.looked(None, 700, seconds * 2_000 + 1_000);
        }
        assert_eq!(warnings.times("was not extended"), 1);
        assert_eq!(
            warnings.times("extended again"),
            0,
            "an attempt only takes long"
        );
        extending.looked(None, 701, 20_000);
        extending.looked(None, 702, 21_000);
        assert_eq!(warnings.times("extended again, after 20"), 1);
        extending.looked(Some(&failure(true)), 702, 22_000);
        extending.looked(Some(&failure(true)), 702, 23_000);
        assert_eq!(
            warnings.times("was not extended"),
            2,
            "the loss is logged at once"
        );
    }
}
