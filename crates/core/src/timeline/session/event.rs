//! The actions that a session asks of its shell, and the events that answer them.

use std::{collections::HashMap, sync::Arc};

use crate::{
    answer::{AnswerHeaders, Failure, FailureKind, LookUp, Page, PageRequest},
    clock::ClockReading,
    quota::QuotaView,
    timeline::{Anchor, AnchorQuery, Machine, Reading, Request},
    upstream_id::UpstreamId,
};

/// The inputs of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepContext {
    /// The clocks.
    pub clock: ClockReading,
    /// The quota that the source's credential has left for pages.
    pub quota: QuotaView,
    /// The stream next to the polls.
    pub stream: StreamView,
    /// When the server last answered any request of this process as it should, Unix ms by the wall clock.
    pub server_answered_ms: Option<i64>,
    /// How much memory the pages may take that the session holds, in bytes.
    pub max_held_bytes: usize,
    /// Whether looks are taken as soon as their age allows, since the reading is about to end.
    pub settling: bool,
}

/// The stream of a source, as its session sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamView {
    /// Whether it is open.
    pub is_open: bool,
    /// How often it was opened so far.
    pub openings: u64,
}

/// The next task of the shell. Each names the [`Event`] that answers it.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Take a request of this kind from the quota: [`Event::Reserved`] or [`Event::Refused`].
    Reserve(RequestKind),
    /// Find a stored post: [`Event::Anchor`].
    FindAnchor(AnchorQuery),
    /// Request a page: [`Event::Page`].
    FetchPage(Arc<PageFetch>),
    /// Find the stored positions of posts whose IDs change: [`Event::Positions`].
    FindPositions(Vec<UpstreamId>),
    /// Store those posts of these pages that the source does not have, the oldest first, in one transaction, as a
    /// stream's posts are stored: [`Event::PostsStored`]. The pages are committed after that.
    StorePosts(Arc<[Arc<PageCommit>]>),
    /// Commit a page with [`Session::machine`](super::Session::machine) in one transaction:
    /// [`Event::PageCommitted`].
    CommitPage(Arc<PageCommit>),
    /// Look a post up: [`Event::LookedUp`].
    LookUp(UpstreamId),
    /// Find out what it proves that the upstream says that the post does not exist: [`Event::Proof`].
    ProveAbsence(UpstreamId),
    /// Commit the answer to a look-up with [`Session::machine`](super::Session::machine) in one transaction:
    /// [`Event::LookUpCommitted`].
    CommitLookUp(Arc<LookUpCommit>),
    /// Store [`Session::machine`](super::Session::machine): [`Event::Saved`].
    SaveMachine,
    /// The step is over.
    Finish(Finish),
}

/// The kind of a request: each has a quota of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A page of the timeline.
    Page,
    /// A look-up of one post.
    LookUp,
}

/// A page to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFetch {
    /// The request, by the positions of posts.
    pub request: Request,
    /// The page to request, by the IDs that the upstream knows now.
    pub page: PageRequest,
}

/// A page to commit.
#[derive(Debug, Clone, PartialEq)]
pub struct PageCommit {
    /// The request that it answers.
    pub request: Request,
    /// Its checked IDs.
    pub reading: Reading,
    /// The page.
    pub page: Page,
}

/// The answer to a look-up, to commit.
#[derive(Debug, Clone, PartialEq)]
pub struct LookUpCommit {
    /// The post's ID at the upstream, any of them.
    pub id: UpstreamId,
    /// The answer.
    pub look_up: LookUp,
    /// The proof behind [`LookUp::Gone`].
    pub proof: GoneProof,
    /// The answer's headers.
    pub headers: AnswerHeaders,
}

/// How much a 404 for a post proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneProof {
    /// Nothing: it is not known that look-ups with this credential find live posts of its kind.
    Nothing,
    /// It is not there for this reader, who may be the only one.
    Hidden,
    /// Posts like it are found with this credential. It is deleted, unless it was for some eyes only
    /// or another credential's source lists it.
    Deleted,
    /// The upstream says so whoever asks.
    DeletedForAll,
}

/// The result of an [`Action`].
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The request may be sent now.
    Reserved,
    /// The quota has no request left before this time, Unix ms by the wall clock.
    Refused {
        /// When to ask again.
        until_ms: i64,
    },
    /// The stored post that was asked for, if there is one.
    Anchor(Option<Anchor>),
    /// The answer to the request of a page.
    Page {
        /// The page, or why there is none.
        answer: Box<Result<Page, Failure>>,
        /// How often stored posts of the source's instance were changed so far by something else than this
        /// session's pages: by its stream, or by look-ups.
        other_changes: u64,
    },
    /// The stored positions, by post.
    Positions(HashMap<UpstreamId, UpstreamId>),
    /// The posts are stored.
    PostsStored {
        /// How many the source did not have, not even by its stream.
        new: u64,
    },
    /// The page is stored.
    PageCommitted(Box<PageCommitted>),
    /// The answer to a look-up, or why there is none.
    LookedUp(Result<(LookUp, AnswerHeaders), Failure>),
    /// How much the 404 proves; the failure if a control look-up failed.
    Proof(Result<GoneProof, Failure>),
    /// The answer to a look-up is stored.
    LookUpCommitted {
        /// The machine after it, as it is stored.
        machine: Box<Machine>,
        /// How many entries of the source ended.
        left: u64,
    },
    /// The machine is stored.
    Saved,
}

/// The result of committing a page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageCommitted {
    /// The machine after it, as it is stored.
    pub machine: Machine,
    /// How many posts were not stored before, not even by the stream.
    pub new: u64,
    /// How many stored posts are suspected of being gone, or are known to have left the source.
    pub missing: u64,
    /// For each listed post, if it is refreshed, the time from which a page that shows it has to be committed
    /// again although nothing changed, Unix ms; empty where that was not found out.
    pub rechecks_ms: Vec<Option<i64>>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// An answer was committed, or had nothing to commit.
    Read,
    /// A page is held until the posts below it are read: nothing was committed.
    Held,
    /// A request failed; the machine knows when to try again.
    Failed(FailureKind),
    /// No request is due before this time, Unix ms by the wall clock.
    Wait {
        /// When to begin the next step.
        until_ms: i64,
    },
}
