use std::{collections::VecDeque, sync::Arc};

use driftline_core::feed::{ChangeKind, ChangeKinds, FeedPosition};
use driftline_store::{SourceId, StoreError, Viewer, change_feed::FeedSource};
use tokio::sync::{
    broadcast::{
        self,
        error::{RecvError, TryRecvError},
    },
    watch,
};

use super::{Feed, FeedEvent, event::SourceReaders, hub::Batch};

/// Which changes are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Who follows: what this viewer may not see is left out.
    pub viewer: Viewer,
    /// The names of the sources; all of them, also those that are added later, if there are none.
    pub sources: Vec<String>,
    /// What happened.
    pub kinds: ChangeKinds,
    /// Also posts that were older than what their source had shown when they were stored.
    pub history: bool,
    /// Also that a post was new or edited that is deleted by now; without it only its deletion is told.
    pub tombstones: bool,
}

/// Where one begins to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// At what is stored next.
    Now,
    /// After a position.
    After(FeedPosition),
}

/// Why the feed cannot be followed so.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// No source has that name.
    #[error("there is no source named {0:?}; `driftline source list` shows the names")]
    NoSource(String),
    /// The position is of another store, or of a later state of this one.
    #[error(
        "the position is ahead of the source {name:?}, which is at {known} and not at {named}: it is of another store, or one that was restored by other means than `driftline restore`. Begin with `start`, or at {name:?}'s end with `now`"
    )]
    Ahead {
        /// The source's name.
        name: String,
        /// Its last USN.
        known: i64,
        /// The USN of the position.
        named: i64,
    },
    /// As many follow it as may.
    #[error("too many clients follow the feed; try again later")]
    Full,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Someone who follows the feed.
#[derive(Debug)]
pub struct FeedReader {
    feed: Feed,
    selection: Selection,
    /// The sources that were named.
    named: Option<Vec<SourceId>>,
    position: FeedPosition,
    batches: broadcast::Receiver<Arc<Batch>>,
    ended: watch::Receiver<bool>,
    next: VecDeque<Next>,
    /// Whether the store may hold what no batch will bring.
    is_behind: bool,
}

/// What is handed out next.
#[derive(Debug)]
enum Next {
    Event(Arc<FeedEvent>),
    /// No others up to that USN of that source.
    End(u64, i64),
}

impl FeedReader {
    pub(super) async fn new(
        feed: Feed,
        batches: broadcast::Receiver<Arc<Batch>>,
        selection: Selection,
        start: Start,
    ) -> Result<FeedReader, FeedError> {
        let mut sources = feed.sources().await?;
        sources.retain(|source| SourceReaders::new(source).admit(selection.viewer));
        let mut named = Vec::new();
        for name in &selection.sources {
            let source = sources.iter().find(|source| source.name == *name);
            let source = source.ok_or_else(|| FeedError::NoSource(name.clone()))?;
            named.push(source.key.id);
        }
        let named = (!selection.sources.is_empty()).then_some(named);
        let ended = feed.ended();
        let mut reader = FeedReader {
            feed,
            selection,
            named,
            position: FeedPosition::default(),
            batches,
            ended,
            next: VecDeque::new(),
            is_behind: true,
        };
        let followed = sources
            .iter()
            .filter(|source| reader.follows(source.key.id));
        reader.position = match start {
            Start::Now => followed.map(end_of).collect(),
            Start::After(position) => {
                let mut known = FeedPosition::default();
                for source in followed {
                    let (id, update_count) = end_of(source);
                    let named = position.usn(id);
                    if named > update_count {
                        return Err(FeedError::Ahead {
                            name: source.name.clone(),
                            known: update_count,
                            named,
                        });
                    }
                    known.advance(id, named);
                }
                known
            }
        };
        Ok(reader)
    }

    /// The position after the last event, or further if nothing that is followed came since.
    pub fn position(&self) -> &FeedPosition {
        &self.position
    }

    /// The next event of what is stored; `None` if there is none now. May be dropped at any time.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read; asked again it goes on where it was.
    pub async fn stored(&mut self) -> Result<Option<Arc<FeedEvent>>, StoreError> {
        loop {
            if let Some(event) = self.at_hand() {
                return Ok(Some(event));
            }
            if self.is_behind {
                self.catch_up().await?;
                continue;
            }
            match self.batches.try_recv() {
                Ok(batch) => self.take(&batch),
                Err(TryRecvError::Lagged(_)) => self.is_behind = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(None),
            }
        }
    }

    /// The next event; waits for it. `None` once the feed has ended. May be dropped at any time.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read; asked again it goes on where it was.
    pub async fn next(&mut self) -> Result<Option<Arc<FeedEvent>>, StoreError> {
        loop {
            if let Some(event) = self.at_hand() {
                return Ok(Some(event));
            }
            if self.is_behind {
                self.catch_up().await?;
                continue;
            }
            let received = tokio::select! {
                received = self.batches.recv() => received,
                _ = self.ended.wait_for(|ended| *ended) => return Ok(None),
            };
            match received {
                Ok(batch) => self.take(&batch),
                Err(RecvError::Lagged(_)) => self.is_behind = true,
                Err(RecvError::Closed) => return Ok(None),
            }
        }
    }

    /// The next event of those that were read.
    fn at_hand(&mut self) -> Option<Arc<FeedEvent>> {
        while let Some(next) = self.next.pop_front() {
            match next {
                Next::End(source, usn) => self.position.advance(source, usn),
                Next::Event(event) => {
                    let change = &event.change;
                    self.position.advance(u64::from(event.source), change.usn);
                    let is_wanted = self.selection.kinds.contains(change.kind)
                        && (self.selection.history || !change.is_history);
                    // What is new and deleted by now is told by its deletion.
                    let is_told = self.selection.tombstones
                        || change.row.post.deleted_at_ms.is_none()
                        || change.kind == ChangeKind::Delete;
                    if is_wanted && is_told && event.is_for(self.selection.viewer) {
                        return Some(event);
                    }
                }
            }
        }
        None
    }

    /// Reads more from the store.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        let mut sources = self.feed.sources().await?;
        sources.retain(|source| SourceReaders::new(source).admit(self.selection.viewer));
        self.position
            .retain(|id| sources.iter().any(|source| u64::from(source.key.id) == id));
        let mut has_more = false;
        for source in &sources {
            let (id, update_count) = end_of(source);
            let known = self.position.usn(id);
            if update_count <= known || !self.follows(source.key.id) {
                continue;
            }
            if self.next.len() >= MAX_AT_HAND {
                has_more = true;
                break;
            }
            let (batch, is_cut) = self.feed.batch(source, known).await?;
            has_more |= is_cut;
            let events = batch.events.into_iter().map(Next::Event);
            self.next.extend(events);
            self.next.push_back(Next::End(id, batch.end));
        }
        // What is stored from now on comes in batches.
        self.is_behind = has_more;
        Ok(())
    }

    fn take(&mut self, batch: &Batch) {
        let known = self.position.usn(batch.source);
        let is_followed =
            self.follows(SourceId::new(batch.source)) && batch.readers.admit(self.selection.viewer);
        if batch.end <= known || !is_followed {
            return;
        }
        if batch.after > known {
            self.is_behind = true;
            return;
        }
        let new = batch.events.iter().filter(|event| event.change.usn > known);
        self.next.extend(new.cloned().map(Next::Event));
        self.next.push_back(Next::End(batch.source, batch.end));
    }

    fn follows(&self, source: SourceId) -> bool {
        let named = self.named.as_ref();
        named.is_none_or(|named| named.contains(&source))
    }
}

fn end_of(source: &FeedSource) -> (u64, i64) {
    (u64::from(source.key.id), source.update_count)
}

/// How many events are read ahead of all sources together.
const MAX_AT_HAND: usize = 200;
