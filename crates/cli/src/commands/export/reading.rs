//! Reading what is to be exported, page by page.

use clap::ValueEnum;
use driftline_core::feed::{ChangeKind, ChangeKinds};
use driftline_server::admin::{FeedLine, PostRecord, ReadFeed, ShowHistory};
use serde::{Deserialize, Serialize};

use super::redaction::Deletions;
use crate::{error::CliError, store_access::StoreAccess};

/// A post of a source, or a change of one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// What happened.
    pub event: ChangeKind,
    /// The source's name.
    pub source: String,
    /// The entry and its post.
    #[serde(flatten)]
    pub post: PostRecord,
}

/// A time of a post.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeOf {
    /// When it was stored.
    #[default]
    Stored,
    /// When its author says that it was written.
    Written,
}

/// Which posts are exported, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// From then on, Unix ms.
    pub since_ms: Option<i64>,
    /// Before then, Unix ms.
    pub until_ms: Option<i64>,
    /// Which time of a post these are about.
    pub by: TimeOf,
    /// Whether deleted posts are whole.
    pub deleted: bool,
}

impl Filter {
    fn takes(&self, post: &PostRecord) -> bool {
        let at_ms = match self.by {
            TimeOf::Stored => Some(post.arrived_at_ms),
            TimeOf::Written => post.created_at_ms,
        };
        let is_since = |since_ms| at_ms.is_some_and(|at_ms| at_ms >= since_ms);
        let is_until = |until_ms| at_ms.is_some_and(|at_ms| at_ms < until_ms);
        self.since_ms.is_none_or(is_since) && self.until_ms.is_none_or(is_until)
    }
}

/// Reads sources from a position on.
#[derive(Debug)]
pub struct Reading {
    request: ReadFeed,
    filter: Filter,
    /// The deletions on the way, if they are to be known.
    deletions: Option<Deletions>,
    /// Whether changes are handed on, too.
    with_changes: bool,
}

/// The event of the feed.
#[derive(Deserialize)]
struct Told {
    event: ChangeKind,
    source: String,
    post: PostRecord,
}

impl Reading {
    /// From a position, or from the beginning.
    pub fn new(
        names: &[String],
        filter: Filter,
        after: Option<String>,
        with_changes: bool,
        with_deletions: bool,
    ) -> Self {
        let events = match with_changes || with_deletions {
            true => ChangeKinds::ALL,
            false => ChangeKinds::NEW,
        };
        Self {
            request: ReadFeed {
                sources: names.to_vec(),
                after: Some(after.unwrap_or_else(|| START.to_owned())),
                events,
                history: true,
                tombstones: true,
                limit: PAGE,
                wait_ms: 0,
            },
            filter,
            deletions: with_deletions.then(Deletions::default),
            with_changes,
        }
    }

    /// The next ones that are to be exported; `None` at the end of what is stored.
    ///
    /// # Errors
    /// [`CliError`] if there is no such source, or the store cannot be read.
    pub async fn next(
        &mut self,
        access: &mut StoreAccess,
    ) -> Result<Option<Vec<Record>>, CliError> {
        let page = access.execute(self.request.clone()).await?;
        let is_end = page.events.is_empty();
        self.request.after = Some(page.position);
        if is_end {
            return Ok(None);
        }
        let mut records = Vec::new();
        for line in page.events {
            let mut record = read(&line)?;
            if let Some(deletions) = &mut self.deletions {
                // Its row may have been exported under another time.
                deletions.note(record.event, &record.post);
            }
            if record.event != ChangeKind::New && !self.with_changes {
                continue;
            }
            if !self.filter.takes(&record.post) {
                continue;
            }
            match self.filter.deleted {
                true => whole(&mut record.post, access).await?,
                false if record.post.deleted_at_ms.is_some() => record.post.status = None,
                false => {}
            }
            records.push(record);
        }
        Ok(Some(records))
    }

    /// The deletions of what was read, if they were to be known.
    pub fn deletions(&self) -> Option<&Deletions> {
        self.deletions.as_ref()
    }

    /// The position after what was read.
    pub fn position(&self) -> &str {
        self.request.after.as_deref().unwrap_or(START)
    }
}

fn read(line: &FeedLine) -> Result<Record, CliError> {
    let told: Result<Told, _> = serde_json::from_str(line.data.get());
    let told = told.map_err(|error| {
        CliError::failed(format!(
            "the server's answer is not understood ({error}); use the same version of driftline for both"
        ))
    })?;
    Ok(Record {
        event: told.event,
        source: told.source,
        post: told.post,
    })
}

/// Gives a deleted post what it held last, where that was kept.
async fn whole(post: &mut PostRecord, access: &mut StoreAccess) -> Result<(), CliError> {
    if post.deleted_at_ms.is_some() && post.status.is_none() {
        let id = post.post_id.to_string();
        let history = access.execute(ShowHistory { post: id }).await?;
        post.status = history
            .versions
            .into_iter()
            .next_back()
            .and_then(|last| last.status);
    }
    Ok(())
}

const START: &str = "start";
const PAGE: u32 = 1_000;
