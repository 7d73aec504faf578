//! How many refreshes the quotas of an instance allow.

use driftline_core::quota::{QuotaLedger, Unit};
use driftline_runtime::now_ms;
use driftline_store::{
    InstanceId, StoreError, credential, instance::has_batch_look_up, quota, source,
};

use super::Shared;
use crate::quotas::MONTH;

/// Posts per ms, over all credentials in use. Where the upstream has reported no limit, the default
/// limit of a Mastodon server counts.
pub(crate) async fn posts_per_ms(shared: &Shared, id: InstanceId) -> Result<f64, StoreError> {
    let (credentials, ledgers, api, has_batch) = shared
        .store
        .read(move |tx| {
            let instances = source::instances(tx)?;
            let api = instances.into_iter().find(|instance| instance.id == id);
            Ok::<_, StoreError>((
                credential::of_instance(tx, id)?,
                quota::all(tx)?,
                api.map(|instance| instance.api),
                has_batch_look_up(tx, id)?,
            ))
        })
        .await?;
    let (scope, batch) = match api {
        Some(api) => driftline_upstream::look_ups(api, has_batch.unwrap_or(false)),
        None => return Ok(0.0),
    };
    let now = now_ms();
    let is_used = |credential: &&credential::Credential| {
        credential
            .quarantine
            .as_ref()
            .is_none_or(|rest| rest.until_ms <= now)
    };
    let mut posts = 0.0;
    for credential in credentials.iter().filter(is_used) {
        let ledger_of = |wanted_scope: &str| {
            let found = ledgers
                .iter()
                .find(|(id, scope, _)| *id == credential.id && scope == wanted_scope);
            found.map(|(.., ledger)| ledger)
        };
        let requests = ledger_of(scope).and_then(|ledger| pace(ledger, Unit::Requests));
        let carried = requests.unwrap_or(DEFAULT_PER_MS) * batch as f64;
        let capped = ledger_of(MONTH).and_then(|ledger| pace(ledger, Unit::Posts));
        posts += capped.map_or(carried, |cap| carried.min(cap));
    }
    Ok(posts)
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
