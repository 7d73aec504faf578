//! What the command line asks of a store, in this process or, while a server
//! holds the data folder, through the server's local socket.

mod credentials;
mod fresh;
mod histories;
mod host;
mod reason;
mod sources;
mod track;

use driftline_core::{api::Api, timeline::Settings, upstream_id::UpstreamId};
use driftline_store::{
    CommitMachine, Store, StoreError, commit_machine, export, lease, machine,
    source::{self, Source},
    verify,
};
use driftline_upstream::abilities;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{clock::now_ms, pollers::Pollers, report, session::request_fill};

pub use credentials::{AddCredential, Token};
pub use host::Host;
pub use track::{Track, is_usable};

pub(crate) use track::{track, tracked_posts};

/// Something to do with a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Add a source.
    Add(Box<AddSource>),
    /// Ask the upstream of a source that is to be added for its timeline, once.
    Check(Box<AddSource>),
    /// List the sources, and what each is doing.
    List,
    /// Fetch nothing for a source until it is resumed.
    Pause {
        /// Its name.
        name: String,
    },
    /// Fetch for a source again.
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
    /// List the credentials, with what is left of their quotas.
    CredentialList,
    /// Ask a credential's upstream whose it is.
    CredentialTest {
        /// Its name.
        name: String,
    },
    /// Remove a credential.
    CredentialRemove {
        /// Its name.
        name: String,
    },
    /// Tell how refreshing stands.
    RefreshStatus,
    /// Tell where a post stands, and why.
    Why {
        /// What the post is called.
        post: String,
    },
    /// Tell a post's counts over time, its edits and its deletion.
    History {
        /// What the post is called.
        post: String,
    },
    /// How posts grew, a page of them.
    Histories {
        /// The instance, if the store knows several.
        instance: Option<String>,
        /// Only posts created_at since, Unix ms.
        since_ms: i64,
        /// Only posts after the one of this ID.
        after: u64,
        /// The most posts to answer with.
        limit: u32,
    },
    /// Note posts from elsewhere.
    Track(Box<Track>),
    /// Tell how the tracked posts of an instance stand.
    Tracked {
        /// The instance.
        instance: String,
    },
    /// Entries in order of arrival, a page of them.
    Export {
        /// The source's name.
        name: String,
        /// Only entries that arrived after the one of this number.
        after: i64,
        /// Only entries stored at or after this time, Unix ms.
        since_ms: Option<i64>,
        /// The most entries to answer with.
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
    /// What the operator decided.
    pub settings: Settings,
}

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct AdminError {
    /// What was wrong and what to do.
    pub message: String,
    /// Whether the command itself was wrong, so that trying again is no use.
    pub usage: bool,
}

/// Carries a command out. The answer is what `--json` hashes.
///
/// # Errors
/// [`AdminError`]: nothing was changed.
pub async fn execute(host: &Host, command: Command) -> Result<Value, AdminError> {
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
        Command::Track(named) => {
            let policies = host.access.as_ref().map(|access| access.policies.clone());
            track::track(store, &policies.unwrap_or_default(), *named).await
        }
        Command::Tracked { instance } => track::tracked_posts(store, &instance).await,
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
        } => export_page(store, &name, after, since_ms, limit).await,
    }
}

/// The source of that name.
///
/// # Errors
/// [`AdminError`] if there is none.
pub async fn find(store: &Store, name: &str) -> Result<Source, AdminError> {
    let wanted = name.to_owned();
    store
        .read(move |tx| source::by_name(tx, &wanted))
        .await?
        .ok_or_else(|| {
            AdminError::usage(format!(
                "there is no source named {name:?}; `driftline source list` shows the names"
            ))
        })
}

/// The report of a source as it stands, from the running session if there is
/// one.
///
/// # Errors
/// [`AdminError`] if there is no such source.
pub async fn report_on(
    store: &Store,
    pollers: Option<&Pollers>,
    name: &str,
) -> Result<report::Report, AdminError> {
    let source = find(store, name).await?;
    let id = source.id;
    let (counts, stored) = store
        .read(move |tx| Ok::<_, StoreError>((verify::counts(tx, id)?, machine::load(tx, id)?)))
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
    Ok(report::report(
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
) -> Result<Value, AdminError> {
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

async fn remove(store: &Store, pollers: Option<&Pollers>, name: &str) -> Result<Value, AdminError> {
    pause(store, pollers, name, true).await?;
    let id = find(store, name).await?.id;
    let removed = store
        .write(source::root(id), move |tx| source::remove(tx, id, now_ms()))
        .await?;
    Ok(json!({ "name": name, "entries": removed.entries, "posts": removed.posts }))
}

async fn verify(store: &Store, pollers: Option<&Pollers>, name: &str) -> Result<Value, AdminError> {
    let report = report_on(store, pollers, name).await?;
    serde_json::to_value(report).map_err(AdminError::wrong)
}

async fn fill(
    store: &Store,
    pollers: Option<&Pollers>,
    name: &str,
    gap: &str,
) -> Result<Value, AdminError> {
    let id = find(store, name).await?.id;
    let low = UpstreamId::new(gap);
    let wanted = match pollers {
        Some(pollers) => pollers.fill(id, low.clone()).await,
        None => None,
    };
    let wanted = match wanted {
        Some(wanted) => wanted,
        None => request_fill_in_store(store, id, low).await?,
    };
    if wanted {
        Ok(json!({ "name": name, "gap": gap, "wanted": true }))
    } else {
        Err(AdminError::usage(format!(
            "{name} has no open gap that begins at {gap:?}; `driftline source verify {name}` lists them"
        )))
    }
}

/// Under a lease of its own, so that no session overwrites the fill_request.
async fn request_fill_in_store(
    store: &Store,
    id: driftline_store::SourceId,
    low: UpstreamId,
) -> Result<bool, AdminError> {
    let wanted = store
        .write(source::root(id), move |tx| {
            let Some(lease) = lease::claim(tx, id, "command line", 1)? else {
                return Ok(None);
            };
            let mut machine = machine::load(tx, id)?;
            let wanted = request_fill(&mut machine, &low);
            if wanted {
                commit_machine(
                    tx,
                    &CommitMachine {
                        source: id,
                        fence: Some(lease.fence),
                        machine: &machine,
                        now_ms: now_ms(),
                    },
                )?;
            }
            lease::release(tx, &lease)?;
            Ok::<_, StoreError>(Some(wanted))
        })
        .await?;
    wanted.ok_or_else(|| AdminError {
        message: "another process reads this source; ask that server, with its --data folder"
            .into(),
        usage: false,
    })
}

async fn export_page(
    store: &Store,
    name: &str,
    after: i64,
    since_ms: Option<i64>,
    limit: u32,
) -> Result<Value, AdminError> {
    let id = find(store, name).await?.id;
    let rows = store
        .read(move |tx| export::rows(tx, id, after, limit))
        .await?;
    let next = rows.last().map(|row| row.first_usn);
    let rows: Vec<Value> =
        rows.into_iter()
            .filter(|row| since_ms.is_none_or(|since_ms| row.arrived_at_ms >= since_ms))
            .map(|row| {
                let status = row.post.raw.as_deref().and_then(|raw| {
                    serde_json::from_str::<Box<serde_json::value::RawValue>>(raw).ok()
                });
                json!({
                    "id": row.id.to_string(),
                    "post_id": row.post_id.to_string(),
                    "upstream_id": row.post.upstream_id,
                    "arrival": row.first_usn,
                    "usn": row.usn,
                    "arrived_at_ms": row.arrived_at_ms,
                    "created_at_ms": row.post.created_at_ms,
                    "edited_at_ms": row.post.edited_at_ms,
                    "deleted_at_ms": row.post.deleted_at_ms,
                    "visibility": row.post.visibility.name(),
                    "uri": row.post.uri,
                    "url": row.post.url,
                    "status": status,
                })
            })
            .collect();
    Ok(json!({ "rows": rows, "next": next }))
}

impl AdminError {
    fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            usage: true,
        }
    }

    fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            usage: false,
        }
    }

    fn wrong(error: impl std::fmt::Display) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StoreError> for AdminError {
    fn from(error: StoreError) -> Self {
        Self {
            message: error.to_string(),
            usage: false,
        }
    }
}
