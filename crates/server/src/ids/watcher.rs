//! What is looked at while the service runs: the clock, the window, the layout's end.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use metrics::{counter, gauge};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    Issuer,
    holding::{Failure, Holding},
    peers::Peers,
    sanity,
    status::Offsets,
};
use crate::{
    clock::now_ms,
    fault_log::{FaultLog, Weight},
    span::show_ms,
};

/// How the watch ends, and what it tells.
pub(super) struct Ends {
    pub(super) stopped: watch::Receiver<bool>,
    /// Told once the node is somebody else's.
    pub(super) lost: watch::Sender<bool>,
}

/// Looks every second, and asks the peers now and then, until it is told to stop.
pub(super) async fn watch(
    issuer: Arc<Issuer>,
    offsets: Arc<Offsets>,
    holding: Arc<Mutex<Option<Holding>>>,
    peers: Peers,
    ends: Ends,
) {
    let layout = issuer.layout();
    if let Some(warning) = layout.expires_within_a_year(issuer.now_us().div_euclid(1_000)) {
        tracing::warn!("{warning}");
    }
    let Ends { mut stopped, lost } = ends;
    let looking = async {
        let mut extending = Extending::default();
        let mut seconds = interval(EVERY);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            seconds.tick().await;
            if look(&issuer, &offsets, &holding, &mut extending) {
                lost.send_replace(true);
            }
        }
    };
    tokio::select! {
        () = looking => {}
        () = ask_now_and_then(&issuer, &offsets, peers) => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
}

async fn ask_now_and_then(issuer: &Arc<Issuer>, offsets: &Offsets, peers: Peers) {
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
                        "the service and its peers go together again, after {}",
                        show_ms(wrong_ms)
                    );
                }
            }
            Err(error) => {
                if log.failed(Weight::Lasting, now_ms()) {
                    tracing::warn!(%error, "the service and its peers do not go together any more");
                }
            }
        }
    }
}

/// Shows the state; whether the node is lost.
fn look(
    issuer: &Issuer,
    offsets: &Offsets,
    holding: &Mutex<Option<Holding>>,
    extending: &mut Extending,
) -> bool {
    let now_us = issuer.now_us();
    let until_us = issuer.window_until_us();
    let left_us = until_us.saturating_sub(now_us);
    gauge!("driftline_id_window_left_seconds").set(left_us as f64 / 1e6);
    gauge!("driftline_id_lease_held").set(f64::from(u8::from(left_us > 0)));
    let step_ms = offsets.step_ms(issuer);
    gauge!("driftline_id_clock_step_seconds").set(step_ms as f64 / 1e3);
    // Not a number where no peer answers: an old offset would look like a good one.
    let offset_ms = offsets.of_peers_ms().map_or(f64::NAN, |ms| ms as f64);
    gauge!("driftline_id_clock_offset_seconds").set(offset_ms / 1e3);
    let end_ms = issuer.layout().end_of_life_ms();
    let life_ms = end_ms.saturating_sub(now_us.div_euclid(1_000));
    gauge!("driftline_id_layout_days_left").set(life_ms as f64 / MS_A_DAY);
    let failure = holding
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .and_then(Holding::take_failure);
    if failure.is_some() {
        counter!("driftline_id_window_failures_total").increment(1);
    }
    extending.looked(failure.as_ref(), until_us, now_ms());
    failure.is_some_and(|failure| failure.is_lost)
}

/// Whether the node's window is extended, and when that is told.
#[derive(Default)]
struct Extending {
    log: FaultLog,
    /// Where the window ended when it was last not extended, Unix µs.
    failed_until_us: i64,
    is_lost: bool,
}

impl Extending {
    /// Takes in what was seen at this time. That nothing has failed since the last look is no sign
    /// that it works: a try may take longer.
    fn looked(&mut self, failure: Option<&Failure>, until_us: i64, now_ms: i64) {
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
        // That is for good, and another word than those before.
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
    use crate::warnings::Warnings;

    #[test]
    fn a_window_that_is_not_extended_is_told_of_once_and_so_is_its_end() {
        let (told, _listening) = Warnings::listen();
        let failure = |is_lost| Failure {
            message: "the database is away".to_owned(),
            is_lost,
        };
        let mut extending = Extending::default();
        for seconds in 0..10 {
            extending.looked(Some(&failure(false)), 700, seconds * 2_000);
            extending.looked(None, 700, seconds * 2_000 + 1_000);
        }
        assert_eq!(told.times("was not extended"), 1);
        assert_eq!(told.times("extended again"), 0, "only a try takes long");
        extending.looked(None, 701, 20_000);
        extending.looked(None, 702, 21_000);
        assert_eq!(told.times("extended again, after 20"), 1);
        extending.looked(Some(&failure(true)), 702, 22_000);
        extending.looked(Some(&failure(true)), 702, 23_000);
        assert_eq!(
            told.times("was not extended"),
            2,
            "that it is lost, at once"
        );
    }
}
