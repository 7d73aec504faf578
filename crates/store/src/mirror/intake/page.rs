use std::collections::HashSet;

use driftline_core::{
    answer::{Abilities, Listed, Page},
    post::{Author, Post, Visibility},
    refresh::Policy,
    timeline::{AbsenceRange, Machine, Reading, Request, RequestPurpose, Settings, Stored},
    upstream_id::{Key, UpstreamId},
};
use driftline_db::{PendingRows, Tx};

use crate::{
    error::StoreError,
    id_types::SourceKey,
    mirror::{
        CommitSummary,
        absence::{self, Absences},
        entry::{self, PendingBelow},
        gap,
        locked_instance::lock_instance,
        machine::LockedSource,
        observation::{IntakeContext, PostObservation},
        post_intake, profile_change, quarantine,
    },
    posts::{account_profile::StoredProfiles, reference},
    refresh::{Claims, Look, RecountContext},
};

/// A page to commit, with the machine that requested it.
#[derive(Clone, Copy, Debug)]
pub struct CommitPage<'a> {
    /// The source; the write's root is [`crate::mirror::source::root`] of it.
    pub source: SourceKey,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The machine before the page.
    pub machine: &'a Machine,
    /// The source's settings.
    pub settings: &'a Settings,
    /// The abilities of the upstream's timeline.
    pub abilities: Abilities,
    /// The request.
    pub request: &'a Request,
    /// The page's checked IDs.
    pub reading: &'a Reading,
    /// The page.
    pub page: &'a Page,
    /// The policy for refreshing posts from now on.
    pub policy: &'a Policy,
    /// The claims of this process's workers. A page leaves the claimed posts to them.
    pub claims: &'a Claims,
    /// The present time in Unix ms.
    pub now_ms: i64,
}

/// Commits a page: its posts, its evidence about stored ones, the ledger and the machine. Returns
/// the machine after the page.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::LeaseLost`] if another
/// worker has taken over the source; [`StoreError::PageMismatch`] if the posts do not match the
/// checked IDs; [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if
/// the database fails.
pub fn commit_page(
    tx: &mut Tx<'_>,
    commit: &CommitPage<'_>,
) -> Result<(Machine, CommitSummary), StoreError> {
    let CommitPage { reading, page, .. } = *commit;
    let (posts, keys) = (page.listed.len(), reading.keys.len());
    if posts != keys {
        return Err(StoreError::PageMismatch { posts, keys });
    }
    let asked_at_ms = page.headers.sent_at_ms;
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
    let listed: HashSet<&str> = listed.iter().map(Key::as_str).collect();
    // The root and all rows of the source itself need one round trip.
    let source = LockedSource::load_later(tx, commit.source)?;
    let gaps = gap::load_later(tx, commit.source)?;
    let entries = PendingEntries::ask(tx, commit, is_history)?;
    let authors = page.listed.iter().map(|listed| &listed.post.author);
    let profiles = StoredProfiles::ask(tx, commit.source, authors)?;
    let live = ranges
        .iter()
        .map(|(low, high)| {
            absence::live_later(tx, commit.source, (low, high), &listed, asked_at_ms)
        })
        .collect::<Result<_, _>>()?;
    let mut source = source.check(tx, commit.fence)?;
    let gaps = tx.rows(gaps)?;
    let listing = listing(tx, commit, entries, source.added_at_ms)?;
    let profiles = StoredProfiles::read(tx, profiles)?;
    let absent = absence::absent(tx, source.instance_id, live)?;
    let context = IntakeContext::answered(asked_at_ms, commit.now_ms, commit.policy);
    let recount = RecountContext {
        scope: source.scope,
        instance_id: source.instance_id,
        policy: commit.policy,
        claims: commit.claims,
        asked_at_ms,
        now_ms: commit.now_ms,
    };
    // From here on the instance may be locked, and at the end the local clock, for which other
    // sources wait. All earlier reads are done, or are sent together.
    entry::mark_shown(tx, source.key, &listing.shown)?;
    let proves = range.as_ref().filter(|_| is_proven);
    quarantine::take_in(tx, source.key, page, reading, proves)?;
    let departures = match is_proven {
        true => absence::take_in(tx, &mut source, absent, asked_at_ms)?,
        false => Absences::suspected(absent),
    };
    let live_below = match commit.machine.nothing_below(commit.request, reading) {
        Some(high) => Some(PendingBelow::ask(tx, commit.source, high)?),
        None => None,
    };
    // The transaction that has locked the instance may wait for rows that recounts write, so none
    // is written before the lock.
    let recounts = recount.ask(tx, listing.recount_candidates)?;
    let observations = &listing.observations;
    let held = lock_instance(tx, &source, observations, context)?;
    let unchanged = &listing.unchanged;
    profile_change::take_in(tx, &mut source, &profiles, unchanged, commit.now_ms)?;
    let recounted = recounts.read(tx)?.write(tx)?;
    let taken = match held {
        Some(held) => post_intake::take_in_held(tx, &mut source, observations, context, held)?,
        None => CommitSummary::default(),
    };
    let (instance, unmapped) = (source.instance_id, &recounted.unmapped);
    reference::assign(tx, instance, unmapped, commit.now_ms)?;
    let live_below = match live_below {
        Some(below) => below.read(tx)?,
        None => None,
    };
    let stored = Stored {
        live_below,
        new: listing.new,
        edited: taken.edited,
        absent: departures.suspects,
    };
    let machine = after_page(commit, &stored, is_history);
    source.save_over(tx, gaps, &machine)?;
    let summary = CommitSummary {
        absent: stored.absent.len() as u64,
        left: departures.left,
        recounted: recounted.posts,
        update_count: source.library.update_count,
        ..taken
    };
    Ok((machine, summary))
}

/// The readable parts of a range on a page: those where no unreadable item without a position may
/// represent a stored post, and the positions of the page's items.
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

fn after_page(commit: &CommitPage<'_>, stored: &Stored, is_history: bool) -> Machine {
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
    // The newest time counts, so that one backdated post does not end a history early.
    let times = page.listed.iter().map(|listed| listed.post.created_at_ms);
    if is_history && let Some(newest_ms) = times.flatten().max() {
        machine.history_reached(reading, newest_ms);
    }
    machine
}

/// The posts of a page, sorted by their treatment.
struct Listing<'a> {
    /// Posts that may be changes, the oldest first, with each position once.
    observations: Vec<PostObservation<'a>>,
    /// The living entries whose posts' content has not changed and that all readers of the source are shown, the oldest first,
    /// with the authors as they are shown now.
    unchanged: Vec<(i64, &'a Author)>,
    /// The posts of unchanged entries whose counts may have changed.
    recount_candidates: Vec<(i64, &'a Post)>,
    /// For each listed post, true if no page of the source had shown it.
    new: Vec<bool>,
    /// The entries that only a stream had shown, or that were missing from a page.
    shown: Vec<i64>,
}

/// The source's entries for a page, requested together with the next query.
struct PendingEntries {
    /// True if the page lists each of its positions for the first time.
    is_once: Vec<bool>,
    entries: PendingRows<'static, entry::KnownEntry>,
    /// The highest position of the source, if a first page of history requests it.
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
        // A first page of history may contain posts above those that a stream has already shown.
        // They are new.
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

/// The lowest position of a post that was made since the source was added, by the server's clock.
/// Posts listed from there on are not history. Times ahead of the server's are not evidence.
fn live_from<'r>(reading: &'r Reading, page: &Page, added_at_ms: i64) -> Option<&'r Key> {
    let ahead_ms = page
        .headers
        .date_ms
        .map_or(0, |ms| ms - page.headers.received_at_ms);
    let since_ms = added_at_ms.min(page.headers.received_at_ms) + ahead_ms;
    let is_live = |(key, listed): &(&Key, &Listed)| {
        let of_position = reading.scheme.and_then(|scheme| scheme.time_ms(key));
        let time_ms = of_position.or(listed.post.created_at_ms);
        time_ms.is_some_and(|ms| (since_ms..=reading.answered_by_ms).contains(&ms))
    };
    let listed = reading.keys.iter().zip(&page.listed).filter(is_live);
    listed.map(|(key, _)| key).min()
}

fn listing<'a>(
    tx: &mut Tx<'_>,
    commit: &CommitPage<'a>,
    pending: PendingEntries,
    added_at_ms: i64,
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
    let live_from = live_from(reading, page, added_at_ms);
    let is_below = |key: &Key| {
        newest.is_none_or(|newest| key.as_str() <= newest)
            && live_from.is_none_or(|from| key < from)
    };
    // The page above a range in doubt begins above it.
    let end = match &commit.request.purpose {
        RequestPurpose::Fill { high, .. } => Some(high),
        _ => None,
    };
    let mut entries = entry::by_position(tx.rows(pending.entries)?);
    let mut observations = Vec::new();
    let mut unchanged = Vec::new();
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
        let is_marked = |entry: &&entry::KnownEntry| entry.streamed || entry.is_absent;
        shown.extend(entry.as_ref().filter(is_marked).map(|entry| entry.id));
        new[index] = streamed.is_some() || entry.is_none();
        let position_ms = reading.scheme.and_then(|scheme| scheme.time_ms(key));
        let mut observation = PostObservation::new(&listed.post, key.as_str(), position_ms, entry);
        observation.is_history = is_history && is_below(key) && end.is_none_or(|end| key < end);
        if observation.may_be_news() {
            observations.push(observation);
        } else if let Some(entry) = &observation.entry {
            if listed.post.visibility.narrowness() <= Visibility::Unlisted.narrowness() {
                unchanged.push((entry.id, &listed.post.author));
            }
            let is_outdated =
                |look: Look| look.is_outdated_by(&listed.post, page.headers.sent_at_ms);
            if entry.look.is_some_and(is_outdated) {
                recount_candidates.push((entry.post_id, &listed.post));
            }
        }
    }
    Ok(Listing {
        observations,
        unchanged,
        recount_candidates,
        new,
        shown,
    })
}
