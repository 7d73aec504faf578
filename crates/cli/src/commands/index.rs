//! `index`: the search index.

use clap::Subcommand;
use driftline_server::admin::{PlanIndexRebuild, RebuildIndex};
use serde::Serialize;
use tokio::sync::watch;

use crate::{
    config::Config,
    error::CliError,
    output,
    progress::{End, Progress},
    shown::count,
    stop,
    store_access::{self, Missing, StoreAccess},
};

/// Commands for the search index.
#[derive(Debug, Subcommand)]
pub enum Index {
    /// Make the searchable texts of stored posts that lack them, or whose texts an earlier version made, and have
    /// posts indexed that the search index lacks.
    ///
    /// It works while `serve` or `mirror` runs, and without, in many short transactions. Posts that have
    /// their texts are skipped: run it again if it is cut short.
    Rebuild,
}

/// The result of a rebuild.
#[derive(Debug, Default, Serialize)]
struct Rebuilt {
    posts: u64,
    texts: u64,
}

impl Index {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let Self::Rebuild = self;
        let stop = stop::on_signal()?;
        let rebuilt = store_access::with(config, Missing::Refuse, async |access| {
            rebuild(access, &stop).await
        });
        output::reply(json, &rebuilt.await?, lines)
    }
}

async fn rebuild(
    access: &mut StoreAccess,
    stop: &watch::Receiver<bool>,
) -> Result<Rebuilt, CliError> {
    let plan = access.execute(PlanIndexRebuild).await?;
    let mut progress = Progress::start(End::Count(plan.posts));
    let mut rebuilt = Rebuilt::default();
    let mut after = None;
    loop {
        let portion = access.execute(RebuildIndex { after }).await?;
        rebuilt.posts += portion.posts;
        rebuilt.texts += portion.texts;
        after = portion.next;
        if after.is_none() {
            return Ok(rebuilt);
        }
        progress.show(rebuilt.posts, "post", || {
            vec![format!("{} written", count(rebuilt.texts, "text"))]
        });
        if *stop.borrow() {
            return Err(CliError::Interrupted(format!(
                "interrupted: {}; run the command again for the others",
                summary(&rebuilt)
            )));
        }
    }
}

fn lines(rebuilt: &Rebuilt) -> Vec<String> {
    vec![summary(rebuilt)]
}

fn summary(rebuilt: &Rebuilt) -> String {
    let (posts, texts) = (count(rebuilt.posts, "post"), count(rebuilt.texts, "text"));
    format!("{posts} read, {texts} written")
}
