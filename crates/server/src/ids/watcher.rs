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

use super::{Issuer, holding::Holding, sanity, service::ask_all, status::Offsets};

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
    peers: Vec<String>,
    ends: Ends,
) {
    let layout = issuer.layout();
    if let Some(warning) = layout.expires_within_a_year(issuer.now_us().div_euclid(1_000)) {
        tracing::warn!("{warning}");
    }
    let Ends { mut stopped, lost } = ends;
    let looking = async {
        let mut seconds = interval(EVERY);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            seconds.tick().await;
            if look(&issuer, &offsets, &holding) {
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

async fn ask_now_and_then(issuer: &Arc<Issuer>, offsets: &Offsets, peers: Vec<String>) {
    if peers.is_empty() {
        return std::future::pending().await;
    }
    loop {
        sleep(PEERS_EVERY).await;
        let reached = ask_all(peers.clone(), issuer).await;
        offsets.set(sanity::mean_offset_ms(&reached));
        if let Err(error) = sanity::check(issuer, &reached) {
            tracing::warn!(%error, "the service and its peers do not go together any more");
        }
    }
}

/// Shows the state; whether the node is lost.
fn look(issuer: &Issuer, offsets: &Offsets, holding: &Mutex<Option<Holding>>) -> bool {
    let now_us = issuer.now_us();
    let left_us = issuer.window_until_us().saturating_sub(now_us);
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
    let Some(failure) = failure else {
        return false;
    };
    counter!("driftline_id_window_failures_total").increment(1);
    tracing::warn!(
        error = failure.message,
        "the node's window was not extended"
    );
    failure.is_lost
}

const EVERY: Duration = Duration::from_secs(1);
const PEERS_EVERY: Duration = Duration::from_secs(30);
const MS_A_DAY: f64 = 86_400_000.0;
