//! Renews the leases of running sessions.

use std::{collections::HashSet, sync::Arc};

use driftline_store::{Root, StoreError, source_lease};

use super::Shared;

/// Renews leases until all sessions have ended. The lease of an ended session is not renewed, even if
/// it could not be released.
pub(super) async fn renew(shared: Arc<Shared>) {
    let renewing = async {
        loop {
            tokio::time::sleep(shared.options.lease / RENEWALS_A_LEASE).await;
            if let Err(error) = renew_once(&shared).await {
                shared.access.store_fault.failed(&error);
            }
        }
    };
    // A store that does not answer must not delay stopping.
    let mut over = shared.over.subscribe();
    tokio::select! {
        _ = over.wait_for(|over| *over) => {}
        () = renewing => {}
    }
}

async fn renew_once(shared: &Shared) -> Result<(), StoreError> {
    let held = shared.running.leases();
    if held.is_empty() {
        return Ok(());
    }
    let (leases, ttl_ms) = (held.clone(), shared.ttl_ms());
    let renewed = shared
        .store
        .write(Root::none(), move |tx| {
            source_lease::renew_all(tx, &leases, ttl_ms)
        })
        .await?;
    let renewed: HashSet<_> = renewed
        .iter()
        .map(|lease| (lease.source, lease.fence))
        .collect();
    for lost in held {
        if !renewed.contains(&(lost.source, lost.fence)) {
            shared.running.lost(&lost);
        }
    }
    Ok(())
}

/// Several per lease, so that a failed renewal can be retried in time.
const RENEWALS_A_LEASE: u32 = 5;
