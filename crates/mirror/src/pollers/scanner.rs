//! Starts the sessions of this process's share of the sources, and ends those that are no more of it.

use std::{collections::HashSet, sync::Arc, time::Duration};

use driftline_runtime::{
    metrics::{
        SHARING_GIVEN_BACK, SHARING_HELD, SHARING_MEMBERS, SHARING_SHARE, SHARING_TAKEN_OVER,
    },
    now_ms, steady_ms,
};
use driftline_store::{
    Root, SourceId,
    source::Source,
    source_lease::{self, Lease},
};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::{JoinError, JoinSet},
};

use super::{running::release, shared::Shared};
use crate::{client::client_of, session::Session, sharing::View};

/// Sources whose sessions are being opened, or whose leases are being given back.
#[derive(Default)]
struct Openings {
    sources: Mutex<HashSet<SourceId>>,
    /// Those for which the current view has nothing more to be done.
    done: Mutex<HashSet<SourceId>>,
    /// Notifies the scanner of one that is over: there is room for another one, and what its session is
    /// to adopt may have come meanwhile.
    has_room: Notify,
}

/// One of them, until it is dropped.
struct Opening {
    openings: Arc<Openings>,
    source: SourceId,
}

impl Openings {
    fn has(&self, source: SourceId) -> bool {
        self.sources.lock().contains(&source)
    }

    /// Begins one, if there is room and the current view has not been acted on.
    fn begin(self: &Arc<Self>, source: SourceId) -> Option<Opening> {
        let mut sources = self.sources.lock();
        if sources.len() >= MAX_OPENINGS || self.done.lock().contains(&source) {
            return None;
        }
        sources.insert(source);
        let openings = Arc::clone(self);
        Some(Opening { openings, source })
    }
}

impl Opening {
    /// Leaves the source alone until there is a newer view.
    fn is_done(&self) {
        self.openings.done.lock().insert(self.source);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.openings.sources.lock().remove(&self.source);
        self.openings.has_room.notify_one();
    }
}

/// Acts on each view, and on sources whose time to be tried again has come, until `stop` is set.
pub(super) async fn scan(shared: Arc<Shared>) {
    let mut stop = shared.stop.subscribe();
    let mut view = shared.sharing.view();
    let (openings, mut tasks) = (Arc::<Openings>::default(), JoinSet::new());
    let mut before: Option<Arc<View>> = None;
    while !*stop.borrow() {
        let current = view.borrow_and_update().clone();
        if before.as_ref().map(Arc::as_ptr) != current.as_ref().map(Arc::as_ptr) {
            openings.done.lock().clear();
            before.clone_from(&current);
        }
        let acts = match current {
            Some(current) if !shared.access.store_fault.lasts().await => {
                act(&shared, &current, &openings, &mut tasks);
                true
            }
            _ => false,
        };
        while let Some(opened) = tasks.try_join_next() {
            log_panic(opened);
        }
        let now_ms = steady_ms();
        let next_ms = shared.retries.lock().next_due_ms(now_ms);
        let wait_ms = next_ms.map_or(MAX_WAIT_MS, |next_ms| next_ms.saturating_sub(now_ms));
        // Without an act, what was due then still is.
        let max_ms = if acts { MAX_WAIT_MS } else { SKIPPED_WAIT_MS };
        let wait_ms = wait_ms.clamp(MIN_WAIT_MS, max_ms).unsigned_abs();
        tokio::select! {
            _ = stop.changed() => {}
            _ = view.changed() => {}
            () = shared.has_failed.notified() => {}
            () = openings.has_room.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => shared.sharing.look_now(),
        }
    }
    // Each may be about to begin its session.
    while let Some(opened) = tasks.join_next().await {
        log_panic(opened);
    }
}

fn log_panic(opened: Result<(), JoinError>) {
    if let Err(error) = opened {
        tracing::error!(%error, "the start of a session panicked");
    }
}

/// Opens sessions without waiting for them, so that one that takes long holds up no other change.
fn act(shared: &Arc<Shared>, view: &View, openings: &Arc<Openings>, tasks: &mut JoinSet<()>) {
    let sources = &view.sources;
    shared.running.stop_obsolete(sources);
    shared.retries.lock().sync(sources, steady_ms());
    retry_refused(shared, view, openings);
    // What is tried again counts in nobody's share, until it works.
    let is_on_trial = |id| shared.retries.lock().is_refused(id) && view.unable.contains(&id);
    let given = shared
        .running
        .give_back(|id| view.give_back.contains(&id) && !is_on_trial(id));
    SHARING_GIVEN_BACK.increment(given as u64);
    let is_read = |id| shared.running.has(id) || openings.has(id);
    let ours: Vec<&Source> = sources
        .iter()
        .filter(|source| {
            let id = source.id;
            let is_ours = view.own.contains(&id) || view.is_active && view.unable.contains(&id);
            is_ours || is_read(id)
        })
        .collect();
    let names: Vec<_> = ours
        .iter()
        .map(|source| (source.id, &*source.name))
        .collect();
    let ours: HashSet<SourceId> = ours.iter().map(|source| source.id).collect();
    shared.health.watch(&names, now_ms());
    SHARING_MEMBERS.set(view.members as f64);
    SHARING_SHARE.with(["sources"]).set(view.own.len() as f64);
    SHARING_SHARE.with(["buckets"]).set(view.buckets as f64);
    for source in sources {
        if *shared.stop.borrow() || is_read(source.id) {
            continue;
        }
        let left = left_behind(source, &shared.options.holder);
        let is_free = left.is_some() || view.free.contains(&source.id);
        if ours.contains(&source.id) && is_free {
            if shared.retries.lock().is_due(source.id, steady_ms())
                && let Some(opening) = openings.begin(source.id)
            {
                let (shared, source) = (Arc::clone(shared), source.clone());
                tasks.spawn(async move { open(&shared, &source, left, &opening).await });
            }
        } else if let Some(left) = left
            && let Some(opening) = openings.begin(source.id)
        {
            let shared = Arc::clone(shared);
            tasks.spawn(async move {
                release(&shared, left).await;
                opening.is_done();
            });
        }
    }
    SHARING_HELD
        .with(["sources"])
        .set(shared.running.leases().len() as f64);
    SHARING_HELD.with(["buckets"]).set(view.buckets as f64);
}

/// Sources that were refused and that others read, or that can be read again as far as can be said
/// without a request.
fn retry_refused(shared: &Shared, view: &View, openings: &Openings) {
    let now_ms = steady_ms();
    for source in &view.sources {
        let is_due = {
            let retries = shared.retries.lock();
            retries.is_refused(source.id) && retries.is_due(source.id, now_ms)
        };
        let is_read = shared.running.has(source.id) || openings.has(source.id);
        if !is_due || is_read || view.unable.contains(&source.id) {
            continue;
        }
        match client_of(source, &shared.access) {
            Ok(_) => drop(shared.retries.lock().succeeded(source.id)),
            Err(error) => shared.halted(source.id, &error.into()),
        }
    }
    shared.publish_refusals();
}

/// The lease that this process has on a source. If no session runs, the lease could not be released,
/// or the answer to its claim was lost. Only the scanner claims, so no session uses it.
fn left_behind(source: &Source, holder: &str) -> Option<Lease> {
    let holding = source.holding.as_ref()?;
    (holding.holder == holder).then_some(Lease {
        source: source.key(),
        fence: holding.fence,
        until_ms: holding.until_ms,
    })
}

/// Starts a session if the source can be claimed.
async fn open(shared: &Arc<Shared>, source: &Source, left: Option<Lease>, opening: &Opening) {
    // A process without the token leaves the source to processes that have it.
    if let Err(error) = client_of(source, &shared.access) {
        return shared.halted(source.id, &error.into());
    }
    let (key, holder, ttl_ms) = (source.key(), shared.options.holder.clone(), shared.ttl_ms());
    let claimed = shared
        .store
        .write(Root::none(), move |tx| {
            // Whoever holds the row for long, as its removal does, must not hold a connection too.
            if !source_lease::try_lock(tx, key)? {
                return Ok(None);
            }
            if let Some(left) = &left {
                source_lease::release(tx, left)?;
            }
            source_lease::claim(tx, key, &holder, ttl_ms).map(Some)
        })
        .await;
    let lease = match claimed {
        Ok(Some(Some(lease))) => lease,
        Ok(Some(None)) => {
            opening.is_done();
            return shared.sharing.look_now();
        }
        Ok(None) => return shared.is_held_up(key.id),
        Err(error) => return shared.halted(key.id, &error.into()),
    };
    let opened = Session::open(
        shared.store.clone(),
        &shared.access,
        source.clone(),
        Some(lease.fence),
    );
    match opened.await {
        Ok(session) => {
            tracing::info!(source = %source.name, fence = lease.fence, "reading started");
            let before = source.holding.as_ref().map(|holding| &*holding.holder);
            if before.is_some_and(|before| before != shared.options.holder) {
                SHARING_TAKEN_OVER.increment(1);
            }
            shared.running.begin(shared, session, lease);
        }
        Err(error) => {
            release(shared, lease).await;
            shared.halted(key.id, &error);
        }
    }
}

/// Sources whose sessions are opened at a time.
const MAX_OPENINGS: usize = 8;
const MIN_WAIT_MS: i64 = 100;
const MAX_WAIT_MS: i64 = 60_000;
const SKIPPED_WAIT_MS: i64 = 500;
