//! How many refreshes the quotas of an instance allow.

use std::collections::HashMap;

use driftline_core::quota::{QuotaLedger, Unit};
use driftline_runtime::now_ms;
use driftline_store::{
    StoreError, credential,
    instance::{Instance, has_batch_look_up},
    quota,
};

use super::Shared;
use crate::quotas::MONTH;

/// Posts per ms, over all credentials in use. Where the upstream has reported no limit, the default
/// limit of a Mastodon server counts.
pub(crate) async fn posts_per_ms(shared: &Shared, instance: &Instance) -> Result<f64, StoreError> {
    let id = instance.id;
    let read = shared.store.read(move |tx| {
        let has_batch = has_batch_look_up(tx, id)?;
        Ok::<_, StoreError>((credential::of_instance(tx, id)?, quota::all(tx)?, has_batch))
    });
    let (mut credentials, ledgers, has_batch) = read.await?;
    let ledgers: HashMap<_, _> = ledgers
        .iter()
        .map(|(id, scope, ledger)| ((*id, scope.as_str()), ledger))
        .collect();
    let (scope, batch) = driftline_upstream::look_ups(instance.api, has_batch.unwrap_or(false));
    let now = now_ms();
    credentials.retain(|credential| {
        let rest = credential.quarantine.as_ref();
        rest.is_none_or(|rest| !rest.lasts(now))
    });
    let posts = credentials.iter().map(|credential| {
        let pace_of = |scope, unit| {
            let ledger = ledgers.get(&(credential.id, scope))?;
            pace(ledger, unit)
        };
        let requests = pace_of(scope, Unit::Requests).unwrap_or(DEFAULT_PER_MS);
        let carried = requests * batch as f64;
        pace_of(MONTH, Unit::Posts).map_or(carried, |cap| carried.min(cap))
    });
    Ok(posts.sum())
}

/// What the tightest window allows per ms.
fn pace(ledger: &QuotaLedger, unit: Unit) -> Option<f64> {
    let windows = ledger.windows().iter();
    let windows = windows.filter(|window| window.unit == unit && !window.pages_only);
    windows
        .map(|window| f64::from(window.limit) / window.length_ms.max(1) as f64)
        .min_by(f64::total_cmp)
}

/// 300 requests in five minutes.
const DEFAULT_PER_MS: f64 = 0.001;
