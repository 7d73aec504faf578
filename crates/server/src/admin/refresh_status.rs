//! The command that shows the state of refreshing.

use driftline_core::refresh::AgeTable;
use driftline_mirror::refresh::{ConfiguredCredentials, RefreshStats};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    StoreError, known_instances,
    refresh::{bands, overdue},
};

use super::{
    BandRow, Host, InstanceRow, ListCredentials, RefreshStatus, ShowRefreshStatus, credentials,
};

/// The state of refreshing.
pub(super) async fn status(
    host: &Host,
    _: ShowRefreshStatus,
) -> Result<RefreshStatus, CommandError> {
    let now = now_ms();
    let table = host
        .access
        .as_ref()
        .map_or_else(AgeTable::default, |access| access.policies.ages().clone());
    let (ages, viewer) = (table.clone(), host.viewer);
    let states = host
        .store
        .read(move |tx| {
            let instances = known_instances::known_to(tx, viewer)?;
            let ids: Vec<_> = instances.iter().map(|instance| instance.id).collect();
            let behind = overdue(tx, &ids, now)?;
            let aged = bands(tx, &ids, &ages, now)?;
            Ok::<_, StoreError>(instances.into_iter().zip(behind).zip(aged))
        })
        .await?;
    let plan = host.access.as_ref().map(|access| access.policies.plan());
    let policy = match plan.is_some_and(|plan| plan.by_value.is_some()) {
        true => "value",
        false => "age",
    };
    let configured = match &host.refreshers {
        Some(refreshers) => refreshers.configured_credentials().await?,
        None => ConfiguredCredentials::default(),
    };
    let since_ms = |first_ms: Option<i64>| now.saturating_sub(first_ms.unwrap_or(now)).max(0);
    let instances = states.map(|((instance, behind), aged)| {
        let refreshers = host.refreshers.as_ref();
        let refresh_stats = refreshers.map(|refreshers| refreshers.refresh_stats(instance.id));
        let bands = table.bands().iter().zip(aged);
        let bands = bands.map(|(band, state)| BandRow { band: *band, state });
        InstanceRow {
            without_credential: configured.leaves_out(instance.id),
            instance: instance.origin,
            scheduled: behind.scheduled,
            overdue: behind.overdue,
            oldest_overdue_ms: since_ms(behind.first_due_ms),
            pending_lookups: behind.pending_lookups,
            oldest_pending_ms: since_ms(behind.first_pending_ms),
            leased: behind.leased,
            bands: bands.collect(),
            mean_posts_a_request: refresh_stats.as_ref().and_then(RefreshStats::mean_posts),
            since_start: refresh_stats.as_ref().map(Into::into),
            policy: policy.to_owned(),
        }
    });
    Ok(RefreshStatus {
        instances: instances.collect(),
        credentials: credentials::list(host, ListCredentials).await?,
        unknown_credentials: configured.unknown(),
        running: host.refreshers.is_some(),
    })
}
