//! Keeps this process's membership and the leases of its sessions, and looks at what others change.

use std::{sync::Arc, time::Duration};

use driftline_runtime::metrics::OPEN_RESERVATIONS;
use driftline_store::{
    StoreError, reservation,
    sharing::change::{self, Change},
};
use tokio::time::Instant;

use super::shared::Shared;
use crate::sharing::SharedWork;

/// When what is next.
struct Times {
    beat: Instant,
    look: Instant,
    reservations: Instant,
    seen: Change,
}

/// Keeps them until all sessions have ended. The lease of an ended session is not renewed, even if it
/// could not be released.
pub(super) async fn keep(shared: Arc<Shared>) {
    let keeping = async {
        let now = Instant::now();
        let mut times = Times {
            beat: now,
            look: now,
            reservations: now,
            seen: Change::default(),
        };
        loop {
            if let Err(error) = turn(&shared, &mut times).await {
                shared.access.store_fault.failed(&error);
            }
            tokio::select! {
                () = shared.sharing.poked() => {}
                () = tokio::time::sleep(shared.look_every()) => {}
            }
        }
    };
    // A store that does not answer must not delay stopping.
    let mut over = shared.over.subscribe();
    tokio::select! {
        _ = over.wait_for(|over| *over) => {}
        () = keeping => {}
        // These apart, because they may take longer than a lease.
        () = renew_leases(&shared) => {}
    }
}

/// Renews the leases of running sessions. What could not be renewed is tried again at once, since the
/// commit of a page that held its source has ended then.
async fn renew_leases(shared: &Shared) {
    let ttl = shared.options.lease;
    loop {
        let begun = Instant::now();
        for pause in [RENEWAL_PAUSE; RENEWALS] {
            // Renewals and releases lock several rows each, so they take turns.
            let turn = shared.releases.turn.lock().await;
            let leases = shared.running.leases();
            let renewed = shared.sharing.renew(&shared.store, leases, ttl).await;
            drop(turn);
            match renewed {
                Ok(true) => break,
                Ok(false) => tokio::time::sleep(pause).await,
                Err(error) => {
                    shared.access.store_fault.failed(&error);
                    break;
                }
            }
        }
        tokio::time::sleep_until(begun + ttl / BEATS_A_LEASE).await;
    }
}

async fn turn(shared: &Shared, times: &mut Times) -> Result<(), StoreError> {
    let (sharing, store) = (&shared.sharing, &shared.store);
    let now = Instant::now();
    let mut change = None;
    if times.reservations <= now {
        times.reservations = now + RESERVATIONS_EVERY;
        // What fails for one instance must not stop the rest.
        match reservation::end_expired(store).await {
            Ok(open) => OPEN_RESERVATIONS.set(open as f64),
            Err(error) => tracing::debug!(%error, "open reservations were not looked at"),
        }
    }
    if times.beat <= now || sharing.has_news() {
        times.beat = now + shared.options.lease / BEATS_A_LEASE;
        let sources = shared.running.leases().len();
        change = sharing.beat(store, sources, shared.options.lease).await?;
    }
    if *shared.stop.borrow() || shared.access.store_fault.lasts().await {
        return Ok(());
    }
    let must_look = sharing.takes_look() || times.look <= now;
    // Should this look fail, the next turn takes another one.
    if must_look {
        times.look = now;
    } else {
        let change = match change {
            Some(change) => change,
            None => store.read(change::current).await?,
        };
        if change == times.seen {
            return Ok(());
        }
    }
    let seen = store.read(SharedWork::read).await?;
    times.seen = seen.change;
    times.look = now + shared.read_all_every();
    if !sharing.takes_part(&seen) {
        // Its lease has lapsed: it joins again first.
        times.beat = now;
        sharing.look_now();
        tokio::time::sleep(PAUSE).await;
        return Ok(());
    }
    sharing.see(seen);
    let view = sharing.view().borrow().clone();
    if let Some(view) = view {
        if view.awaits_end {
            times.look = now;
        } else if let Some(end_ms) = view.next_end_ms {
            let left = Duration::from_millis(end_ms.max(0).unsigned_abs());
            times.look = times.look.min(now + left);
        }
    }
    Ok(())
}

/// Several per lease, so that a failed renewal can be retried in time.
const BEATS_A_LEASE: u32 = 4;
/// How often a renewal is tried at a beat, and the pause between.
const RENEWALS: usize = 4;
const RENEWAL_PAUSE: Duration = Duration::from_millis(50);
/// An open reservation of a dead process keeps readers of all instances from what is newer.
const RESERVATIONS_EVERY: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(200);
