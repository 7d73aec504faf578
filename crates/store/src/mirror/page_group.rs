//! Pages of several sources that one transaction commits, in step.
//!
//! Each phase runs for all pages before the next one, so that what they send is merged and what they wait
//! for is waited for once. First all is locked and read: the sources, then the instances, both in the order of
//! their IDs. Then it is decided what becomes of each page, in memory: of pages of one instance each sees
//! the posts as the ones before leave them. Then all is written, the clock taken last.

use std::collections::{BTreeMap, HashSet};

use driftline_core::{
    timeline::{Machine, Stored},
    upstream_id::Key,
};
use driftline_db::Tx;

use super::{
    asked_page::{CheckedPage, after_page},
    commit_summary::CommitSummary,
    departure::{self, AbsentEntry, Departures, PendingAbsent},
    entry::{self, PendingBelow},
    held_instance::{HeldInstance, PendingInstance},
    intake::{Intake, IntakeContext},
    machine::LockedSource,
    page::PageOutcome,
    quarantine,
};
use crate::{
    error::StoreError,
    new_ids::NewIds,
    posts::{account, instance, reference},
    refresh::{PendingRecounts, RecountContext, Recounts},
};

/// What a page asks for along with the instances.
struct PendingPage<'c> {
    recounts: PendingRecounts<'c, 'c>,
    absent: PendingAbsent,
    live_below: Option<PendingBelow<'c>>,
}

/// What it was answered.
struct AnsweredPage<'c> {
    recounts: Recounts<'c, 'c>,
    absent: Vec<AbsentEntry>,
    live_below: Option<Key>,
}

/// What becomes of a page.
struct DecidedPage<'p> {
    /// Its place among the checked ones.
    at: usize,
    recounted: u64,
    departures: Departures,
    /// `None` if it may hold no news.
    intake: Option<Intake<'p>>,
}

/// Commits pages whose sources are locked, each with the place of its outcome.
pub(super) fn commit(
    tx: &mut Tx<'_>,
    mut sources: Vec<LockedSource>,
    mut pages: Vec<(usize, CheckedPage<'_>)>,
    outcomes: &mut [PageOutcome],
) -> Result<(), StoreError> {
    let Some(hash_stored) = pages.first().map(|(_, page)| page.commit.hash_stored) else {
        return Ok(());
    };
    let is_group = pages.len() > 1;
    let pending = ask(tx, &sources, &mut pages)?;
    let pages = &pages;
    let instances = ask_instances(tx, &sources, pages)?;
    let mut answered = Vec::with_capacity(pending.len());
    for page in pending {
        answered.push(page.read(tx)?);
    }
    let mut new_ids = NewIds::default();
    let mut held = read_instances(tx, instances, hash_stored, &mut new_ids)?;

    // Of one instance's pages the one that was asked for last decides last: the newest answer wins.
    let mut order: Vec<usize> = (0..pages.len()).collect();
    order.sort_by_key(|at| {
        let sent_at_ms = pages[*at].1.commit.page.headers.sent_at_ms;
        (sources[*at].instance_id, sent_at_ms)
    });
    let mut decided = Vec::with_capacity(order.len());
    tx.in_step(order, |tx, at| {
        let (source, page) = (&mut sources[at], &pages[at].1);
        let observations = &page.listing.observations;
        let of_instance = held.get_mut(&source.instance_id);
        let names_unknown = answered[at].recounts.name_unknown();
        let is_ahead = match &of_instance {
            Some(of_instance) => of_instance.is_ahead_of(source, observations),
            None => is_group && names_unknown,
        };
        if is_ahead {
            return Ok(());
        }
        if names_unknown && of_instance.is_none() {
            instance::hold(tx, source.instance_id)?;
        }
        let answer = &mut answered[at];
        let absent = std::mem::take(&mut answer.absent);
        let (departures, recounted) = write_seen(tx, source, page, absent, &answer.recounts)?;
        let intake = match of_instance {
            Some(of_instance) if !observations.is_empty() => {
                let given = (of_instance, &mut new_ids);
                let context = context(page);
                Some(Intake::decide(tx, source, observations, context, given)?)
            }
            _ => None,
        };
        decided.push(DecidedPage {
            at,
            recounted,
            departures,
            intake,
        });
        Ok::<_, StoreError>(())
    })?;

    // What the instances' posts need.
    let mut accounts: BTreeMap<i64, account::StoredIds> = BTreeMap::new();
    tx.in_step(held.values_mut(), |tx, of_instance| {
        let instance_id = of_instance.instance_id;
        let of_this = |page: &&DecidedPage<'_>| sources[page.at].instance_id == instance_id;
        let intakes = decided.iter().filter(of_this);
        let changes = intakes.filter_map(|page| Some(&page.intake.as_ref()?.changes));
        let stored = of_instance.store_named(tx, changes.clone())?;
        accounts.insert(instance_id, stored);
        Ok::<_, StoreError>(())
    })?;
    let none = account::StoredIds::default();
    let accounts_of = |instance_id| accounts.get(&instance_id).unwrap_or(&none);
    tx.in_step(&mut decided, |tx, page| match &mut page.intake {
        Some(intake) => {
            let source = &sources[page.at];
            intake.write_stored(tx, source, accounts_of(source.instance_id))
        }
        None => Ok(()),
    })?;
    // Here the clock is held, if it was not for history, and from here on nothing is awaited.
    let now_ms = pages.iter().map(|(_, page)| page.commit.now_ms).max();
    let first = sources.first().map_or(0, |source| source.instance_id);
    let ids = new_ids.take(tx, first, now_ms.unwrap_or_default())?;
    tx.in_step(&decided, |tx, page| match &page.intake {
        Some(intake) => {
            let source = &mut sources[page.at];
            let accounts = accounts_of(source.instance_id);
            intake.write_new(tx, source, accounts, &ids)
        }
        None => Ok(()),
    })?;
    tx.in_step(held.into_values(), |tx, of_instance| {
        of_instance.write_references(tx, &ids)
    })?;
    tx.in_step(decided, |tx, decided| {
        let (source, (index, page)) = (&sources[decided.at], &pages[decided.at]);
        let answer = &mut answered[decided.at];
        let (machine, summary) = save(tx, source, page, decided, answer)?;
        outcomes[*index] = PageOutcome::Committed(Box::new(machine), summary);
        Ok::<_, StoreError>(())
    })
}

fn context<'c>(page: &CheckedPage<'c>) -> IntakeContext<'c> {
    IntakeContext::answered(
        page.commit.page.headers.sent_at_ms,
        page.commit.now_ms,
        page.commit.policy,
        page.commit.hash_stored,
    )
}

/// Asks for what pages need beside their instances. Of one post the first page that shows it counts it.
fn ask<'c>(
    tx: &mut Tx<'_>,
    sources: &[LockedSource],
    pages: &mut [(usize, CheckedPage<'c>)],
) -> Result<Vec<PendingPage<'c>>, StoreError> {
    let mut pending = Vec::with_capacity(pages.len());
    let mut counted = HashSet::new();
    tx.in_step(sources.iter().zip(pages), |tx, (source, (_, page))| {
        let commit = page.commit;
        let recount = RecountContext {
            instance_id: source.instance_id,
            policy: commit.policy,
            claims: commit.claims,
            asked_at_ms: commit.page.headers.sent_at_ms,
            now_ms: commit.now_ms,
        };
        let mut candidates = std::mem::take(&mut page.listing.recount_candidates);
        let own: HashSet<i64> = candidates.iter().map(|(post_id, _)| *post_id).collect();
        candidates.retain(|(post_id, _)| !counted.contains(post_id));
        counted.extend(own);
        let absent = std::mem::take(&mut page.absent);
        pending.push(PendingPage {
            absent: PendingAbsent::ask(tx, source.instance_id, absent)?,
            live_below: match commit.machine.nothing_below(commit.request, commit.reading) {
                Some(high) => Some(PendingBelow::ask(tx, commit.source, high)?),
                None => None,
            },
            // Whoever holds the instance may wait for rows that recounts write, so that none is written
            // before it is held.
            recounts: recount.ask(tx, candidates)?,
        });
        Ok::<_, StoreError>(())
    })?;
    Ok(pending)
}

impl<'c> PendingPage<'c> {
    fn read(self, tx: &mut Tx<'_>) -> Result<AnsweredPage<'c>, StoreError> {
        Ok(AnsweredPage {
            absent: self.absent.read(tx)?,
            recounts: self.recounts.read(tx)?,
            live_below: match self.live_below {
                Some(below) => below.read(tx)?,
                None => None,
            },
        })
    }
}

/// Holds the instances of which pages may hold news, in the order of their IDs, and asks for what they have.
fn ask_instances(
    tx: &mut Tx<'_>,
    sources: &[LockedSource],
    pages: &[(usize, CheckedPage<'_>)],
) -> Result<Vec<PendingInstance>, StoreError> {
    let mut by_instance: BTreeMap<i64, Vec<&CheckedPage<'_>>> = BTreeMap::new();
    for (source, (_, page)) in sources.iter().zip(pages) {
        if !page.listing.observations.is_empty() {
            by_instance
                .entry(source.instance_id)
                .or_default()
                .push(page);
        }
    }
    let mut pending = Vec::with_capacity(by_instance.len());
    tx.in_step(by_instance, |tx, (instance_id, pages)| {
        let observations = pages.iter().flat_map(|page| &page.listing.observations);
        pending.push(PendingInstance::ask(tx, instance_id, observations)?);
        Ok::<_, StoreError>(())
    })?;
    Ok(pending)
}

fn read_instances(
    tx: &mut Tx<'_>,
    pending: Vec<PendingInstance>,
    hash_stored: crate::posts::rehash::HashStored,
    new_ids: &mut NewIds,
) -> Result<BTreeMap<i64, HeldInstance>, StoreError> {
    let mut with_posts = Vec::with_capacity(pending.len());
    tx.in_step(pending, |tx, instance| {
        with_posts.push(instance.ask_posts(tx)?);
        Ok::<_, StoreError>(())
    })?;
    let mut held = BTreeMap::new();
    tx.in_step(with_posts, |tx, instance| {
        let instance = instance.read(tx, hash_stored, new_ids)?;
        held.insert(instance.instance_id, instance);
        Ok::<_, StoreError>(())
    })?;
    Ok(held)
}

/// Writes what a page says of its source's stored entries, and the counts that it shows.
fn write_seen(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    page: &CheckedPage<'_>,
    absent: Vec<AbsentEntry>,
    recounts: &Recounts<'_, '_>,
) -> Result<(Departures, u64), StoreError> {
    let commit = page.commit;
    entry::mark_shown(tx, source.key, &page.listing.shown)?;
    quarantine::take_in(tx, source.key, commit.page, commit.reading, page.proves())?;
    let departures = match page.is_proven {
        true => departure::take_in(tx, source, absent, commit.page.headers.sent_at_ms)?,
        false => Departures::suspected(absent),
    };
    Ok((departures, recounts.write(tx)?))
}

/// Stores the machine after a page, and what is left to be written. Returns it.
fn save(
    tx: &mut Tx<'_>,
    source: &LockedSource,
    page: &CheckedPage<'_>,
    decided: DecidedPage<'_>,
    answer: &mut AnsweredPage<'_>,
) -> Result<(Machine, CommitSummary), StoreError> {
    let unmapped = &answer.recounts.unmapped;
    reference::assign(tx, source.instance_id, unmapped, page.commit.now_ms)?;
    let taken = decided.intake.map(|intake| intake.summary);
    let taken = taken.unwrap_or_default();
    let stored = Stored {
        live_below: answer.live_below.take(),
        new: page.listing.new.clone(),
        edited: taken.edited,
        absent: decided.departures.suspects,
    };
    let machine = after_page(page.commit, &stored, page.is_history);
    source.save_over(tx, page.gaps.clone(), &machine)?;
    let summary = CommitSummary {
        absent: stored.absent.len() as u64,
        left: decided.departures.left,
        recounted: decided.recounted,
        update_count: source.library.update_count,
        ..taken
    };
    Ok((machine, summary))
}
