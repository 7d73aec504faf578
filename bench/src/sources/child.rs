//! The measured process: Driftline's pollers, or a bare loop.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::{Args, ValueEnum};
use driftline_core::timeline::{Backfill, Settings};
use driftline_mirror::{Pollers, PollersOptions, UpstreamAccess};
use driftline_net::{Http, Options};
use driftline_store::{
    Store, Target, local_ids,
    source::{self, NewSource, TokenLocation},
};
use serde::Deserialize;
use tokio::{
    runtime::Runtime,
    time::{MissedTickBehavior, interval},
};

use crate::failure::Failure;

/// What the process takes.
#[derive(Debug, Args)]
pub(crate) struct ChildOptions {
    kind: Kind,
    url: String,
    sources: u16,
}

/// Which poller.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    /// The server's pollers on a SQLite store.
    Driftline,
    /// Tasks that ask from the newest ID, read the JSON and keep nothing.
    Bare,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Driftline => "driftline",
            Self::Bare => "bare",
        }
    }
}

/// Polls, says so, goes on until standard input ends, and says how many posts came.
pub(crate) fn run(options: &ChildOptions) -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let posts = match options.kind {
        Kind::Driftline => {
            let folder = tempfile::tempdir()?;
            let store = Store::open(Target::Sqlite {
                path: folder.path().join("bench.db"),
            })?;
            add_sources(&store, options)?;
            let posts = runtime.block_on(driftline(store.clone()))?;
            store.close_blocking();
            posts
        }
        Kind::Bare => runtime.block_on(bare(options))?,
    };
    println!("{posts}");
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

fn add_sources(store: &Store, options: &ChildOptions) -> Result<(), Failure> {
    for number in 1..=options.sources {
        let new = NewSource {
            name: format!("list-{number}"),
            origin: options.url.clone(),
            api: driftline_core::api::Api::Mastodon,
            timeline: format!("list:{number}"),
            upstream: options.url.clone(),
            settings: Settings {
                every_ms: EVERY_MS,
                backfill: Backfill::None,
                ..Settings::default()
            },
            token: Some(TokenLocation::Environment(TOKEN_VARIABLE.to_owned())),
            allow_private: false,
            owner: driftline_store::Owner::Operator,
            audience: driftline_core::audience::Audience::Public,
        };
        let added = store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, 0))?;
        added.map_err(|_| Failure::new("a source's name is refused"))?;
    }
    Ok(())
}

async fn driftline(store: Store) -> Result<u64, Failure> {
    let http = Http::new(Options {
        allow_private: true,
        ..Options::default()
    })?;
    let pollers = Pollers::start(
        store.clone(),
        UpstreamAccess::new(&store, http),
        PollersOptions::new("bench"),
    );
    println!("ready");
    input_ended().await?;
    let progress = pollers.progress().await;
    pollers.stop().await;
    Ok(progress.iter().map(|p| p.machine.counters().stored).sum())
}

async fn bare(options: &ChildOptions) -> Result<u64, Failure> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let posts = Arc::new(AtomicU64::new(0));
    for number in 1..=options.sources {
        let url = format!("{}/api/v1/timelines/list/{number}?limit=40", options.url);
        tokio::spawn(poll(client.clone(), url, Arc::clone(&posts)));
    }
    println!("ready");
    input_ended().await?;
    Ok(posts.load(Ordering::Relaxed))
}

#[derive(Deserialize)]
struct Status {
    id: String,
}

async fn poll(client: reqwest::Client, url: String, posts: Arc<AtomicU64>) {
    let mut ticks = interval(Duration::from_millis(EVERY_MS.unsigned_abs()));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut newest: Option<String> = None;
    loop {
        ticks.tick().await;
        let since = newest.as_ref().map(|id| format!("&since_id={id}"));
        let address = format!("{url}{}", since.unwrap_or_default());
        let request = client.get(address).bearer_auth("bench");
        let Ok(answer) = request.send().await else {
            continue;
        };
        let Ok(body) = answer.bytes().await else {
            continue;
        };
        let Ok(statuses) = serde_json::from_slice::<Vec<Status>>(&body) else {
            continue;
        };
        posts.fetch_add(statuses.len() as u64, Ordering::Relaxed);
        newest = statuses
            .into_iter()
            .next()
            .map(|status| status.id)
            .or(newest);
    }
}

async fn input_ended() -> Result<(), Failure> {
    let ended = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink()));
    ended.await??;
    Ok(())
}

pub(super) const TOKEN_VARIABLE: &str = "DRIFTLINE_BENCH_TOKEN";
const EVERY_MS: i64 = 1_000;
