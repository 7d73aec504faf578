use driftline_core::{
    answer::{AnswerHeaders, LookUp},
    post::Post,
    refresh::Policy,
    timeline::Machine,
    upstream_id::UpstreamId,
};
use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::SourceId,
    mirror::{
        commit_summary::CommitSummary,
        deletion::{self, Gone},
        entry,
        intake::{self, IntakeContext, PostObservation},
        machine::LockedSource,
    },
    posts::{post, rehash::HashStored},
    text::without_nul,
};

/// The answer to a post's look-up, to commit, with the machine that requested it.
#[derive(Clone, Copy, Debug)]
pub struct CommitLookUp<'a> {
    /// The source; the write's root is [`crate::mirror::source::root`] of it.
    pub source: SourceId,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The machine as it stands before the look-up.
    pub machine: &'a Machine,
    /// The post's ID at the upstream.
    pub id: &'a UpstreamId,
    /// The answer.
    pub look_up: &'a LookUp,
    /// The answer's headers, and when it was requested and received.
    pub headers: &'a AnswerHeaders,
    /// How posts are refreshed from now on.
    pub policy: &'a Policy,
    /// Hashes posts that are stored with hashes of an earlier form.
    pub hash_stored: HashStored,
    /// Whether a deleted post's content is kept in its history; else it is erased.
    pub keep_deleted: bool,
    /// The time, Unix ms.
    pub now_ms: i64,
}

/// Commits the answer to a look-up: an edit, a deletion, or nothing new. Returns the machine after
/// it.
pub fn commit_look_up(
    tx: &mut Tx<'_>,
    commit: &CommitLookUp<'_>,
) -> Result<(Machine, CommitSummary), StoreError> {
    let mut source = LockedSource::load(tx, commit.source, commit.fence)?;
    let mut summary = CommitSummary::default();
    match commit.look_up {
        LookUp::Found(post) => summary = found(tx, &mut source, post, commit)?,
        LookUp::Gone => {
            let gone = Gone {
                id: commit.id,
                asked_at_ms: commit.headers.sent_at_ms,
                received_at_ms: commit.headers.received_at_ms,
                keep: commit.keep_deleted,
                now_ms: commit.now_ms,
            };
            summary.deleted = deletion::take_in(tx, &mut source, gone)?;
        }
    }
    let mut machine = commit.machine.clone();
    let is_gone = matches!(commit.look_up, LookUp::Gone);
    machine.looked_up(commit.id, is_gone, commit.headers);
    source.save(tx, &machine)?;
    summary.update_count = source.library.update_count;
    Ok((machine, summary))
}

fn found(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    post: &Post,
    commit: &CommitLookUp<'_>,
) -> Result<CommitSummary, StoreError> {
    let upstream_id = without_nul(post.id.as_str());
    let known = post::known(tx, source.instance_id, &[&*upstream_id])?;
    let Some(known) = known.get(&*upstream_id) else {
        return Ok(CommitSummary::default());
    };
    let entries = entry::of_posts(tx, source.id, &[known.id])?;
    let observations: Vec<PostObservation<'_>> = entries
        .into_iter()
        .map(|entry| PostObservation::new(post, "", None, Some(entry)))
        .filter(PostObservation::may_be_news)
        .collect();
    let asked_at_ms = commit.headers.sent_at_ms;
    let context = IntakeContext::answered(
        asked_at_ms,
        commit.now_ms,
        commit.policy,
        commit.hash_stored,
    );
    intake::take_in(tx, source, &observations, context)
}
