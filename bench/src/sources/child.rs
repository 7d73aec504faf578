//! The measured process: Driftline's pollers, or a bare loop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::Args;
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

use crate::{
    failure::Failure,
    ingest,
    process::{self, Side, TOKEN_VARIABLE},
};

/// What the process takes.
#[derive(Debug, Args)]
pub(crate) struct ChildOptions {
    side: Side,
    url: String,
    sources: u16,
}

/// Polls, says so, goes on until standard input ends, and says how many posts came.
pub(crate) fn run(options: &ChildOptions) -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let posts = match options.side {
        Side::Driftline => {
            let folder = tempfile::tempdir()?;
            let store = Store::open(Target::Sqlite {
                path: folder.path().join("bench.db"),
            })?;
            add_sources(&store, options)?;
            let posts = runtime.block_on(driftline(store.clone()))?;
            store.close_blocking();
            posts
        }
        Side::Bare => runtime.block_on(bare(options))?,
    };
    println!("{posts}");
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

fn add_sources(store: &Store, options: &ChildOptions) -> Result<(), Failure> {
    for number in 1..=options.sources {
        let new = NewSource {
            timeline: format!("list:{number}"),
            settings: Settings {
                every_ms: EVERY_MS,
                backfill: Backfill::None,
                ..Settings::default()
            },
            token: Some(TokenLocation::Environment(TOKEN_VARIABLE.to_owned())),
            ..ingest::new_source(&format!("list-{number}"), &options.url)
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
        let Ok(statuses) = page(client.get(address)).await else {
            continue;
        };
        posts.fetch_add(statuses.len() as u64, Ordering::Relaxed);
        let first = statuses.into_iter().next();
        newest = first.map(|status| status.id).or(newest);
    }
}

async fn page(request: reqwest::RequestBuilder) -> Result<Vec<Status>, Failure> {
    let answer = request.bearer_auth("bench").send().await?;
    Ok(serde_json::from_slice(&answer.bytes().await?)?)
}

async fn input_ended() -> Result<(), Failure> {
    tokio::task::spawn_blocking(process::until_input_ends).await?
}

const EVERY_MS: i64 = 1_000;
