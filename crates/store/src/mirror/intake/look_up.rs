use driftline_core::{
    answer::{AnswerHeaders, LookUp},
    post::{Post, Visibility},
    refresh::Policy,
    timeline::{LookUpOutcome, Machine, session::GoneProof},
    upstream_id::UpstreamId,
};
use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::SourceKey,
    mirror::{
        CommitSummary, absence,
        deletion::{self, Gone},
        entry,
        machine::LockedSource,
        observation::{IntakeContext, PostObservation},
        post_intake,
    },
    posts::post,
    text::without_nul,
};

/// The answer to a post's look-up, to commit, with the machine that requested it.
#[derive(Clone, Copy, Debug)]
pub struct CommitLookUp<'a> {
    /// The source; the write's root is [`crate::mirror::source::root`] of it.
    pub source: SourceKey,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The machine before the look-up.
    pub machine: &'a Machine,
    /// Any of the post's IDs at the upstream.
    pub id: &'a UpstreamId,
    /// The answer.
    pub look_up: &'a LookUp,
    /// The proof in [`LookUp::Gone`].
    pub proof: GoneProof,
    /// The answer's headers, and the times of its request and arrival.
    pub headers: &'a AnswerHeaders,
    /// The policy for refreshing posts from now on.
    pub policy: &'a Policy,
    /// True if a deleted post's content is kept in its history; otherwise it is erased.
    pub keep_deleted: bool,
    /// The present time in Unix ms.
    pub now_ms: i64,
}

/// Commits the answer to a look-up: an edit, a deletion, an absence, or no change. Returns the
/// machine after it.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::LeaseLost`] if another
/// worker has taken over the source; [`StoreError::Unreadable`] if a stored value cannot be read;
/// [`StoreError::Db`] if the database fails.
pub fn commit_look_up(
    tx: &mut Tx<'_>,
    commit: &CommitLookUp<'_>,
) -> Result<(Machine, CommitSummary), StoreError> {
    let mut source = LockedSource::load(tx, commit.source, commit.fence)?;
    let mut summary = CommitSummary::default();
    let id = commit.id.stable();
    let upstream_id = without_nul(id.as_str());
    let known = post::known(tx, source.instance_id, &[&*upstream_id])?.remove(&*upstream_id);
    let outcome = match (commit.look_up, known) {
        (_, None) => LookUpOutcome::NotConfirmed,
        (LookUp::Found(post), Some(known)) => {
            summary = found(tx, &mut source, post, &known, commit)?;
            LookUpOutcome::Found
        }
        (LookUp::Hidden, Some(known)) => hidden(tx, &mut source, &known, commit, &mut summary)?,
        (LookUp::Gone, Some(known)) => match commit.proof {
            GoneProof::Nothing => LookUpOutcome::NotConfirmed,
            proof if is_deleted(tx, &source, &known, proof)? => {
                let gone = Gone {
                    id: &id,
                    asked_at_ms: commit.headers.sent_at_ms,
                    received_at_ms: commit.headers.received_at_ms,
                    keep: commit.keep_deleted,
                    now_ms: commit.now_ms,
                };
                summary.deleted = deletion::take_in(tx, &mut source, gone)?;
                LookUpOutcome::Gone
            }
            _ => hidden(tx, &mut source, &known, commit, &mut summary)?,
        },
    };
    let mut machine = commit.machine.clone();
    machine.looked_up(commit.id, outcome, commit.headers);
    source.save(tx, &machine)?;
    summary.update_count = source.library.update_count;
    Ok((machine, summary))
}

/// True if a post that does not exist according to the upstream is deleted for everyone.
fn is_deleted(
    tx: &mut Tx<'_>,
    source: &LockedSource,
    known: &post::KnownPost,
    proof: GoneProof,
) -> Result<bool, StoreError> {
    let is_open = matches!(known.visibility, Visibility::Public | Visibility::Unlisted);
    Ok(match proof {
        GoneProof::Nothing | GoneProof::Hidden => false,
        GoneProof::DeletedForAll => true,
        // A post for followers is hidden after an unfollow.
        GoneProof::Deleted if known.is_gone() => true,
        GoneProof::Deleted => is_open && !absence::is_listed_for_others(tx, source, known.id)?,
    })
}

/// Handles a post that is hidden from this reader: the source's entries of it end.
fn hidden(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    known: &post::KnownPost,
    commit: &CommitLookUp<'_>,
    summary: &mut CommitSummary,
) -> Result<LookUpOutcome, StoreError> {
    let entries = entry::of_posts(tx, source.key, &[known.id])?.into_iter();
    let live: Vec<i64> = entries.filter(|e| !e.gone).map(|e| e.id).collect();
    absence::end(tx, source, &live, commit.headers.received_at_ms)?;
    summary.left += live.len() as u64;
    Ok(LookUpOutcome::Hidden)
}

/// Handles a post that exists. Entries that were missing from a page end, and the others show the
/// answer. An entry that has left before belongs to a source that shows it from time to time, so
/// only pages end it. One that had left before the post was deleted has left again.
fn found(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    post: &Post,
    known: &post::KnownPost,
    commit: &CommitLookUp<'_>,
) -> Result<CommitSummary, StoreError> {
    let entries = entry::of_posts(tx, source.key, &[known.id])?.into_iter();
    let entries = entries.filter(|entry| !entry.is_left());
    let is_leaving = |entry: &entry::KnownEntry| entry.is_absent && entry.times_left == 0;
    let (leaving, staying): (Vec<_>, Vec<_>) = entries.partition(is_leaving);
    let had_left = |entry: &&entry::KnownEntry| entry.left_before_ms.is_some();
    let had_left: Vec<String> = staying
        .iter()
        .filter(had_left)
        .map(|e| e.position.clone())
        .collect();
    let observations: Vec<PostObservation<'_>> = staying
        .into_iter()
        .map(|entry| PostObservation::new(post, "", None, Some(entry)))
        .filter(PostObservation::may_be_news)
        .collect();
    let asked_at_ms = commit.headers.sent_at_ms;
    let context = IntakeContext::answered(asked_at_ms, commit.now_ms, commit.policy);
    let mut summary = post_intake::take_in(tx, source, &observations, context)?;
    let mut leaving: Vec<i64> = leaving.iter().map(|entry| entry.id).collect();
    if !had_left.is_empty() {
        let entries = entry::of_posts(tx, source.key, &[known.id])?.into_iter();
        let is_back = |e: &entry::KnownEntry| !e.gone && had_left.contains(&e.position);
        leaving.extend(entries.filter(is_back).map(|entry| entry.id));
    }
    absence::end(tx, source, &leaving, commit.headers.received_at_ms)?;
    summary.left = leaving.len() as u64;
    Ok(summary)
}
