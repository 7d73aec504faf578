use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use super::world::{HistoryReader, World};
use driftline_core::refresh::{
    Cause, Due, EngagementSums, Policy, QuotaPrice, QuotaUse, RefreshHistory, RefreshPlan, Scale,
    ValuePolicy,
};

/// The requests that an upstream allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// Posts in a request.
    pub batch: usize,
    /// The time between two requests, ms.
    pub every_ms: i64,
    /// The periods without quota, Unix ms.
    pub outages: Vec<(i64, i64)>,
}

/// The results of a policy in a world.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyOutcome {
    /// The integral over time and posts of the difference between true and stored engagement,
    /// hours.
    pub unseen_h: f64,
    /// Posts looked up.
    pub refreshes: u64,
    /// Posts looked up by each request that the quota allowed, including those in outages.
    pub requests: Vec<u32>,
    /// The longest time between two looks at a post below the age of retirement, ms.
    pub longest_ms: i64,
    /// How old counts were between two looks, over time and posts, ms.
    pub mean_age_ms: i64,
    /// The price of a refresh that it ended with, count-hours.
    pub price: f64,
    /// The stretch that it ended with.
    pub stretch: f64,
}

/// Refreshes a world's posts from Unix ms 0 to `until_ms`, each request with no more posts than
/// the same request of `like` had.
pub fn run(
    world: &World,
    quota: &Quota,
    plan: &RefreshPlan,
    until_ms: i64,
    like: Option<&PolicyOutcome>,
) -> PolicyOutcome {
    let mut policy_run = PolicyRun::new(world, plan);
    let every_ms = quota.every_ms.max(1);
    let mut requests = Vec::new();
    let mut now_ms = every_ms;
    while now_ms < until_ms {
        let is_out = |&(from_ms, to_ms): &(i64, i64)| (from_ms..to_ms).contains(&now_ms);
        let limit = like.map_or(quota.batch, |like| {
            like.requests
                .get(requests.len())
                .map_or(0, |&posts| posts as usize)
        });
        let limit = limit.min(quota.batch);
        let limit = if quota.outages.iter().any(is_out) {
            0
        } else {
            limit
        };
        policy_run.admit(now_ms);
        let posts = policy_run.request(now_ms, limit, quota.batch);
        policy_run.update_prices(now_ms, every_ms, limit);
        requests.push(posts as u32);
        now_ms += every_ms;
    }
    policy_run.close(until_ms);
    PolicyOutcome {
        unseen_h: policy_run.unseen_ms / HOUR_MS,
        refreshes: requests.iter().map(|&posts| u64::from(posts)).sum(),
        requests,
        longest_ms: policy_run.longest_ms,
        mean_age_ms: (policy_run.aged_ms2 / policy_run.lived_ms.max(1.0)) as i64,
        price: policy_run.price.level(),
        stretch: policy_run.stretch.level(),
    }
}

struct PolicyRun<'a> {
    world: &'a World,
    plan: &'a RefreshPlan,
    readers: Vec<HistoryReader>,
    histories: Vec<RefreshHistory>,
    /// Posts by when they are due, as the server's index keeps them.
    queue: BinaryHeap<Reverse<(i64, u32)>>,
    policy: Policy,
    price: QuotaPrice,
    stretch: QuotaPrice,
    sums: EngagementSums,
    scale: Scale,
    used: QuotaUse,
    learned_ms: i64,
    priced_ms: i64,
    unseen_ms: f64,
    longest_ms: i64,
    /// The integral of the counts' age over time and posts, ms squared, and the time itself.
    aged_ms2: f64,
    lived_ms: f64,
}

impl<'a> PolicyRun<'a> {
    fn new(world: &'a World, plan: &'a RefreshPlan) -> Self {
        let mut policy_run = Self {
            world,
            plan,
            readers: Vec::with_capacity(world.len()),
            histories: Vec::with_capacity(world.len()),
            queue: BinaryHeap::new(),
            policy: Policy::default(),
            price: QuotaPrice::of_refresh(),
            stretch: QuotaPrice::of_stretch(),
            sums: EngagementSums::default(),
            scale: Scale::default(),
            used: QuotaUse::default(),
            learned_ms: 0,
            priced_ms: 0,
            unseen_ms: 0.0,
            longest_ms: 0,
            aged_ms2: 0.0,
            lived_ms: 0.0,
        };
        policy_run.set_policy();
        policy_run
    }

    fn set_policy(&mut self) {
        let plan = self.plan;
        let (ages, stretch) = (plan.ages.clone(), self.stretch.level());
        self.policy = match &plan.by_value {
            None => Policy::Table { ages, stretch },
            Some(settings) => Policy::Value {
                ages,
                by: ValuePolicy {
                    settings: settings.clone(),
                    scale: self.scale,
                    sources: BTreeMap::new(),
                    price: self.price.level(),
                    stretch,
                },
            },
        };
    }

    /// Admits the posts that have been stored by now.
    fn admit(&mut self, now_ms: i64) {
        let world = self.world;
        let stored = world.posts()[self.histories.len()..].iter();
        for post in stored.take_while(|post| post.first_stored_ms <= now_ms) {
            let mut reader = HistoryReader::new(world, post);
            let (at_ms, total) = (post.first_stored_ms, reader.look());
            let history = RefreshHistory::stored(Some(post.created_at_ms), at_ms, total);
            self.readers.push(reader);
            let at = self.histories.len() as u32;
            self.histories.push(history);
            self.schedule(at);
        }
    }

    fn schedule(&mut self, post: u32) {
        if let Due::At(due_ms) = self.policy.due(&self.histories[post as usize]) {
            self.queue.push(Reverse((due_ms, post)));
        }
    }

    /// Sends a request if any post is due; returns its number of posts.
    fn request(&mut self, now_ms: i64, limit: usize, batch: usize) -> usize {
        let first = self.queue.peek();
        if limit == 0 || first.is_none_or(|Reverse((due_ms, _))| *due_ms > now_ms) {
            return 0;
        }
        let mut candidates = Vec::with_capacity(CHOICE * batch);
        while candidates.len() < CHOICE * batch {
            let Some(Reverse((due_ms, post))) = self.queue.pop() else {
                break;
            };
            let value = self.policy.value(&self.histories[post as usize], now_ms);
            candidates.push((value, due_ms, post));
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        let mut asked = 0;
        for (value, due_ms, post) in candidates {
            if asked < limit && value > 0.0 {
                asked += 1;
                if value >= 1.0 {
                    self.used.due += 1.0;
                    let (_, cause) = self.policy.due_because(&self.histories[post as usize]);
                    match cause {
                        Cause::Probe => self.used.probes += 1.0,
                        Cause::Bound => self.used.bounds += 1.0,
                        Cause::Age | Cause::Value => {}
                    }
                }
                self.refresh(post, now_ms);
                self.schedule(post);
            } else if due_ms <= now_ms && value < 1.0 {
                self.schedule(post);
            } else {
                self.queue.push(Reverse((due_ms, post)));
            }
        }
        asked
    }

    fn refresh(&mut self, post: u32, now_ms: i64) {
        let (reader, history) = (
            &mut self.readers[post as usize],
            &mut self.histories[post as usize],
        );
        self.unseen_ms += reader.unseen_ms_until(self.world, now_ms);
        let total = reader.look();
        let aged_ms = (now_ms - history.refreshed_ms) as f64;
        self.aged_ms2 += aged_ms * aged_ms / 2.0;
        self.lived_ms += aged_ms;
        self.longest_ms = self.longest_ms.max(now_ms - history.refreshed_ms);
        if let Some(growth) = history.growth(now_ms, total) {
            self.sums.observe(&growth);
        }
        *history = history.refreshed(now_ms, total);
    }

    fn update_prices(&mut self, now_ms: i64, elapsed_ms: i64, offered: usize) {
        self.used.offered += offered as f64;
        if offered > 0 {
            self.used.elapsed_ms += elapsed_ms;
        }
        if now_ms - self.priced_ms >= PRICED_MS {
            let is_due = |Reverse((due_ms, _)): &&Reverse<(i64, u32)>| *due_ms <= now_ms;
            self.used.overdue = self.queue.iter().filter(is_due).count() as f64;
            self.price = self.price.after(&self.used.of_value());
            self.stretch = self.stretch.after(&match self.plan.by_value {
                None => self.used,
                Some(_) => self.used.of_bounds(),
            });
            self.priced_ms = now_ms;
            self.used = QuotaUse::default();
            if now_ms - self.learned_ms >= LEARNED_MS {
                self.learned_ms = now_ms;
                self.learn();
            }
            self.set_policy();
        }
    }

    fn learn(&mut self) {
        self.sums.fade_if_full();
        if let Some(settings) = &self.plan.by_value {
            self.scale = self.sums.scale(Scale::default(), settings.prior_weight);
        }
    }

    fn close(&mut self, until_ms: i64) {
        self.admit(until_ms);
        for reader in &mut self.readers {
            self.unseen_ms += reader.unseen_ms_until(self.world, until_ms);
        }
    }
}

/// The most valuable posts are chosen out of this many batches.
const CHOICE: usize = 4;
const PRICED_MS: i64 = 15 * 60_000;
const LEARNED_MS: i64 = 3_600_000;
const HOUR_MS: f64 = 3_600_000.0;
