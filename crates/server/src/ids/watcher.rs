//! What is looked at while the service runs: the clock, the window, the layout's end.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use metrics::{counter, gauge};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

use super::{Issuer, holding::Holding, sanity, service::ask_all, status::Offsets};

/// Looks every second, and asks the peers now and then, until it is told to stop.
pub(super) async fn watch(
    issuer: Arc<Issuer>,
    offsets: Arc<Offsets>,
    holding: Arc<Mutex<Option<Holding>>>,
    peers: Vec<String>,
    mut stopped: watch::Receiver<bool>,
) {
    let layout = issuer.layout();
    if let Some(warning) = layout.expires_within_a_year(issuer.now_us().div_euclid(1_000)) {
        tracing::warn!("{warning}");
    }
    let mut seconds = interval(EVERY);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = 0_u32;
    loop {
        tokio::select! {
            _ = seconds.tick() => {}
            _ = stopped.wait_for(|stop| *stop) => return,
        }
        look(&issuer, &offsets, &holding);
        looks = looks.wrapping_add(1);
        if !peers.is_empty() && looks.is_multiple_of(PEERS_EVERY) {
            let reached = tokio::select! {
                reached = ask_all(peers.clone(), &issuer) => reached,
                _ = stopped.wait_for(|stop| *stop) => return,
            };
            offsets.set(sanity::mean_offset_ms(&reached));
            if let Err(error) = sanity::check(&issuer, &reached) {
                tracing::warn!(%error, "the service and its peers do not go together any more");
            }
        }
    }
}

fn look(issuer: &Issuer, offsets: &Offsets, holding: &Mutex<Option<Holding>>) {
    let now_us = issuer.now_us();
    let left_us = issuer.window_until_us().saturating_sub(now_us);
    gauge!("driftline_id_window_left_seconds").set(left_us as f64 / 1e6);
    gauge!("driftline_id_lease_held").set(f64::from(u8::from(left_us > 0)));
    let step_ms = offsets.step_ms(issuer);
    gauge!("driftline_id_clock_step_seconds").set(step_ms as f64 / 1e3);
    if let Some(offset_ms) = offsets.of_peers_ms() {
        gauge!("driftline_id_clock_offset_seconds").set(offset_ms as f64 / 1e3);
    }
    let end_ms = issuer.layout().end_of_life_ms();
    let life_ms = end_ms.saturating_sub(now_us.div_euclid(1_000));
    gauge!("driftline_id_layout_days_left").set(life_ms as f64 / MS_A_DAY);
    let failure = holding
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .and_then(Holding::take_failure);
    if let Some(error) = failure {
        counter!("driftline_id_window_failures_total").increment(1);
        tracing::warn!(%error, "the node's window was not extended");
    }
}

const EVERY: Duration = Duration::from_secs(1);
/// Peers are asked this many seconds apart.
const PEERS_EVERY: u32 = 30;
const MS_A_DAY: f64 = 86_400_000.0;
