//! The commands of the command line on a store, in this process or, while a server holds the data
//! folder, through the server's local socket.

mod credentials;
mod export;
mod fresh;
mod histories;
mod host;
mod reason;
mod sources;

use driftline_core::{api::Api, timeline::Settings, tracking::Track, upstream_id::UpstreamId};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    CommitMachine, Store, StoreError, commit_machine, machine,
    source::{self, Source},
    source_lease,
};
use driftline_upstream::abilities;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use driftline_mirror::{
    CompletenessReport, Pollers, completeness_report, request_fill, track, tracked_posts,
};

pub use credentials::{AddCredential, Token};
pub use host::Host;

/// A command on a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Add a source.
    Add(Box<AddSource>),
    /// Test a source before it is added: request its timeline once.
    Check(Box<AddSource>),
    /// List the sources with their states.
    List,
    /// Stop reading a source until it is resumed.
    Pause {
        /// Its name.
        name: String,
    },
    /// Read a source again.
    Resume {
        /// Its name.
        name: String,
    },
    /// Remove a source and the posts that no other source has.
    Remove {
        /// Its name.
        name: String,
    },
    /// Report on a source's completeness.
    Verify {
        /// Its name.
        name: String,
    },
    /// Fill an open gap.
    Fill {
        /// The source's name.
        name: String,
        /// The gap's lowest ID, as a report shows it.
        gap: String,
    },
    /// Add a credential.
    CredentialAdd(Box<AddCredential>),
    /// List the credentials with their remaining quotas.
    CredentialList,
    /// Test a credential: ask its upstream for the account.
    CredentialTest {
        /// Its name.
        name: String,
    },
    /// Remove a credential.
    CredentialRemove {
        /// Its name.
        name: String,
    },
    /// Show the state of refreshing.
    RefreshStatus,
    /// Show the refresh state of a post, and the reason for its due time.
    Why {
        /// The post's ID, address or INSTANCE/ID.
        post: String,
    },
    /// Show a post's counts over time, its edits and its deletion.
    History {
        /// The post's ID, address or INSTANCE/ID.
        post: String,
    },
    /// A page of count histories.
    Histories {
        /// The instance, if the store knows several.
        instance: Option<String>,
        /// Only posts that were created since, Unix ms.
        since_ms: i64,
        /// Only posts after the one of this ID.
        after: u64,
        /// The page size in posts.
        limit: u32,
    },
    /// Track posts by their IDs.
    Track(Box<Track>),
    /// Count the tracked posts of an instance by state.
    Tracked {
        /// The instance.
        instance: String,
    },
    /// A page of entries in order of arrival.
    Export {
        /// The source's name.
        name: String,
        /// Only entries that arrived after the one of this number.
        after: i64,
        /// Only entries stored at or after this time, Unix ms.
        since_ms: Option<i64>,
        /// The page size in entries.
        limit: u32,
    },
}

/// A source to add.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddSource {
    /// Its name; made from the address and the timeline if not given.
    pub name: Option<String>,
    /// The server's address as the operator typed it.
    pub address: String,
    /// The API that it speaks.
    pub api: Api,
    /// The timeline as the operator typed it.
    pub timeline: String,
    /// The environment variable that holds the token.
    pub token_env: Option<String>,
    /// The file that holds the token.
    pub token_file: Option<String>,
    /// The source's settings.
    pub settings: Settings,
}

/// Executes a command. The answer is what `--json` prints.
///
/// # Errors
/// [`CommandError`]: nothing was changed.
pub async fn execute(host: &Host, command: Command) -> Result<Value, CommandError> {
    let (store, pollers) = (&host.store, host.pollers.as_ref());
    match command {
        Command::CredentialAdd(new) => credentials::add(host, *new).await,
        Command::CredentialList => credentials::list(host).await,
        Command::CredentialTest { name } => credentials::test(host, &name).await,
        Command::CredentialRemove { name } => credentials::remove(store, &name).await,
        Command::RefreshStatus => fresh::status(host).await,
        Command::Why { post } => fresh::why(host, &post).await,
        Command::History { post } => fresh::history(store, &post).await,
        Command::Histories {
            instance,
            since_ms,
            after,
            limit,
        } => histories::page(store, instance.as_deref(), since_ms, after, limit).await,
        Command::Track(request) => {
            let policies = host.access.as_ref().map(|access| access.policies.clone());
            let result = track(store, &policies.unwrap_or_default(), *request).await?;
            serde_json::to_value(result).map_err(CommandError::failed)
        }
        Command::Tracked { instance } => {
            let posts = tracked_posts(store, &instance).await?;
            serde_json::to_value(posts).map_err(CommandError::failed)
        }
        Command::Add(new) => sources::add(store, *new).await,
        Command::Check(new) => sources::check(host, *new).await,
        Command::List => sources::list(host).await,
        Command::Pause { name } => pause(store, pollers, &name, true).await,
        Command::Resume { name } => pause(store, pollers, &name, false).await,
        Command::Remove { name } => remove(store, pollers, &name).await,
        Command::Verify { name } => verify(store, pollers, &name).await,
        Command::Fill { name, gap } => fill(store, pollers, &name, &gap).await,
        Command::Export {
            name,
            after,
            since_ms,
            limit,
        } => export::page(store, &name, after, since_ms, limit).await,
    }
}

/// The source of that name.
///
/// # Errors
/// [`CommandError`] if there is none.
pub async fn find(store: &Store, name: &str) -> Result<Source, CommandError> {
    let name_owned = name.to_owned();
    store
        .read(move |tx| source::by_name(tx, &name_owned))
        .await?
        .ok_or_else(|| {
            CommandError::usage(format!(
                "there is no source named {name:?}; `driftline source list` shows the names"
            ))
        })
}

/// The current report of a source, from its running session if there is one.
///
/// # Errors
/// [`CommandError`] if there is no such source.
pub async fn report_on(
    store: &Store,
    pollers: Option<&Pollers>,
    name: &str,
) -> Result<CompletenessReport, CommandError> {
    let source = find(store, name).await?;
    let id = source.id;
    let (counts, stored) = store
        .read(move |tx| {
            Ok::<_, StoreError>((
                driftline_store::completeness::counts(tx, id)?,
                machine::load(tx, id)?,
            ))
        })
        .await?;
    let mut machine = stored;
    if let Some(pollers) = pollers
        && let Some(progress) = pollers
            .progress()
            .await
            .into_iter()
            .find(|progress| progress.source.id == id)
    {
        machine = (*progress.machine).clone();
    }
    Ok(completeness_report(
        &source,
        &machine,
        &counts,
        abilities(source.instance.api),
        pollers.is_some_and(Pollers::refreshes),
        now_ms(),
    ))
}

async fn pause(
    store: &Store,
    pollers: Option<&Pollers>,
    name: &str,
    paused: bool,
) -> Result<Value, CommandError> {
    let id = find(store, name).await?.id;
    let changed = store
        .write(source::root(id), move |tx| {
            if paused {
                source::pause(tx, id)
            } else {
                source::resume(tx, id)
            }
        })
        .await?;
    if paused && let Some(pollers) = pollers {
        pollers.release(id).await;
    }
    Ok(json!({ "name": name, "paused": paused, "changed": changed }))
}

async fn remove(
    store: &Store,
    pollers: Option<&Pollers>,
    name: &str,
) -> Result<Value, CommandError> {
    pause(store, pollers, name, true).await?;
    let id = find(store, name).await?.id;
    let removed = store
        .write(source::root(id), move |tx| source::remove(tx, id, now_ms()))
        .await?;
    Ok(json!({ "name": name, "entries": removed.entries, "posts": removed.posts }))
}

async fn verify(
    store: &Store,
    pollers: Option<&Pollers>,
    name: &str,
) -> Result<Value, CommandError> {
    let report = report_on(store, pollers, name).await?;
    serde_json::to_value(report).map_err(CommandError::usage)
}

async fn fill(
    store: &Store,
    pollers: Option<&Pollers>,
    name: &str,
    gap: &str,
) -> Result<Value, CommandError> {
    let id = find(store, name).await?.id;
    let low = UpstreamId::new(gap);
    let requested = match pollers {
        Some(pollers) => pollers.fill(id, low.clone()).await,
        None => None,
    };
    let requested = match requested {
        Some(requested) => requested,
        None => request_fill_in_store(store, id, low).await?,
    };
    if requested {
        Ok(json!({ "name": name, "gap": gap, "wanted": true }))
    } else {
        Err(CommandError::usage(format!(
            "{name} has no open gap that begins at {gap:?}; `driftline source verify {name}` lists them"
        )))
    }
}

/// Under a lease of its own, so that no session overwrites the request.
async fn request_fill_in_store(
    store: &Store,
    id: driftline_store::SourceId,
    low: UpstreamId,
) -> Result<bool, CommandError> {
    let requested = store
        .write(source::root(id), move |tx| {
            let Some(lease) = source_lease::claim(tx, id, "command line", 1)? else {
                return Ok(None);
            };
            let mut machine = machine::load(tx, id)?;
            let requested = request_fill(&mut machine, &low);
            if requested {
                commit_machine(
                    tx,
                    &CommitMachine {
                        source: id,
                        fence: Some(lease.fence),
                        machine: &machine,
                    },
                )?;
            }
            source_lease::release(tx, &lease)?;
            Ok::<_, StoreError>(Some(requested))
        })
        .await?;
    requested.ok_or_else(|| CommandError {
        message: "another process reads this source; run the command on that server, with its --data folder"
            .into(),
        usage: false,
    })
}
