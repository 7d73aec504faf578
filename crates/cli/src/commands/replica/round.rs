//! One round of syncing: what `pull`, `push`, `sync` and `watch` share.

use clap::Args;
use driftline_replica::{
    Direction, Replica, ReplicaError, Retries, SyncContext, SyncProgress, SyncReport,
};
use driftline_runtime::now_ms;

use crate::{
    consent::Consent,
    error::CliError,
    output,
    progress::{End, Progress},
    shown::count,
};

/// The arguments of `pull`, `push` and `sync`, which sync once with a few tries of each request.
#[derive(Debug, Args)]
pub struct Round {
    /// Agree to a mass deletion: do not ask before most of a library is removed here.
    #[arg(long)]
    yes: bool,
}

impl Round {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(
        self,
        replica: &Replica,
        direction: Direction,
        json: bool,
    ) -> Result<(), CliError> {
        let run = async |agreed| sync(replica, direction, Retries::few(), agreed, usize::MAX).await;
        let consent = Consent::of(self.yes);
        output::reply(json, &with_consent(consent, run).await?, lines)
    }
}

/// Runs what a mass deletion may stop. If it does, asks a person, and runs it again with the argument `true`.
///
/// # Errors
/// [`CliError`] if the person does not agree, and the error of `run`.
pub async fn with_consent<T>(
    consent: Consent,
    run: impl AsyncFn(bool) -> Result<T, ReplicaError>,
) -> Result<T, CliError> {
    let mut may_remove_many = consent.is_given();
    loop {
        match run(may_remove_many).await {
            Err(ReplicaError::ManyRemoved {
                library,
                removed,
                all,
            }) if !may_remove_many => {
                consent.ask(&format!(
                    "the server lacks {removed} of the {all} objects of {library}, which would be removed here"
                ))?;
                may_remove_many = true;
            }
            done => return Ok(done?),
        }
    }
}

/// Syncs once, and shows the progress.
///
/// # Errors
/// [`ReplicaError`] if the token cannot be read, or the replica cannot be synced.
pub async fn sync(
    replica: &Replica,
    direction: Direction,
    retries: Retries,
    may_remove_many: bool,
    max_indexed: usize,
) -> Result<SyncReport, ReplicaError> {
    let client = replica.client(retries)?;
    let mut shown = Progress::start(End::Unknown);
    let mut progress = |of: &SyncProgress| {
        let done = u64::try_from(of.pulled + of.pushed).unwrap_or(u64::MAX);
        if let Some(left) = of.objects_left.filter(|left| *left > 0) {
            shown.set_estimate(done.saturating_add(left));
        }
        shown.show(done, "object", || {
            let indexed = format!("indexed {}", counted(of.indexed, "post"));
            vec![indexed, count(of.requests, "request")]
        });
    };
    let mut random = random;
    let mut context = SyncContext {
        may_remove_many,
        max_indexed,
        progress: Some(&mut progress),
        ..SyncContext::new(now_ms(), &mut random)
    };
    replica.sync(&client, &mut context, direction).await
}

/// 128 random bits.
pub fn random() -> u128 {
    let half = || u128::from(driftline_runtime::random());
    (half() << 64) | half()
}

/// A number of things in words.
fn counted(number: usize, thing: &str) -> String {
    count(u64::try_from(number).unwrap_or(u64::MAX), thing)
}

/// A round in words: a line, and others about the index, unsent changes and conflicts.
pub fn lines(of: &SyncReport) -> Vec<String> {
    let objects = |number: usize| counted(number, "object");
    let mut lines = vec![format!(
        "fetched {}, removed {}, sent {}",
        objects(of.work.pulled),
        objects(of.work.removed),
        objects(of.work.pushed)
    )];
    if of.work.indexed > 0 {
        let posts = counted(of.work.indexed, "post");
        lines.push(format!("indexed {posts} for searches"));
    }
    if of.dirty > 0 {
        lines.push(format!("{} of this device not sent yet", objects(of.dirty)));
    }
    if of.open_conflicts > 0 {
        let conflicts = counted(of.open_conflicts, "conflict");
        lines.push(format!(
            "{conflicts} to be resolved; `driftline replica conflicts` lists them"
        ));
    }
    lines
}
