//! The actions that a session requests from its shell, and the events that answer them.

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
    /// The remaining quota of the source's credential for pages.
    pub quota: QuotaView,
    /// The stream next to the polls.
    pub stream: StreamView,
    /// The time at which the server last answered any request of this process properly, in Unix ms
    /// by the wall clock.
    pub server_answered_ms: Option<i64>,
    /// The largest memory of the pages that the session holds, in bytes.
    pub max_held_bytes: usize,
    /// True if looks are taken as soon as their age allows, because the reading is about to end.
    pub settling: bool,
}

/// The stream of a source, from the view of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamView {
    /// True if it is open.
    pub is_open: bool,
    /// The number of openings so far.
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
    /// Store the posts of these pages that the source does not have, the oldest first, in one
    /// transaction, like a stream's posts: [`Event::PostsStored`]. The pages are committed after
    /// that.
    StorePosts(Arc<[Arc<PageCommit>]>),
    /// Commit a page with [`Session::machine`](super::Session::machine) in one transaction:
    /// [`Event::PageCommitted`].
    CommitPage(Arc<PageCommit>),
    /// Look a post up: [`Event::LookedUp`].
    LookUp(UpstreamId),
    /// Find the proof in the upstream's report that the post does not exist: [`Event::Proof`].
    ProveAbsence(UpstreamId),
    /// Commit the answer to a look-up with [`Session::machine`](super::Session::machine) in one transaction:
    /// [`Event::LookUpCommitted`].
    CommitLookUp(Arc<LookUpCommit>),
    /// Store [`Session::machine`](super::Session::machine): [`Event::Saved`].
    SaveMachine,
    /// The step is over.
    Finish(Finish),
}

/// The kind of a request. Each has a quota of its own.
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
    /// The page to request, by the IDs that the upstream uses now.
    pub page: PageRequest,
}

/// A page to commit.
#[derive(Debug, Clone, PartialEq)]
pub struct PageCommit {
    /// The answered request.
    pub request: Request,
    /// Its checked IDs.
    pub reading: Reading,
    /// The page.
    pub page: Page,
}

/// The answer to a look-up, to commit.
#[derive(Debug, Clone, PartialEq)]
pub struct LookUpCommit {
    /// Any of the post's IDs at the upstream.
    pub id: UpstreamId,
    /// The answer.
    pub look_up: LookUp,
    /// The proof behind [`LookUp::Gone`].
    pub proof: GoneProof,
    /// The answer's headers.
    pub headers: AnswerHeaders,
}

/// The proof in a 404 for a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneProof {
    /// No proof: look-ups with this credential are not known to find live posts of its kind.
    Nothing,
    /// The post is hidden from this reader, and maybe only from this reader.
    Hidden,
    /// Posts like it are found with this credential. It is deleted, unless it had a restricted
    /// visibility or another credential's source lists it.
    Deleted,
    /// The upstream reports it to all readers.
    DeletedForAll,
}

/// The result of an [`Action`].
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The request may be sent now.
    Reserved,
    /// The quota has no request left before this time, in Unix ms by the wall clock.
    Refused {
        /// The time of the next attempt.
        until_ms: i64,
    },
    /// The requested stored post, if there is one.
    Anchor(Option<Anchor>),
    /// The answer to the request of a page.
    Page {
        /// The page, or the reason why there is none.
        answer: Box<Result<Page, Failure>>,
        /// The number of changes so far to stored posts of the source's instance by others than
        /// this session's pages: by its stream, or by look-ups.
        other_changes: u64,
    },
    /// The stored positions, by post.
    Positions(HashMap<UpstreamId, UpstreamId>),
    /// The posts are stored.
    PostsStored {
        /// The number of posts that the source did not have, not even by its stream.
        new: u64,
    },
    /// The page is stored.
    PageCommitted(Box<PageCommitted>),
    /// The answer to a look-up, or the reason why there is none.
    LookedUp(Result<(LookUp, AnswerHeaders), Failure>),
    /// The proof in the 404, or the failure of a control look-up.
    Proof(Result<GoneProof, Failure>),
    /// The answer to a look-up is stored.
    LookUpCommitted {
        /// The machine after it, as stored.
        machine: Box<Machine>,
        /// The number of the source's entries that ended.
        left: u64,
    },
    /// The machine is stored.
    Saved,
}

/// The result of committing a page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageCommitted {
    /// The machine after it, as stored.
    pub machine: Machine,
    /// The number of posts that were not stored before, not even by the stream.
    pub new: u64,
    /// The number of stored posts that may be gone, or are known to have left the source.
    pub missing: u64,
    /// For each listed post, if it is refreshed, the time from which a page with it must be
    /// committed again although nothing changed, in Unix ms. Empty if that is unknown.
    pub rechecks_ms: Vec<Option<i64>>,
}

/// The end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// An answer was committed, or contained nothing to commit.
    Read,
    /// A page is held until the posts below it are read. Nothing was committed.
    Held,
    /// A request failed. The machine knows the time of the next attempt.
    Failed(FailureKind),
    /// No request is due before this time, in Unix ms by the wall clock.
    Wait {
        /// The time of the next step.
        until_ms: i64,
    },
}
