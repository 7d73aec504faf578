//! The command that shows the state of the whole mirror, for whoever looks at it every few seconds.

use driftline_mirror::refresh::{ConfiguredCredentials, RefreshStats};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    Store, StoreError,
    instance::{self, Instance},
    known_instances,
    post_delay::{self, PostTimes},
    refresh::{Waiting, waiting},
    source::{self, Source},
    space,
};
use driftline_upstream::look_ups;

use super::{
    Host, IdServiceStatus, ListCredentials, ListNodes, MirrorStatus, RefreshLoad, ShowStatus,
    SourceStatus, credentials, nodes, sources::Readings,
};

/// The state of the mirror.
pub(super) async fn show(host: &Host, _: ShowStatus) -> Result<MirrorStatus, CommandError> {
    let now = now_ms();
    let (sources, readings) = Readings::read(host).await?;
    let all = host.store.read(source::list).await?.len();
    let private_sources = all.saturating_sub(sources.len()) as u64;
    let delays = delays(&host.store, &sources).await?;
    let sources = sources.into_iter().zip(delays);
    let sources = sources.map(|(source, delay_ms)| source_status(&readings, source, delay_ms));
    let issuer = host.ids.as_ref();
    Ok(MirrorStatus {
        now_ms: now,
        process: host.process.clone(),
        nodes: nodes::list(host, ListNodes).await?,
        sources: sources.collect(),
        private_sources,
        refreshing: host.refreshers.is_some(),
        instances: instances(host, now).await?,
        credentials: credentials::list(host, ListCredentials).await?,
        ids: issuer.map(|issuer| IdServiceStatus {
            layout: issuer.layout().name().to_owned(),
            node: issuer.node().number(),
            window_until_ms: issuer.window_until_us().div_euclid(1_000),
        }),
        low_disk: host.store_disk.low(),
        postgresql_bytes: postgresql_bytes(&host.store).await?,
        followers: host.process.as_ref().map(|_| host.feed.followers()),
    })
}

fn source_status(readings: &Readings, source: Source, delay_ms: Option<i64>) -> SourceStatus {
    let machine = readings.machine(&source);
    let lateness = machine.lateness();
    let estimate = lateness.distribution();
    let reading = readings.of(&source, &machine);
    SourceStatus {
        state: reading.facts.state(),
        state_text: reading.facts.state_text(),
        verdict: reading.facts.verdict(),
        posts_a_minute: machine.rate_per_s() * 60.0,
        delay_ms,
        lateness_ms: estimate.as_ref().map(|of| of.quantile_ms(LATENESS_SHARE)),
        longest_lateness_ms: estimate.map(|_| lateness.longest_ms),
        proof: reading.facts.has_posts.then_some(reading.proof),
        ranges: reading.facts.ranges,
        unreadable: readings.unreadable(&source),
        last_poll_ms: machine.polls().last_ms,
        name: source.name,
        wait: reading.facts.wait,
    }
}

/// The median delay of each source's last posts.
async fn delays(store: &Store, sources: &[Source]) -> Result<Vec<Option<i64>>, CommandError> {
    let keys: Vec<_> = sources.iter().map(Source::key).collect();
    let read = store.read(move |tx| post_delay::recent(tx, &keys, ARRIVALS));
    Ok(read.await?.iter().map(|of| median_delay_ms(of)).collect())
}

fn median_delay_ms(arrivals: &[PostTimes]) -> Option<i64> {
    let delays = arrivals.iter();
    let mut delays: Vec<i64> = delays
        .map(|of| of.arrived_at_ms.saturating_sub(of.created_at_ms))
        .collect();
    delays.sort_unstable();
    delays.get(delays.len() / 2).copied()
}

async fn instances(host: &Host, now: i64) -> Result<Vec<RefreshLoad>, CommandError> {
    let viewer = host.viewer;
    let read = host.store.read(move |tx| {
        let instances = known_instances::known_to(tx, viewer)?;
        let ids: Vec<_> = instances.iter().map(|instance| instance.id).collect();
        let waits = waiting(tx, &ids, now, MAX_COUNTED)?;
        let mut found = Vec::with_capacity(instances.len());
        for (instance, waits) in instances.into_iter().zip(waits) {
            let has_batch = instance::has_batch_look_up(tx, instance.id)?;
            found.push((instance, has_batch.unwrap_or(false), waits));
        }
        Ok::<_, StoreError>(found)
    });
    let found = read.await?;
    let configured = match &host.refreshers {
        Some(refreshers) => refreshers.configured_credentials().await?,
        None => ConfiguredCredentials::default(),
    };
    let rows = found.into_iter().map(|(instance, has_batch, waits)| {
        let refreshers = host.refreshers.as_ref();
        let stats = refreshers.map(|refreshers| refreshers.refresh_stats(instance.id));
        let without_credential = configured.leaves_out(instance.id);
        load(
            &instance,
            has_batch,
            &waits,
            (stats, without_credential),
            now,
        )
    });
    Ok(rows.collect())
}

fn load(
    instance: &Instance,
    has_batch: bool,
    waits: &Waiting,
    (stats, without_credential): (Option<RefreshStats>, bool),
    now: i64,
) -> RefreshLoad {
    let since_ms = |due_ms: i64| now.saturating_sub(due_ms).max(0);
    RefreshLoad {
        instance: instance.origin.clone(),
        requests: stats.as_ref().map(|stats| stats.requests),
        mean_posts_a_request: stats.as_ref().and_then(RefreshStats::mean_posts),
        max_posts_a_request: look_ups(instance.api, has_batch).1 as u64,
        overdue: waits.due,
        has_more: waits.has_more,
        oldest_overdue_ms: waits.first_due_ms.map(since_ms),
        without_credential,
        failure: stats.and_then(|stats| stats.failure),
    }
}

/// The size of all tables; `None` where they lie in a file, or on many servers.
async fn postgresql_bytes(store: &Store) -> Result<Option<u64>, CommandError> {
    let read = store.read(|tx| {
        if tx.is_distributed() {
            return Ok(None);
        }
        let tables = space::tables(tx)?;
        let bytes = tables.iter().map(|table| table.bytes).sum();
        Ok::<_, StoreError>((!tables.is_empty()).then_some(bytes))
    });
    Ok(read.await?)
}

const LATENESS_SHARE: f64 = 0.99;
/// The posts of a source that its delay is the median of.
const ARRIVALS: u32 = 40;
/// Due posts of a bucket that are counted.
const MAX_COUNTED: u32 = 1_250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_is_that_of_the_middle_post() {
        let arrival = |created_at_ms| PostTimes {
            created_at_ms,
            arrived_at_ms: 1_000,
        };
        assert_eq!(median_delay_ms(&[]), None);
        assert_eq!(median_delay_ms(&[arrival(400)]), Some(600));
        let arrivals = [arrival(-900_000), arrival(990), arrival(700)];
        assert_eq!(median_delay_ms(&arrivals), Some(300));
    }
}
