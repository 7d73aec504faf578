//! Commits of pages while the keeper of the index runs or not, and how far the index lags behind commits.

use std::{
    thread,
    time::{Duration, Instant},
};

use driftline_runtime::IndexBacklog;
use driftline_server::index_keeper::{index_all, keep_indexed};
use driftline_store::{Store, search};
use tokio::{runtime::Runtime, sync::watch, task::JoinHandle};

use super::{
    Site,
    fill::{Feed, Shown, at_ms, origin},
};
use crate::{
    Effort,
    failure::Failure,
    ingest::new_source,
    rounds::{Pairs, Times},
    table::{Table, met},
};

/// The tables of both measurements.
pub(super) struct Tables {
    commits: Table,
    lag: Table,
}

impl Tables {
    pub(super) fn new() -> Tables {
        let (commits, lag) = (PAGES, BATCHES);
        Tables {
            commits: Table::new(
                format!(
                    "find: commits of {} posts, one each {:?}",
                    commits.posts, commits.every
                ),
                "database | posts | with the keeper p50, ms | p99 | without p50 | p99 | ratio of p50 | target | met",
            ),
            lag: Table::new(
                format!(
                    "find: commits of {} posts, one each {:?}: from the commit until no post waits for the index",
                    lag.posts, lag.every
                ),
                "database | posts | commits | posts/s | p50, ms | p99 | target | met",
            ),
        }
    }

    /// Commits to a filled store.
    pub(super) fn measure(
        &mut self,
        name: &str,
        site: &Site,
        effort: Effort,
    ) -> Result<(), Failure> {
        let (pages, batches) = if effort.quick { (10, 25) } else { (30, 150) };
        let (store, posts) = (&site.store, site.corpus.posts);
        let runtime = Runtime::new()?;
        let mut live = Live {
            feed: Feed::start(
                store,
                &site.corpus,
                SERVER,
                new_source("live", &origin(SERVER)),
            )?,
            next: 2 * posts,
        };
        let mut times = Pairs::new();
        for _ in 0..effort.rounds(5) {
            times.round([true, false], |is_kept| {
                let keeper = is_kept.then(|| Keeper::start(&runtime, store));
                let times = live.paced(pages, PAGES, |_| Ok(()))?;
                if let Some(keeper) = keeper {
                    keeper.stop(&runtime)?;
                }
                let (_stop, is_stopped) = watch::channel(false);
                runtime.block_on(index_all(store, &IndexBacklog::default(), &is_stopped))?;
                Ok(Times::of(times))
            })?;
        }
        self.commits
            .times(format!("{name} | {posts}"), &times, f64::INFINITY);
        let keeper = Keeper::start(&runtime, store);
        let (start, mut lags, mut open) = (Instant::now(), Vec::new(), Vec::new());
        live.paced(batches, BATCHES, |until| {
            open.push(Instant::now());
            loop {
                if store.read_blocking(|tx| search::pending(tx, 1))? == 0 {
                    lags.extend(open.drain(..).map(|at| at.elapsed()));
                }
                if Instant::now() >= until {
                    return Ok(());
                }
                thread::sleep(Duration::from_millis(1));
            }
        })?;
        let per_s = (batches * BATCHES.posts) as f64 / start.elapsed().as_secs_f64();
        // The last ones.
        while store.read_blocking(|tx| search::pending(tx, 1))? > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        lags.extend(open.drain(..).map(|at| at.elapsed()));
        keeper.stop(&runtime)?;
        let (commits, lags) = (lags.len(), Times::of(lags));
        self.lag.row(format!(
            "{name} | {posts} | {commits} | {per_s:.0} | {:.1} | {:.1} | p99 < {LAG_MS} | {}",
            lags.p50,
            lags.p99,
            met(lags.p99 < LAG_MS)
        ));
        Ok(())
    }

    pub(super) fn print(&self) {
        self.commits.print();
        self.lag.print();
    }
}

/// New posts of a source.
struct Live<'c> {
    feed: Feed<'c>,
    next: u64,
}

/// A steady rate of commits.
#[derive(Clone, Copy)]
struct Pace {
    posts: u64,
    every: Duration,
}

impl Live<'_> {
    /// Returns how long each commit took. `then` runs after each; the next commit is due at the moment that it gets.
    fn paced(
        &mut self,
        commits: u64,
        pace: Pace,
        mut then: impl FnMut(Instant) -> Result<(), Failure>,
    ) -> Result<Vec<Duration>, Failure> {
        let (mut due, mut times) = (Instant::now(), Vec::new());
        for _ in 0..commits {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            due += pace.every;
            let numbers = self.next..self.next + pace.posts;
            self.next = numbers.end;
            let posts = numbers.map(|number| Shown {
                at_ms: at_ms(number),
                number,
            });
            times.push(self.feed.commit(&posts.collect::<Vec<_>>())?);
            then(due)?;
        }
        Ok(times)
    }
}

/// The running keeper of the index.
struct Keeper {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Keeper {
    fn start(runtime: &Runtime, store: &Store) -> Keeper {
        let (stop, is_stopped) = watch::channel(false);
        let task = runtime.spawn(keep_indexed(
            store.clone(),
            IndexBacklog::default(),
            is_stopped,
        ));
        Keeper { stop, task }
    }

    fn stop(self, runtime: &Runtime) -> Result<(), Failure> {
        let _ = self.stop.send(true);
        Ok(runtime.block_on(self.task)?)
    }
}

/// No private source has this server.
const SERVER: u64 = 1_000;
const PAGES: Pace = Pace {
    posts: 40,
    every: Duration::from_millis(100),
};
/// 50 posts/s.
const BATCHES: Pace = Pace {
    posts: 10,
    every: Duration::from_millis(200),
};
const LAG_MS: f64 = 2_000.0;
