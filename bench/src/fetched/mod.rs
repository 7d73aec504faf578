//! `fetched`: posts fetched per post stored, and what is missed, next to the clamp of the seed; in
//! virtual time, so the same on every machine.

mod copy;

use std::collections::{BTreeMap, HashSet};

use driftline_core::{
    timeline::{Backfill, RungStats, Settings},
    upstream_id::UpstreamId,
};
use driftline_sim::{
    Upstream, WorldConfig,
    baseline::{self, Poller, Schedule},
};

use self::copy::{Copy, Reason, Spent};
use crate::{
    Effort,
    failure::Failure,
    rounds::Spread,
    table::{Table, met},
};

/// Runs both pollers over the same worlds.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let minutes = if effort.quick { 5 } else { 60 };
    let seeds: Vec<u64> = (1..=effort.rounds(5) as u64).collect();
    let measured = Scene {
        name: "lateness as measured, 11.6 posts/s, no faults",
        config: WorldConfig::measured(RATE_PER_S),
        moment_ms: 0,
        target: Some(TARGET),
    };
    let hard = Scene {
        name: "0.2 posts/s with every fault, backdated posts, edits, deletions, Mastodon's throttles",
        config: WorldConfig {
            bursts: None,
            ..WorldConfig::hard(0.2)
        },
        moment_ms: MINUTE_MS,
        target: None,
    };
    for scene in [measured, hard] {
        scene.run(minutes, &seeds)?;
    }
    Ok(())
}

/// A kind of world.
struct Scene {
    name: &'static str,
    config: WorldConfig,
    /// A post that was visible for less than this before its deletion need not be had.
    moment_ms: i64,
    target: Option<f64>,
}

/// What a policy did in one world.
struct Outcome {
    posts: u64,
    stored: u64,
    missed: u64,
    fetched: u64,
    /// Requests until a minute after publishing ended.
    live_requests: u64,
    /// What was spent until then, by purpose; empty for a peer.
    live: BTreeMap<Reason, Spent>,
    /// What was spent until the last rung had passed, by purpose; empty for a peer.
    whole: BTreeMap<Reason, Spent>,
    settled: bool,
    plan: Option<String>,
    /// What each rung did, the second look first.
    rung_stats: Vec<RungStats>,
}

impl Scene {
    fn run(&self, minutes: i64, seeds: &[u64]) -> Result<(), Failure> {
        let ours: Vec<Outcome> = seeds.iter().map(|&seed| self.ours(seed, minutes)).collect();
        let mut table = Table::new(
            format!(
                "fetched: {minutes} min, polls every second; {}; {} seeds",
                self.name,
                seeds.len()
            ),
            [
                "policy",
                "posts",
                "missed",
                "fetched/post",
                "requests/s",
                "ours ÷ it",
                "target",
                "met",
            ],
        );
        let seconds = ((minutes * MINUTE_MS + TAIL_MS) / 1000) as f64;
        let row = |name: &str, outcomes: &[Outcome], per_post: fn(&Outcome) -> f64| {
            let of = |figure: &dyn Fn(&Outcome) -> f64, digits| {
                Spread::of(outcomes.iter().map(figure), digits).to_string()
            };
            let both = ours.iter().zip(outcomes);
            let ratios = both.map(|(ours, it)| ours.per_post() / per_post(it));
            [
                name.to_owned(),
                of(&|o| o.posts as f64, 0),
                of(&|o| o.missed as f64, 0),
                of(&per_post, 3),
                of(&|o| o.live_requests as f64 / seconds, 2),
                Spread::of(ratios, 2).to_string(),
                String::new(),
                String::new(),
            ]
        };
        let mut first = row("Driftline, all rungs passed", &ours, Outcome::per_post);
        if let Some(target) = self.target {
            let all_met = ours.iter().all(|o| o.per_post() <= target && o.missed == 0);
            first[6] = format!("<= {target}, 0 missed");
            first[7] = met(all_met);
        }
        table.row(first);
        table.row(row(
            "Driftline, without rungs 1 to 3",
            &ours,
            Outcome::per_post_below_rungs,
        ));
        let peers = seeds.iter().map(|&seed| self.peer(seed, minutes));
        let peers: Vec<Outcome> = peers.collect();
        table.row(row("clamp, k = 1 s", &peers, Outcome::per_post));
        table.print();
        print_purposes(&ours);
        for (seed, outcome) in seeds.iter().zip(&ours) {
            if !outcome.settled {
                return Err(Failure::new(format!(
                    "seed {seed} does not settle in three days"
                )));
            }
            if let Some(plan) = &outcome.plan {
                println!("seed {seed}, the plan when publishing ended: {plan}");
            }
        }
        Ok(())
    }

    fn world(&self, seed: u64, minutes: i64) -> (Upstream, i64, i64) {
        let config = WorldConfig {
            publish_for_ms: Some(minutes * MINUTE_MS),
            ..self.config.clone()
        };
        let start_ms = config.start_ms;
        (
            Upstream::new(config, seed),
            start_ms,
            start_ms + minutes * MINUTE_MS,
        )
    }

    fn ours(&self, seed: u64, minutes: i64) -> Outcome {
        let (mut upstream, start_ms, end_ms) = self.world(seed, minutes);
        let settings = Settings {
            every_ms: EVERY_MS,
            backfill: Backfill::None,
            ..Settings::default()
        };
        let mut copy = Copy::new(settings.clone(), start_ms);
        copy.run(&mut upstream, end_ms);
        let plan = copy
            .machine()
            .plan(&settings, copy::ABILITIES, copy.now_ms());
        copy.run(&mut upstream, end_ms + TAIL_MS);
        let live = copy.spent.clone();
        let live_requests = copy.total().requests;
        let settled = copy.settle(&mut upstream, end_ms + 3 * DAY_MS);
        let fetched = copy.total().fetched;
        let ids = copy.ids();
        let (posts, missed) = self.judge(&mut upstream, copy.now_ms(), &ids);
        for post in upstream
            .truth(copy.now_ms())
            .missing_from(&ids, self.moment_ms)
        {
            println!(
                "seed {seed}, missed: {} dated {} ms after the start, visible {} ms after it, deleted {:?}",
                post.id,
                post.id_time_ms - start_ms,
                post.visible_at_ms - start_ms,
                post.deleted_at_ms.map(|ms| ms - start_ms)
            );
        }
        Outcome {
            posts,
            stored: ids.len() as u64,
            missed,
            fetched,
            live_requests,
            live,
            settled,
            rung_stats: copy.machine().rung_stats().to_vec(),
            whole: copy.spent,
            plan: Some(plan.reasons.join(" ")),
        }
    }

    fn peer(&self, seed: u64, minutes: i64) -> Outcome {
        let mut poller = Poller::clamp(1_000);
        let (mut upstream, start_ms, end_ms) = self.world(seed, minutes);
        let schedule = Schedule {
            from_ms: start_ms,
            until_ms: end_ms + TAIL_MS,
            every_ms: EVERY_MS,
            timeout_ms: 30_000,
        };
        let over_ms = baseline::run(&mut upstream, &mut poller, copy::TOKEN, schedule);
        let (posts, missed) = self.judge(&mut upstream, over_ms, poller.stored());
        Outcome {
            posts,
            stored: poller.stored().len() as u64,
            missed,
            fetched: poller.fetched(),
            live_requests: poller.requests(),
            live: BTreeMap::new(),
            whole: BTreeMap::new(),
            settled: true,
            plan: None,
            rung_stats: Vec::new(),
        }
    }

    /// How many posts there were, and how many of them are not stored.
    fn judge(
        &self,
        upstream: &mut Upstream,
        at_ms: i64,
        stored: &HashSet<UpstreamId>,
    ) -> (u64, u64) {
        let truth = upstream.truth(at_ms);
        let missed = truth.missing_from(stored, self.moment_ms).len();
        (truth.posts.len() as u64, missed as u64)
    }
}

impl Outcome {
    fn per_post(&self) -> f64 {
        self.fetched as f64 / self.stored.max(1) as f64
    }

    /// Polls, gaps and the second look, until a minute after publishing ended.
    fn per_post_below_rungs(&self) -> f64 {
        let below = [Reason::Poll, Reason::Fill, Reason::Look(0)];
        let spent = below.iter().filter_map(|reason| self.live.get(reason));
        spent.map(|spent| spent.fetched).sum::<u64>() as f64 / self.stored.max(1) as f64
    }
}

/// Where ours spends its fetches, summed over the seeds.
fn print_purposes(outcomes: &[Outcome]) {
    let mut table = Table::new(
        "what Driftline fetched for, all seeds together",
        [
            "purpose",
            "requests",
            "failures",
            "fetched",
            "of these new",
            "fetched/post",
            "by the end + 1 min",
            "ranges read",
            "passed over",
        ],
    );
    let stored: u64 = outcomes.iter().map(|o| o.stored).sum();
    let per_post = |fetched: u64| format!("{:.3}", fetched as f64 / stored.max(1) as f64);
    let mut reasons: Vec<Reason> = outcomes
        .iter()
        .flat_map(|o| o.whole.keys().copied())
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let sum =
            |phase: fn(&Outcome) -> &BTreeMap<Reason, Spent>, count: fn(&Spent) -> u64| -> u64 {
                outcomes
                    .iter()
                    .filter_map(|o| phase(o).get(&reason))
                    .map(count)
                    .sum()
            };
        let fetched = sum(|o| &o.whole, |s| s.fetched);
        table.row([
            reason.name(),
            sum(|o| &o.whole, |s| s.requests).to_string(),
            sum(|o| &o.whole, |s| s.failures).to_string(),
            fetched.to_string(),
            sum(|o| &o.whole, |s| s.new).to_string(),
            per_post(fetched),
            per_post(sum(|o| &o.live, |s| s.fetched)),
            ranges(outcomes, reason, |rung| rung.looks),
            ranges(outcomes, reason, |rung| {
                rung.skipped_quota + rung.unreachable
            }),
        ]);
    }
    table.print();
}

/// Of a rung, how many ranges; of other purposes nothing.
fn ranges(outcomes: &[Outcome], reason: Reason, count: fn(&RungStats) -> u64) -> String {
    let Reason::Look(rung) = reason else {
        return String::new();
    };
    let rung_stats = outcomes.iter().filter_map(|o| o.rung_stats.get(rung));
    rung_stats.map(count).sum::<u64>().to_string()
}

const EVERY_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
/// All policies poll on for this long when publishing has ended.
const TAIL_MS: i64 = MINUTE_MS;
/// The rate of the timeline that lateness was measured on.
const RATE_PER_S: f64 = 11.6;
const TARGET: f64 = 2.5;
