//! The look for due posts on behalf of all workers of a process that have nothing to do.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use driftline_core::clock::{ClockWatch, MAX_SKEW_MS};
use driftline_runtime::{FaultLog, Weight, now_ms, read_clocks};
use driftline_store::{
    InstanceId, StoreError, Tx, instance,
    refresh::{correct_times_ahead, due_by, has_times_ahead},
    source,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::Shared;

/// Workers that sleep until a post of their instance is due, whoever stores its due time.
#[derive(Default)]
pub(super) struct DueWatch {
    /// How many sleep, by instance.
    asleep: Mutex<HashMap<InstanceId, usize>>,
    /// What the last look found: when the first post of an instance is due, Unix ms.
    found: watch::Sender<HashMap<InstanceId, i64>>,
}

impl DueWatch {
    /// Sleeps until `until_ms`, or until a post is due by a due time that a look finds meanwhile.
    pub(super) async fn sleep(&self, instance: InstanceId, until_ms: i64) {
        let mut found = self.found.subscribe();
        let _asleep = Asleep::new(self, instance);
        let mut until_ms = until_ms;
        loop {
            let left_ms = until_ms.saturating_sub(now_ms()).clamp(1, MAX_SLEEP_MS);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(left_ms.unsigned_abs())) => return,
                changed = found.changed() => {
                    let due_ms = found.borrow_and_update().get(&instance).copied();
                    until_ms = due_ms.map_or(until_ms, |due_ms| due_ms.min(until_ms));
                    if changed.is_err() || until_ms <= now_ms() {
                        return;
                    }
                }
            }
        }
    }

    /// Whether workers of the instance sleep: then nothing was due at their last look.
    pub(super) fn is_asleep(&self, instance: InstanceId) -> bool {
        self.asleep.lock().contains_key(&instance)
    }
}

/// Counts a worker that sleeps until it is dropped.
struct Asleep<'a> {
    watch: &'a DueWatch,
    instance: InstanceId,
}

impl<'a> Asleep<'a> {
    fn new(watch: &'a DueWatch, instance: InstanceId) -> Self {
        *watch.asleep.lock().entry(instance).or_default() += 1;
        Self { watch, instance }
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.watch.asleep.lock().entry(self.instance) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// Looks for due posts of the instances whose workers sleep until the workers are stopped: one
/// statement each time, whatever their number. Each due time is found before it comes, unless it was
/// stored less than a second before.
pub(super) async fn look(shared: Arc<Shared>) {
    let mut stop = shared.stopped();
    let mut fault = FaultLog::default();
    let mut times = TimesAhead::new();
    while !*stop.borrow() {
        times.correct(&shared).await;
        let asleep: Vec<InstanceId> = shared.due_watch.asleep.lock().keys().copied().collect();
        let with_shards = asleep.into_iter().map(|id| (id, shared.shards(id)));
        let asleep: Vec<_> = with_shards
            .filter(|(_, shards)| !shards.is_empty())
            .collect();
        if !asleep.is_empty() && !shared.access.store_fault.lasts().await {
            let now = now_ms();
            let times = (now, now.saturating_add(AHEAD_MS));
            let found = shared
                .store
                .read(move |tx| due_by(tx, &asleep, times))
                .await;
            match found {
                Ok(found) => {
                    fault.succeeded(now_ms());
                    shared.due_watch.found.send_replace(found);
                }
                Err(error) if shared.access.store_fault.takes(&error) => {}
                Err(error) => {
                    if fault.failed(Weight::Lasting, now_ms()) {
                        tracing::warn!(%error, "due posts could not be looked for; trying again");
                    }
                }
            }
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Corrects due times that a wrong clock set, of this process or another one.
struct TimesAhead {
    clocks: ClockWatch,
    looks: Looks,
}

/// The next look for times ahead, ms by the process's monotonic clock. Claims that were under way at a step are saved after
/// it, with times of the clock as it was, so looks follow each other soon at first, and hourly in the end.
struct Looks {
    next_ms: i64,
    pause_ms: i64,
}

impl Looks {
    const fn from(steady_ms: i64) -> Self {
        Self {
            next_ms: steady_ms,
            pause_ms: TIMES_RETRY_MS,
        }
    }

    fn succeeded(&mut self, steady_ms: i64) {
        self.next_ms = steady_ms.saturating_add(self.pause_ms);
        self.pause_ms = self.pause_ms.saturating_mul(2).min(TIMES_EVERY_MS);
    }

    fn failed(&mut self, steady_ms: i64) {
        self.next_ms = steady_ms.saturating_add(TIMES_RETRY_MS);
    }
}

impl TimesAhead {
    fn new() -> Self {
        let reading = read_clocks();
        Self {
            clocks: ClockWatch::new(reading),
            looks: Looks::from(reading.steady_ms),
        }
    }

    /// Corrects them if the clock was set since the last call, and at each look if some process's was ahead.
    async fn correct(&mut self, shared: &Shared) {
        let reading = read_clocks();
        let has_step = self.clocks.step_ms(reading).saturating_abs() > MAX_SKEW_MS;
        if has_step {
            self.looks = Looks::from(reading.steady_ms);
        } else if reading.steady_ms < self.looks.next_ms {
            return;
        }
        match correct_times_ahead_of_all(shared, has_step).await {
            Ok(()) => self.looks.succeeded(reading.steady_ms),
            Err(error) => {
                shared.access.store_fault.failed(&error);
                self.looks.failed(reading.steady_ms);
            }
        }
    }
}

async fn correct_times_ahead_of_all(shared: &Shared, has_step: bool) -> Result<(), StoreError> {
    let now = now_ms();
    let ahead = shared.store.read(move |tx| has_times_ahead(tx, now));
    if !has_step && !ahead.await? {
        return Ok(());
    }
    for instance in shared.store.read(source::instances).await? {
        let (id, mut above) = (instance.id, Some(i64::MIN));
        while let Some(from) = above {
            let correct = move |tx: &mut Tx<'_>| correct_times_ahead(tx, id, from, now_ms());
            above = shared.store.write(instance::root(id), correct).await?;
        }
    }
    Ok(())
}

const LOOK_EVERY: Duration = Duration::from_secs(1);
const TIMES_EVERY_MS: i64 = 3_600_000;
const TIMES_RETRY_MS: i64 = 10_000;
/// Beyond the next look.
const AHEAD_MS: i64 = 2_000;
/// Workers that nobody wakes look for themselves.
const MAX_SLEEP_MS: i64 = 300_000;

#[cfg(test)]
mod tests {
    use driftline_db::testing::{Fresh, databases};
    use driftline_store::refresh::{Shards, next_due_ms};
    use tokio::time::timeout;

    use super::{super::testing::World, *};

    #[test]
    fn looks_follow_a_step_soon_and_come_hourly_in_the_end() {
        let mut looks = Looks::from(0);
        let mut at_s = Vec::new();
        for _ in 0..16 {
            at_s.push(looks.next_ms / 1_000);
            looks.succeeded(looks.next_ms);
        }
        assert_eq!(at_s[..6], [0, 10, 30, 70, 150, 310]);
        assert_eq!(at_s[15] - at_s[14], 3_600);
    }

    /// Sooner than the lease ends.
    const SOON: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_sleeping_worker_notices_what_another_process_makes_due() {
        let world = World::on(Fresh::postgres().target).await;
        world.name_posts(&["1"]).await;
        let (instance, shared) = (world.instance().await.id, &world.shared);
        // It is in a lease: what is left is not due.
        let _claim = world.claim().await;
        let looking = tokio::spawn(look(Arc::clone(shared)));
        let wake = async {
            while !shared.due_watch.is_asleep(instance) {
                tokio::task::yield_now().await;
            }
            world.name_posts(&["2"]).await;
        };
        let sleep = shared.due_watch.sleep(instance, i64::MAX);
        let both = async { tokio::join!(sleep, wake) };
        timeout(SOON, both).await.unwrap();
        assert!(!shared.due_watch.is_asleep(instance));
        shared.stop.send_replace(true);
        looking.await.unwrap();
        shared.store.close().await;
    }

    #[tokio::test]
    async fn a_look_finds_the_first_due_time_and_the_end_of_a_lease() {
        for fresh in databases() {
            let world = World::on(fresh.target.clone()).await;
            world.name_posts(&["1", "2", "3"]).await;
            let (instance, store) = (world.instance().await.id, &world.shared.store);
            let first = async |until_ms: i64| {
                let times = (now_ms(), until_ms);
                let found = store
                    .read(move |tx| due_by(tx, &[(instance, Shards::ALL)], times))
                    .await;
                found.unwrap().get(&instance).copied()
            };
            let next = async || {
                let next = store.read(move |tx| next_due_ms(tx, instance, Shards::ALL, now_ms()));
                next.await.unwrap()
            };
            let due_ms = next().await.unwrap();
            assert_eq!(first(i64::MAX).await, Some(due_ms));
            assert_eq!(first(due_ms).await, Some(due_ms));
            assert_eq!(first(due_ms - 1).await, None);
            if fresh.name == "PostgreSQL" {
                // Nothing is left but a lease of half a minute.
                let _claim = world.claim().await;
                let end_ms = first(i64::MAX).await.unwrap();
                assert!((end_ms - next().await.unwrap()).abs() < 5_000);
                assert_eq!(first(now_ms()).await, None);
            }
            store.close().await;
        }
    }
}
