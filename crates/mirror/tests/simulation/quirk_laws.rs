//! What must hold whatever the server does: no refused request is repeated for ever, and nothing is
//! taken for an edit or a deletion that is none.

use std::collections::HashMap;

use driftline_core::{
    answer::{Failure, FailureKind, PageRequest},
    timeline::{Gap, IdScheme, Machine, Request, Unprovable},
    upstream_id::UpstreamId,
};
use driftline_sim::{
    IdLayout, TruePost, Upstream,
    quirks::{BoostLookUps, LeaveCause, Quirk},
};

use driftline_store::{SourceKey, Store, export::ExportRow, quarantine};

use crate::{
    laws::Violation,
    settings::{Drawn, SECOND_MS},
    simulation::Simulation,
    stored_edits::max_edits,
};

/// How often each request was refused in a row, for what it asks and not for the server's state.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    pages: HashMap<PageRequestKey, u32>,
    look_ups: HashMap<UpstreamId, u32>,
    most: Option<(u32, String)>,
}

type PageRequestKey = [Option<UpstreamId>; 3];

impl Refusals {
    /// A page was asked for, and came to nothing for this reason.
    pub(crate) fn page(&mut self, request: &Request, failure: Option<&Failure>) {
        let PageRequest {
            since_id,
            max_id,
            min_id,
            ..
        } = request.page.clone();
        let times = self.pages.entry([since_id, max_id, min_id]).or_default();
        match failure {
            None => *times = 0,
            Some(failure) if is_of_the_request(failure) => {
                *times += 1;
                let times = *times;
                self.note(times, MOST_PAGES, || format!("{request:?}: {failure}"));
            }
            Some(_) => {}
        }
    }

    /// A post was looked up, and nothing came of it for this reason.
    pub(crate) fn look_up(&mut self, id: &UpstreamId, failure: Option<&Failure>) {
        let times = self.look_ups.entry(id.clone()).or_default();
        match failure {
            None => *times = 0,
            Some(failure) => {
                *times += 1;
                let times = *times;
                self.note(times, MOST_LOOK_UPS, || {
                    format!("look-up of {id}: {failure}")
                });
            }
        }
    }

    /// That no request was repeated for ever.
    pub(crate) fn check(&self) -> Result<(), Violation> {
        match &self.most {
            None => Ok(()),
            Some((times, what)) => Err(Violation::Stalled(format!(
                "refused {times} times in a row: {what}"
            ))),
        }
    }

    fn note(&mut self, times: u32, most: u32, what: impl FnOnce() -> String) {
        if times > most && self.most.as_ref().is_none_or(|(known, _)| times > *known) {
            self.most = Some((times, what()));
        }
    }
}

/// Whether another request might be answered better.
fn is_of_the_request(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        FailureKind::WrongOrder | FailureKind::BadId | FailureKind::BadJson | FailureKind::Refused
    )
}

/// A post is edited at most once, and a boost with what it boosts.
pub(crate) fn check_edits(
    upstream: &mut Upstream,
    post: &TruePost,
    edits: i64,
    now_ms: i64,
) -> Result<(), Violation> {
    if edits <= max_edits(upstream, post, now_ms) {
        return Ok(());
    }
    let text = format!("{edits} edits were taken in: {post:?}");
    Err(Violation::Content(text))
}

/// Whether a range is of one time of an order that is no more precise: what is listed beside the
/// last post of a page may be on the next one, and nothing asks for it alone.
pub(crate) fn is_one_time(drawn: &Drawn, scheme: &IdScheme, gap: &Gap) -> bool {
    let precision_ms = match drawn.quirks.contains(&Quirk::SecondsUnordered) {
        true => SECOND_MS,
        false => scheme.precision_ms(),
    };
    let times = scheme.time_ms(&gap.low).zip(scheme.time_ms(&gap.high));
    let end_ms = |low_ms: i64| (low_ms.div_euclid(precision_ms) + 1) * precision_ms;
    precision_ms > 0 && times.is_some_and(|(low_ms, high_ms)| high_ms <= end_ms(low_ms))
}

/// Whether posts of one second are listed in any order by IDs that say nothing of seconds, and the
/// source says that its pages prove nothing.
pub(crate) fn has_no_order(drawn: &Drawn, machine: &Machine) -> bool {
    let is_so = drawn.quirks.contains(&Quirk::SecondsUnordered)
        && drawn.world.layout == IdLayout::Sequential;
    is_so && matches!(machine.unprovable(), Some(Unprovable::NoOrder(_)))
}

/// Posts that cannot be read are kept as they came.
pub(crate) fn check_quarantined(
    store: &Store,
    source: SourceKey,
    upstream: &mut Upstream,
    unreadable: &[TruePost],
) -> Result<(), Violation> {
    if unreadable.is_empty() {
        return Ok(());
    }
    let items = store.read_blocking(move |tx| quarantine::list(tx, source));
    let items = items.unwrap();
    let quirks = &upstream.world().config().quirks;
    let mut named = unreadable
        .iter()
        .filter(|post| quirks.names_unreadable(post.id.as_str()));
    let is_kept = |post: &&TruePost| {
        let id = post.id.as_str().as_bytes();
        let mut kept = items.iter().map(|it| &it.item.bytes);
        kept.any(|bytes| bytes.windows(id.len()).any(|part| part == id))
    };
    match named.find(|post| !is_kept(post)) {
        Some(post) => Err(Violation::Missing(format!("not in quarantine: {post:?}"))),
        None => Ok(()),
    }
}

/// An entry that came back before the last rung read its range is listed again.
pub(crate) fn check_returned(
    upstream: &mut Upstream,
    post: &TruePost,
    row: &ExportRow,
    came_of_age_ms: i64,
) -> Result<(), Violation> {
    let leaves = upstream.world().leaves(&post.id);
    let is_back = leaves
        .iter()
        .all(|(_, _, until_ms)| *until_ms < came_of_age_ms);
    let is_there =
        post.deleted_at_ms.is_none() && upstream.world().hidden_at_ms(&post.id).is_none();
    if is_back && is_there && row.left_at_ms.is_some() {
        let text = format!("it came back and is not listed: {post:?}, {row:?}, {leaves:?}");
        return Err(Violation::Content(text));
    }
    Ok(())
}

/// Whether a post's entry was to leave the timeline at some time.
pub(crate) fn leaves(upstream: &mut Upstream, post: &TruePost) -> bool {
    !upstream.world().leaves(&post.id).is_empty()
}

/// Whether a page lists an item beside a deleted post's place that cannot be read and that names no
/// post: for all that the page shows, it may be the post.
pub(crate) fn may_be_unreadable(upstream: &mut Upstream, post: &TruePost, now_ms: i64) -> bool {
    let posts = upstream.truth(now_ms).posts;
    let quirks = &upstream.world().config().quirks;
    let is_listed = |other: &&TruePost| other.deleted_at_ms.is_none();
    let is_nameless =
        |other: &TruePost| other.is_unreadable && !quirks.names_unreadable(other.id.as_str());
    let Some(at) = posts.iter().position(|other| other.id == post.id) else {
        return false;
    };
    let below = posts[..at].iter().rev().find(is_listed);
    let above = posts[at + 1..].iter().find(is_listed);
    below.into_iter().chain(above).any(is_nameless)
}

/// Whether it is a boost that is taken back: then its look-up finds nothing.
pub(crate) fn is_unboosted(upstream: &mut Upstream, post: &TruePost) -> bool {
    let leaves = upstream.world().leaves(&post.id);
    leaves
        .iter()
        .any(|(cause, ..)| *cause == LeaveCause::Unboost)
}

impl Simulation {
    /// Where nothing is new for an hour and nothing is left to prove, little is asked for.
    pub(crate) fn check_idle(&mut self) -> Result<(), Violation> {
        // Others take too long for a test, and all together do.
        let is_frequent = self.drawn.settings.every_ms < 10_000;
        if is_frequent || !self.drawn.seed.is_multiple_of(5) {
            return Ok(());
        }
        self.run_until(self.now_ms + HOUR_MS)?;
        let (before, from_ms) = (self.other_requests, self.now_ms);
        self.run_until(from_ms + HOUR_MS / 4)?;
        let asked = self.other_requests - before;
        let ledger = self.session.as_ref().map(|it| it.machine().ledger());
        let is_proven = ledger.is_some_and(|ledger| ledger.gaps().is_empty());
        if is_proven && asked > 15 {
            let text = format!("{asked} requests besides polls in 15 min without news");
            return Err(Violation::Stalled(text));
        }
        Ok(())
    }
}

impl Drawn {
    /// Whether look-ups of a post can prove that it was deleted.
    pub(crate) fn proves_deletion(&self, post: &TruePost) -> bool {
        let fails = [
            Quirk::LookUpsNeedToken,
            Quirk::LookUpsFail,
            Quirk::OthersFound,
        ];
        let is_found = post.boost_of.is_none() || self.world.quirks.boosts == BoostLookUps::Found;
        is_found && !fails.iter().any(|quirk| self.quirks.contains(quirk))
    }
}

const HOUR_MS: i64 = 3_600_000;
const MOST_PAGES: u32 = 30;
const MOST_LOOK_UPS: u32 = 30;
