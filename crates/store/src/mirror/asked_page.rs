//! A page whose source was asked for, as far as that can be before its instance is held.

use std::collections::HashSet;

use driftline_core::{
    post::Post,
    timeline::{AbsenceRange, Gap, Machine, RequestPurpose, Stored},
    upstream_id::{Key, UpstreamId},
};
use driftline_db::{PendingRows, Tx};

use super::{
    departure::{self, AbsentEntry, PendingLive},
    entry, gap,
    intake::PostObservation,
    machine::{LockedSource, PendingSource},
    page::CommitPage,
};
use crate::error::StoreError;

/// A page, with all that is read of its source itself: it was asked for along with what is asked next.
pub(super) struct AskedPage<'c> {
    commit: &'c CommitPage<'c>,
    is_history: bool,
    /// The range that the page shows, if it shows one.
    range: Option<(Key, Key)>,
    /// Whether what it lacks of the range has left the source.
    is_proven: bool,
    /// The positions that count as listed.
    listed: Vec<Key>,
    source: PendingSource,
    gaps: PendingRows<'static, Gap>,
    entries: PendingEntries,
    live: Vec<PendingLive>,
}

/// A page whose source is locked, and still read by whoever commits it.
pub(super) struct CheckedPage<'c> {
    pub(super) commit: &'c CommitPage<'c>,
    pub(super) is_history: bool,
    range: Option<(Key, Key)>,
    pub(super) is_proven: bool,
    /// The ledger's ranges as they are stored.
    pub(super) gaps: Vec<Gap>,
    pub(super) listing: Listing<'c>,
    /// What it lacks.
    pub(super) absent: Vec<AbsentEntry>,
}

impl<'c> AskedPage<'c> {
    /// Locks the source and asks for what is read of it. The inner error refuses the page.
    pub(super) fn ask(
        tx: &mut Tx<'_>,
        commit: &'c CommitPage<'c>,
    ) -> Result<Result<AskedPage<'c>, StoreError>, StoreError> {
        let CommitPage { reading, page, .. } = *commit;
        let (posts, keys) = (page.listed.len(), reading.keys.len());
        if posts != keys {
            return Ok(Err(StoreError::PageMismatch { posts, keys }));
        }
        let is_history = commit.machine.is_history(commit.request, reading);
        let absence = commit.machine.absence_range(commit.request, reading);
        let is_proven = absence.as_ref().is_some_and(|range| range.is_proven);
        let earlier = absence
            .as_ref()
            .map_or(&[][..], |range| &range.shown)
            .to_vec();
        let range = absence.map(|AbsenceRange { low, high, .. }| (low, high));
        let (ranges, mut listed) = match &range {
            Some(range) => readable(range.clone(), commit),
            None => <_>::default(),
        };
        listed.extend(earlier);
        let source = LockedSource::lock_later(tx, commit.source)?;
        let gaps = gap::load_later(tx, commit.source)?;
        let entries = PendingEntries::ask(tx, commit, is_history)?;
        let live = ranges.iter().map(|(low, high)| {
            let asked_at_ms = page.headers.sent_at_ms;
            departure::live_later(tx, commit.source, (low, high), asked_at_ms)
        });
        Ok(Ok(AskedPage {
            commit,
            is_history,
            is_proven,
            listed,
            source,
            gaps,
            entries,
            live: live.collect::<Result<_, _>>()?,
            range,
        }))
    }

    /// Reads what was asked for.
    ///
    /// # Errors
    /// [`StoreError::NoSource`] and [`StoreError::LeaseLost`] refuse the page.
    pub(super) fn check(
        self,
        tx: &mut Tx<'_>,
    ) -> Result<(LockedSource, CheckedPage<'c>), StoreError> {
        let source = self.source.check(tx, self.commit.fence)?;
        let listed: HashSet<&str> = self.listed.iter().map(Key::as_str).collect();
        let checked = CheckedPage {
            gaps: tx.rows(self.gaps)?,
            listing: listing(tx, self.commit, self.entries)?,
            absent: departure::absent(tx, self.live, &listed)?,
            commit: self.commit,
            is_history: self.is_history,
            range: self.range,
            is_proven: self.is_proven,
        };
        Ok((source, checked))
    }
}

impl CheckedPage<'_> {
    /// The range of which the page proves what the source lists.
    pub(super) fn proves(&self) -> Option<&(Key, Key)> {
        self.range.as_ref().filter(|_| self.is_proven)
    }
}

/// What of a range a page shows: the parts where no unreadable item without a position may stand for a
/// stored post, and the positions of the page's items.
fn readable(range: (Key, Key), commit: &CommitPage<'_>) -> (Vec<(Key, Key)>, Vec<Key>) {
    let CommitPage { reading, page, .. } = *commit;
    let key = |id: &Option<UpstreamId>| reading.scheme?.key(id.as_ref()?).ok();
    let mut listed = reading.keys.clone();
    let mut ranges = vec![range];
    for item in &page.unreadable {
        if let Some(position) = key(&item.position) {
            listed.push(position);
            continue;
        }
        let above = key(&item.above).unwrap_or_else(Key::highest);
        let below = key(&item.below).unwrap_or_default();
        let parts = ranges.into_iter().flat_map(|(low, high)| {
            let upper = ((&low).max(&above).clone(), high.clone());
            [(low, high.min(below.clone())), upper]
        });
        ranges = parts.filter(|(low, high)| low < high).collect();
    }
    (ranges, listed)
}

pub(super) fn after_page(commit: &CommitPage<'_>, stored: &Stored, is_history: bool) -> Machine {
    let CommitPage { reading, page, .. } = *commit;
    let mut machine = commit.machine.clone();
    machine.page(
        commit.settings,
        commit.abilities,
        commit.request,
        reading,
        &page.headers,
        stored,
    );
    // The newest, so that one backdated post does not end a history early.
    let times = page.listed.iter().map(|listed| listed.post.created_at_ms);
    if is_history && let Some(newest_ms) = times.flatten().max() {
        machine.history_reached(reading, newest_ms);
    }
    machine
}

/// The posts of a page, sorted by what becomes of them.
pub(super) struct Listing<'a> {
    /// Posts that may be news, the oldest first and each position once.
    pub(super) observations: Vec<PostObservation<'a>>,
    /// Stored posts whose content has not changed.
    pub(super) recount_candidates: Vec<(i64, &'a Post)>,
    /// For each listed post, whether no page of the source had shown it.
    pub(super) new: Vec<bool>,
    /// The entries that only a stream had shown, or that a page lacked.
    pub(super) shown: Vec<i64>,
}

/// The entries that a source has of a page, which are asked for along with what is asked next.
struct PendingEntries {
    /// Whether the page lists each of its positions for the first time.
    is_once: Vec<bool>,
    entries: PendingRows<'static, entry::Known>,
    /// The highest position of the source, where a first page of history asks for it.
    newest: Option<PendingRows<'static, Option<String>>>,
    is_history: bool,
}

impl PendingEntries {
    fn ask(
        tx: &mut Tx<'_>,
        commit: &CommitPage<'_>,
        is_history: bool,
    ) -> Result<PendingEntries, StoreError> {
        let source = commit.source;
        let keys = &commit.reading.keys;
        let mut once = HashSet::with_capacity(keys.len());
        let is_once: Vec<bool> = keys.iter().map(|key| once.insert(key)).collect();
        let positions: Vec<&str> = once.into_iter().map(Key::as_str).collect();
        // A first page of history may hold posts above what a stream has shown already: those are new.
        let is_first = matches!(commit.request.purpose, RequestPurpose::Poll);
        let newest = match is_history && is_first {
            true => Some(entry::newest_position_later(tx, source)?),
            false => None,
        };
        Ok(PendingEntries {
            is_once,
            entries: entry::at_later(tx, source, &positions)?,
            newest,
            is_history,
        })
    }
}

fn listing<'a>(
    tx: &mut Tx<'_>,
    commit: &CommitPage<'a>,
    pending: PendingEntries,
) -> Result<Listing<'a>, StoreError> {
    let CommitPage { reading, page, .. } = *commit;
    let PendingEntries {
        is_once,
        is_history,
        ..
    } = pending;
    let newest = match pending.newest {
        Some(newest) => tx.rows(newest)?.pop().flatten(),
        None => None,
    };
    let newest = newest.as_deref();
    let is_below = |key: &Key| newest.is_none_or(|newest| key.as_str() <= newest);
    // The page above a range in doubt begins above it.
    let end = match &commit.request.purpose {
        RequestPurpose::Fill { high, .. } => Some(high),
        _ => None,
    };
    let mut entries = entry::by_position(tx.rows(pending.entries)?);
    let mut observations = Vec::new();
    let mut recount_candidates = Vec::new();
    let mut shown = Vec::new();
    let mut new = vec![false; reading.keys.len()];
    let listed = reading.keys.iter().zip(&page.listed);
    for (index, (key, listed)) in listed.enumerate().rev() {
        if !is_once[index] {
            continue;
        }
        let entry = entries.remove(key.as_str());
        let streamed = entry.as_ref().filter(|entry| entry.streamed);
        let is_marked = |entry: &&entry::Known| entry.streamed || entry.is_absent;
        shown.extend(entry.as_ref().filter(is_marked).map(|entry| entry.id));
        new[index] = streamed.is_some() || entry.is_none();
        let position_ms = reading.scheme.and_then(|scheme| scheme.time_ms(key));
        let mut observation = PostObservation::new(&listed.post, key.as_str(), position_ms, entry);
        observation.is_history = is_history && is_below(key) && end.is_none_or(|end| key < end);
        if observation.may_be_news() {
            observations.push(observation);
        } else if let Some(entry) = &observation.entry
            && let Some(look) = entry.look
            && look.is_outdated_by(&listed.post, page.headers.sent_at_ms)
        {
            recount_candidates.push((entry.post_id, &listed.post));
        }
    }
    Ok(Listing {
        observations,
        recount_candidates,
        new,
        shown,
    })
}
