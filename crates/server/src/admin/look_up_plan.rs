//! The command that tells how posts of an instance are looked up.

use driftline_core::quota::{Grant, QuotaLedger, QuotaPurpose, Unit};
use driftline_mirror::tracked_posts;
use driftline_runtime::{CommandError, now_ms, read_clocks};
use driftline_store::{
    Owner, StoreError,
    credential::{self, Credential},
    instance, quota, refresh,
};
use driftline_upstream::look_ups;

use super::{Host, LookUpPlan, PlanLookUps, credentials::limits, find};

/// How many posts a request takes, and how many requests may be sent.
pub(super) async fn plan(host: &Host, request: PlanLookUps) -> Result<LookUpPlan, CommandError> {
    let name = tracked_posts(&host.store, &request.instance).await?.source;
    let instance = find(&host.store, &name).await?.instance;
    let id = instance.id;
    let now = now_ms();
    let (has_batch, credentials, ledgers, overdue) = host
        .store
        .read(move |tx| {
            let has_batch = instance::has_batch_look_up(tx, id)?;
            let mut credentials = credential::of_instance(tx, id)?;
            credentials.retain(|credential| credential.owner == Owner::Operator);
            let overdue = refresh::overdue(tx, &[id], now)?;
            Ok::<_, StoreError>((has_batch, credentials, quota::all(tx)?, overdue))
        })
        .await?;
    let (scope, batch) = look_ups(instance.api, has_batch.unwrap_or(false));
    let access = host.access.as_ref();
    let share = access.map_or(0.0, |access| access.quotas.polling_share());
    let (mut states, mut shown) = (Vec::new(), Vec::new());
    for credential in &credentials {
        let own = ledgers
            .iter()
            .find(|(of, own_scope, _)| *of == credential.id && own_scope == scope);
        let ledger = own.map(|(.., ledger)| ledger.clone()).unwrap_or_default();
        shown.extend(limits(scope, &ledger, now));
        states.push(State::of(credential, ledger, share, now));
    }
    let rates: Vec<f64> = states.iter().filter_map(|state| state.per_s).collect();
    // The first credential that may be used again.
    let waits = states.iter().map(|state| state.until.clone());
    let waits: Option<Vec<(i64, String)>> = waits.collect();
    let next = waits.and_then(|waits| waits.into_iter().min());
    let refreshers = host.refreshers.as_ref();
    let failure = refreshers.and_then(|refreshers| refreshers.refresh_stats(id).failure);
    let (until_ms, reason) = next.unzip();
    Ok(LookUpPlan {
        origin: instance.origin,
        api: instance.api,
        batch: batch as u64,
        batch_is_known: has_batch.is_some() || batch > 1,
        requests_per_s: (!rates.is_empty()).then(|| rates.iter().sum()),
        limits: shown,
        until_ms,
        reason: reason.or(failure),
        next_lookup_ms: overdue.first().and_then(|of| of.first_pending_ms),
    })
}

/// What may be asked with a credential.
struct State {
    /// Requests, in the long run; none while it rests, or while no limit is known.
    per_s: Option<f64>,
    /// When it may be used again, Unix ms, and why not now.
    until: Option<(i64, String)>,
}

impl State {
    fn of(credential: &Credential, mut ledger: QuotaLedger, share: f64, now_ms: i64) -> State {
        let quarantine = credential.quarantine.as_ref();
        if let Some(rest) = quarantine.filter(|rest| rest.lasts(now_ms)) {
            return State {
                per_s: None,
                until: Some((rest.until_ms, rest.reason.clone())),
            };
        }
        ledger.sync(read_clocks(), None);
        let requests = ledger.windows().iter();
        let requests =
            requests.filter(|window| window.unit == Unit::Requests && !window.pages_only);
        let rates = requests.map(|window| {
            let seconds = window.length_ms.max(1) as f64 / 1000.0;
            f64::from(window.limit) * (1.0 - share) / seconds
        });
        let per_s = rates.reduce(f64::min);
        let until = match ledger.take(1, 0, QuotaPurpose::Refresh, share, now_ms) {
            Grant::Until(until_ms) => Some((until_ms, "the quota is used up".to_owned())),
            Grant::Requests(_) => None,
        };
        State { per_s, until }
    }
}
