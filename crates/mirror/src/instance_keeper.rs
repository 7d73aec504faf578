//! Keeps what mirrored servers say of themselves fresh: about once a day.

use std::time::Duration;

use driftline_core::social::Instance;
use driftline_runtime::{now_ms, random};
use driftline_store::{
    Root, Store, StoreError,
    instance_info::{self, InstanceInfo},
    source::{self, Source},
};

use crate::{client::Server, upstream_access::UpstreamAccess};

/// Keeps it fresh for ever.
pub(crate) async fn keep(store: Store, access: UpstreamAccess) {
    loop {
        tokio::time::sleep(EVERY).await;
        if access.store_fault.lasts().await || access.store_disk.low().is_some() {
            continue;
        }
        if let Err(error) = refresh_instances(&store, &access, now_ms()).await {
            tracing::debug!(%error, "what servers say of themselves was not refreshed");
        }
    }
}

/// Asks every mirrored server that is due, and notes servers that are new. Processes that share a store
/// ask no server twice.
///
/// # Errors
/// [`StoreError`] of the store; a server that does not answer is asked again later.
pub async fn refresh_instances(
    store: &Store,
    access: &UpstreamAccess,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sources = store.read(source::list).await?;
    for source in &sources {
        add(store, source, now_ms).await?;
    }
    loop {
        let retry_ms = now_ms + RETRY_MS + jitter(RETRY_MS / 2);
        let due = store
            .write(Root::none(), move |tx| {
                instance_info::claim(tx, now_ms, retry_ms)
            })
            .await?;
        let Some(due) = due else { return Ok(()) };
        refresh(store, access, &sources, due, now_ms).await?;
    }
}

async fn add(store: &Store, source: &Source, now_ms: i64) -> Result<(), StoreError> {
    let instance = source.instance.clone();
    let id = Instance::id_of(&instance.origin);
    let known = store.read(move |tx| instance_info::by_id(tx, id)).await?;
    if known.is_some_and(|known| known.mirrored == Some(instance.id)) {
        return Ok(());
    }
    let add = move |tx: &mut driftline_store::Tx<'_>| {
        instance_info::add_mirrored(tx, &instance.origin, instance.id, now_ms)
    };
    store.write(Root::none(), add).await
}

async fn refresh(
    store: &Store,
    access: &UpstreamAccess,
    sources: &[Source],
    due: InstanceInfo,
    now_ms: i64,
) -> Result<(), StoreError> {
    let mut of_instance = sources
        .iter()
        .filter(|source| Some(source.instance.id) == due.mirrored);
    // A server whose last source is gone is asked again when it has one.
    let Some(first) = of_instance.next() else {
        return Ok(());
    };
    let allow_private = first.allow_private || of_instance.any(|source| source.allow_private);
    let server = Server::of(&first.instance, allow_private);
    // Without a token: what a server says of itself is for everyone.
    let profile = match access.client(server, None) {
        Ok(client) => client.instance_profile().await.map_err(|it| it.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match profile {
        Ok(profile) => {
            let instance = Instance::new(&first.instance.origin, profile);
            let next_ms = now_ms + DAY_MS - DAY_MS / 8 + jitter(DAY_MS / 4);
            let save = move |tx: &mut driftline_store::Tx<'_>| {
                instance_info::save(tx, &instance, now_ms, next_ms)
            };
            store.write(Root::none(), save).await
        }
        Err(error) => {
            tracing::debug!(server = first.instance.origin, error, "a server does not say what it is");
            Ok(())
        }
    }
}

fn jitter(most_ms: i64) -> i64 {
    (random() % most_ms.unsigned_abs().max(1)).cast_signed()
}

const EVERY: Duration = Duration::from_secs(300);
const RETRY_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * RETRY_MS;
