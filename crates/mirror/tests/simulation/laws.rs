//! What must hold at every commit, and when all has come of age.
//!
//! *Shown* is every post on a page that the upstream answered, also where
//! nothing came of the answer: its commit failed, or the process died with it
//! in hand. At every commit each post that was shown is stored, or lies in a
//! range that the stored ledger lists, or below the history that was asked
//! for, or was deleted at the upstream before it could be read again.
//!
//! At the end everything that the upstream shows from the ledger's origin on
//! is stored or lies in a range that the ledger lists; but for an upstream that
//! shows some pages only: what was too deep when it became visible, and what lies
//! below all that is stored, no request could show, and nothing tells how much
//! deeper the timeline goes; and but for what lies below all that is stored, under
//! a run of filtered posts as long as a page: each page of the run is empty, and
//! the places further down that are asked from may all lie in it. *Known* is what a committed answer or event said of a stored
//! post: a version that it showed, or that the post is gone; the newest such
//! answer wins, and the store must say the same. What happened to a post
//! before it was as old as the last rung is known, since that rung has read
//! its range after that.

use std::collections::{BTreeMap, HashMap, HashSet};

use driftline_core::{
    answer::Page,
    post::Post,
    timeline::{Backfill, GapKind, IdScheme, Machine},
    upstream_id::{Key, UpstreamId},
};
use driftline_sim::{Found, TruePost, Upstream, content_hash};
use driftline_store::{SourceKey, Store, export, machine};

use crate::{
    ledger::{is_covered, is_listed, sound},
    quirk_laws::{self, Refusals},
    settings::{Drawn, SECOND_MS},
    stored_edits::stored_edits,
};

/// A law that does not hold.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Violation {
    /// A post was shown, is not stored, and no range lists its place.
    #[error("unaccounted for: {0}")]
    Unaccounted(String),
    /// The ledger's ranges make no sense.
    #[error("the ledger: {0}")]
    GapLedger(String),
    /// Coverage began later without cause.
    #[error("the origin: {0}")]
    Origin(String),
    /// A post is missing at the end.
    #[error("missing: {0}")]
    Missing(String),
    /// A post is stored otherwise than it is known.
    #[error("another content: {0}")]
    Content(String),
    /// The source is stalled.
    #[error("stalled: {0}")]
    Stalled(String),
    /// Ranges stay unread for ever.
    #[error("does not settle: {0}")]
    Unsettled(String),
    /// The store refused what it should take.
    #[error("refused by the store: {0}")]
    Refused(String),
}

/// What a commit was of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Commit {
    /// A page of the history that the source begins with, and what it listed.
    History(Vec<Key>),
    /// A poll.
    Poll,
    /// Anything else.
    Other,
}

pub(crate) struct Laws {
    source: SourceKey,
    drawn: Drawn,
    /// Posts that were shown and are not stored.
    pending: BTreeMap<String, UpstreamId>,
    /// The true time at which each post was stored first, Unix ms.
    stored: HashMap<UpstreamId, i64>,
    last_usn: i64,
    origin: Option<Key>,
    origin_moves: u32,
    /// The lowest post of history that is stored, and how many pages brought.
    lowest_history: Option<Key>,
    history: u64,
    /// Posts that were shown as edited.
    edited: HashSet<UpstreamId>,
    /// When the newest answer was asked for that showed a post, Unix ms.
    alive: HashMap<UpstreamId, i64>,
    /// The most replies, boosts and favourites that a saved refresh had: they only grow.
    counted: HashMap<UpstreamId, [i64; 3]>,
    /// When the first answer that reported a post gone was requested, Unix ms.
    gone: HashMap<UpstreamId, i64>,
    /// Posts of which a newer answer spoke against their deletion.
    disputed: HashSet<UpstreamId>,
    /// The first IDs of posts whose ID an edit has changed, by which everything here names them.
    first_ids: HashMap<UpstreamId, UpstreamId>,
    pub(crate) refusals: Refusals,
}

impl Laws {
    pub(crate) fn new(source: SourceKey, drawn: &Drawn) -> Self {
        Self {
            source,
            drawn: drawn.clone(),
            pending: BTreeMap::new(),
            stored: HashMap::new(),
            last_usn: 0,
            origin: None,
            origin_moves: 0,
            lowest_history: None,
            history: 0,
            edited: HashSet::new(),
            alive: HashMap::new(),
            counted: HashMap::new(),
            gone: HashMap::new(),
            disputed: HashSet::new(),
            first_ids: HashMap::new(),
            refusals: Refusals::default(),
        }
    }

    /// The upstream answered with this page.
    pub(crate) fn answered(&mut self, page: &Page, upstream: &mut Upstream) {
        for listed in &page.listed {
            let id = self.first_id(upstream, &listed.position);
            if !self.stored.contains_key(&id) {
                self.pending.insert(id.to_string(), id);
            }
        }
    }

    /// The ID that a post had first.
    fn first_id(&mut self, upstream: &mut Upstream, id: &UpstreamId) -> UpstreamId {
        match upstream.world().first_id(id) {
            Some(first) if first != *id => {
                self.first_ids.insert(id.clone(), first.clone());
                first
            }
            _ => id.clone(),
        }
    }

    fn known_id<'a>(&'a self, id: &'a UpstreamId) -> &'a UpstreamId {
        self.first_ids.get(id).unwrap_or(id)
    }

    /// A commit showed this version of a stored post.
    pub(crate) fn shown_alive(&mut self, post: &Post, asked_at_ms: i64) {
        let id = self.known_id(&post.id).clone();
        if !self.stored.contains_key(&id) {
            return;
        }
        if post.edited_at_ms.is_some() {
            self.edited.insert(id.clone());
        }
        let newest = self.alive.entry(id).or_insert(asked_at_ms);
        *newest = asked_at_ms.max(*newest);
    }

    /// Records the counts of a saved refresh.
    pub(crate) fn told_counts(&mut self, post: &Post) {
        let reported = [
            post.counts.replies,
            post.counts.boosts,
            post.counts.favourites,
        ];
        let id = self.known_id(&post.id).clone();
        let most = self.counted.entry(id).or_default();
        for (most, count) in most.iter_mut().zip(reported) {
            *most = count.unwrap_or(0).max(*most);
        }
    }

    /// Records that a commit reported a stored post gone.
    pub(crate) fn reported_gone(&mut self, id: &UpstreamId, asked_at_ms: i64) {
        let id = &self.known_id(id).clone();
        if !self.stored.contains_key(id) {
            return;
        }
        if self.alive.get(id).is_some_and(|alive| *alive > asked_at_ms) {
            self.disputed.insert(id.clone());
        } else {
            self.gone.entry(id.clone()).or_insert(asked_at_ms);
        }
    }

    /// Checks what is stored after a commit, or after one that failed.
    pub(crate) fn check(
        &mut self,
        store: &Store,
        upstream: &mut Upstream,
        now_ms: i64,
        commit: &Commit,
    ) -> Result<(), Violation> {
        let (source, after) = (self.source, self.last_usn);
        let (machine, rows) = store
            .read_blocking(move |tx| {
                let rows = export::rows(tx, source, after, 1_000_000)?;
                Ok::<_, driftline_store::StoreError>((machine::load(tx, source)?, rows))
            })
            .unwrap();
        for row in rows {
            let id = self.first_id(upstream, &row.post.upstream_id.as_str().into());
            self.last_usn = row.first_usn;
            self.pending.remove(id.as_str());
            if self.stored.insert(id, now_ms).is_some() {
                return Err(Violation::GapLedger(format!("stored twice: {row:?}")));
            }
        }
        sound(machine.ledger())?;
        self.check_given_up(&machine, upstream, now_ms)?;
        self.check_origin(&machine, now_ms, commit)?;
        self.check_shown(&machine, upstream, now_ms)
    }

    fn check_shown(
        &mut self,
        machine: &Machine,
        upstream: &mut Upstream,
        now_ms: i64,
    ) -> Result<(), Violation> {
        let Some(scheme) = machine.scheme() else {
            return Ok(());
        };
        let ledger = machine.ledger();
        let unaccounted: Vec<UpstreamId> = self
            .pending
            .values()
            .filter(|id| is_covered(ledger, &key(scheme, id)))
            .cloned()
            .collect();
        for id in unaccounted {
            if matches!(upstream.world().find(now_ms, &id), Found::Shown(_)) {
                return Err(Violation::Unaccounted(format!(
                    "{id} was shown, is not stored, and no range lists it: {ledger:?}"
                )));
            }
            self.pending.remove(id.as_str());
        }
        Ok(())
    }

    /// What is given up was not available: the upstream does not reach down to it, cannot be asked
    /// for it, or shows nothing of it.
    fn check_given_up(
        &self,
        machine: &Machine,
        upstream: &mut Upstream,
        now_ms: i64,
    ) -> Result<(), Violation> {
        let is_reachable = !self.drawn.is_shallow() && !self.drawn.ignores_bounds();
        let is_reachable = is_reachable && !quirk_laws::has_no_order(&self.drawn, machine);
        let Some(scheme) = machine.scheme().filter(|_| is_reachable) else {
            return Ok(());
        };
        let gaps = machine.ledger().gaps().iter();
        for gap in gaps.filter(|gap| gap.kind == GapKind::Unrecoverable) {
            let (low, high) = (scheme.id(&gap.low), scheme.id(&gap.high));
            let low = Some(&low).filter(|_| !gap.low.is_lowest());
            if quirk_laws::is_one_time(&self.drawn, scheme, gap) {
                continue;
            }
            let places = self.drawn.page_places();
            if !upstream.world().may_hide(now_ms, (low, &high), places) {
                let text = format!("given up, though the upstream shows it: {gap:?}");
                return Err(Violation::GapLedger(text));
            }
        }
        Ok(())
    }

    /// Coverage begins where the history ends that was asked for, and that is
    /// told once.
    fn check_origin(
        &mut self,
        machine: &Machine,
        now_ms: i64,
        commit: &Commit,
    ) -> Result<(), Violation> {
        if let Commit::History(keys) = commit {
            self.history += keys.len() as u64;
            let lowest = keys.iter().chain(&self.lowest_history).min();
            self.lowest_history = lowest.cloned();
        }
        let origin = machine.ledger().origin().cloned();
        if origin == self.origin {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.origin, origin.clone());
        let history = self.history;
        let wrong = move |what: &str| {
            let text = format!("{what}: {before:?} to {origin:?} by {commit:?}, {history} posts");
            Err(Violation::Origin(text))
        };
        let Some(origin) = self.origin.clone() else {
            return wrong("coverage is gone");
        };
        let is_first = self.origin_moves == 0;
        self.origin_moves += 1;
        if self.origin_moves > 2 {
            return wrong("the origin moves again");
        }
        if !is_first && !matches!(commit, Commit::History(_)) {
            return wrong("the origin moves, and no history has ended");
        }
        if origin.is_lowest() {
            return if is_first {
                Ok(())
            } else {
                wrong("the origin moves down")
            };
        }
        let scheme = machine.scheme().copied();
        let time_ms = scheme.and_then(|scheme| scheme.time_ms(&origin));
        match self.drawn.settings.backfill {
            Backfill::All => return wrong("all history was asked for"),
            Backfill::Duration(ms) => match time_ms {
                Some(_) if !is_first => return wrong("the history ends at a time"),
                Some(time_ms) if time_ms > now_ms - ms => return wrong("later than asked for"),
                Some(_) => return Ok(()),
                None => {}
            },
            Backfill::None if !is_first => return wrong("no history was asked for"),
            Backfill::Count(count) if self.history < count => {
                return wrong("fewer posts than asked for");
            }
            Backfill::None | Backfill::Count(_) => {}
        }
        // Where the order is not precise, coverage begins after the oldest post's time.
        let end_of =
            |low: &Key| scheme.and_then(|of| of.floor(of.time_ms(low)? + of.precision_ms()));
        let lowest = self.lowest_history.as_ref();
        let end = lowest.map(|low| {
            end_of(low)
                .filter(|end| end > low)
                .unwrap_or_else(|| low.clone())
        });
        if end.is_some_and(|end| end < origin) {
            return wrong("above a stored post of history");
        }
        Ok(())
    }

    /// Checks what is stored when all has come of age.
    pub(crate) fn check_end(
        &self,
        store: &Store,
        upstream: &mut Upstream,
        now_ms: i64,
    ) -> Result<(), Violation> {
        let source = self.source;
        let (machine, rows) = store
            .read_blocking(move |tx| {
                let rows = export::rows(tx, source, 0, 1_000_000)?;
                Ok::<_, driftline_store::StoreError>((machine::load(tx, source)?, rows))
            })
            .unwrap();
        let ledger = machine.ledger();
        let truth = upstream.truth(now_ms);
        let rows: HashMap<UpstreamId, export::ExportRow> = rows
            .into_iter()
            .map(|row| {
                let id = UpstreamId::new(row.post.upstream_id.as_str());
                (upstream.world().first_id(&id).unwrap_or(id), row)
            })
            .collect();
        self.refusals.check()?;
        let edits = stored_edits(store);
        let mut is_lowest = true;
        let mut unreadable = Vec::new();
        for post in &truth.posts {
            is_lowest &= !rows.contains_key(&post.id);
            let key = machine.scheme().map(|scheme| key(scheme, &post.id));
            let Some(key) = key else { continue };
            let Some(row) = rows.get(&post.id) else {
                // A deleted post may have gone while nobody could look, and one
                // that came late may have been too deep by then.
                let is_there = post.deleted_at_ms.is_none()
                    && upstream.world().hidden_at_ms(&post.id).is_none();
                let is_there = is_there && !quirk_laws::leaves(upstream, post);
                let is_missing = is_there
                    && !self.was_too_deep(upstream, post, is_lowest)
                    && !(is_lowest && self.lies_under_a_hidden_page(upstream, post, &rows, now_ms));
                if post.is_unreadable {
                    if is_missing && is_covered(ledger, &key) {
                        unreadable.push(post.clone());
                    }
                    continue;
                }
                let is_missing = is_missing
                    && machine.unprovable().is_none()
                    && ledger.origin().is_some_and(|origin| *origin <= key)
                    && !is_listed(ledger, &key);
                if is_missing {
                    let scheme = machine.scheme();
                    return Err(Violation::Missing(format!(
                        "{post:?} of {ledger:?} {scheme:?}"
                    )));
                }
                continue;
            };
            self.check_post(upstream, post, row)?;
            let edits = edits.get(&row.post_id).copied().unwrap_or(0);
            quirk_laws::check_edits(upstream, post, edits, now_ms)?;
            if is_covered(ledger, &key) && !quirk_laws::leaves(upstream, post) {
                self.check_came_of_age(&machine, upstream, post, row, now_ms)?;
            } else if is_covered(ledger, &key) {
                let came_of_age_ms = post.id_time_ms + self.drawn.last_age_ms() - 2 * SECOND_MS;
                quirk_laws::check_returned(upstream, post, row, came_of_age_ms)?;
            }
        }
        quirk_laws::check_quarantined(store, source, upstream, &unreadable)?;
        let known: HashSet<&UpstreamId> = truth.posts.iter().map(|post| &post.id).collect();
        match rows.keys().find(|id| !known.contains(id)) {
            Some(id) => Err(Violation::Content(format!("{id} was never there"))),
            None => Ok(()),
        }
    }

    /// Whether no request could have shown a post: it was too deep when it became visible, or it
    /// is history of which the upstream showed nothing any more.
    fn was_too_deep(&self, upstream: &mut Upstream, post: &TruePost, is_lowest: bool) -> bool {
        let world = upstream.world();
        self.drawn.is_shallow()
            && (!world.reaches(post.visible_at_ms.max(self.drawn.start_ms()), &post.id)
                || is_lowest)
    }

    /// Whether a run of filtered posts as long as a page lies between a post and the lowest that
    /// is stored.
    fn lies_under_a_hidden_page(
        &self,
        upstream: &mut Upstream,
        post: &TruePost,
        rows: &HashMap<UpstreamId, export::ExportRow>,
        now_ms: i64,
    ) -> bool {
        let truth = upstream.truth(now_ms);
        let mut above = truth.posts.iter().skip_while(|other| other.id != post.id);
        let Some(lowest) = above.find(|other| rows.contains_key(&other.id)) else {
            return false;
        };
        let range = (Some(&post.id), &lowest.id);
        let places = self.drawn.page_places();
        upstream.world().may_hide(now_ms, range, places)
    }

    /// A post is stored as the newest answer showed it.
    fn check_post(
        &self,
        upstream: &mut Upstream,
        post: &TruePost,
        row: &export::ExportRow,
    ) -> Result<(), Violation> {
        let wrong = |what: &str| Err(Violation::Content(format!("{what}: {post:?}, {row:?}")));
        if row.post.deleted_at_ms.is_some() {
            let is_hidden = upstream.world().hidden_at_ms(&post.id).is_some()
                || quirk_laws::is_unboosted(upstream, post);
            return match (post.deleted_at_ms, &row.post.raw) {
                (None, _) if !is_hidden => wrong("it is not deleted"),
                (_, Some(_)) => wrong("it is deleted and has a body"),
                _ => Ok(()),
            };
        }
        if row.left_at_ms.is_some() {
            // What it was reported to be is its last state that the source shows.
            let is_out = upstream.world().hidden_at_ms(&post.id).is_some()
                || quirk_laws::leaves(upstream, post);
            return match post.deleted_at_ms {
                None if !is_out => wrong("it has left, and is listed"),
                _ => Ok(()),
            };
        }
        let gone_at_ms = self.gone.get(&post.id);
        let alive_at_ms = self.alive.get(&post.id);
        if gone_at_ms.is_some_and(|gone| alive_at_ms.is_none_or(|alive| alive <= gone)) {
            return wrong("it was reported gone");
        }
        if self.edited.contains(&post.id) && row.post.edited_at_ms.is_none() {
            return wrong("it was shown as edited");
        }
        if row.post.edited_at_ms.is_some() && post.edited_at_ms.is_none() {
            return wrong("it is not edited");
        }
        if let Some(most) = self.counted.get(&post.id) {
            let stored = counts_of(row);
            if stored.is_none_or(|stored| stored.iter().zip(most).any(|(one, most)| one < most)) {
                return wrong(&format!("counts of {stored:?}, reported {most:?}"));
            }
        }
        let truth = if row.post.edited_at_ms == post.edited_at_ms {
            post.content_hash
        } else {
            match upstream.world().find(post.visible_at_ms, &post.id) {
                Found::Shown(status) => status.content_hash(),
                Found::Hidden | Found::Absent => return Ok(()),
            }
        };
        if content_of(row) == Some(truth) {
            Ok(())
        } else {
            wrong("its text is another")
        }
    }

    /// What happened to a post before the last rung read it is known.
    fn check_came_of_age(
        &self,
        machine: &Machine,
        upstream: &mut Upstream,
        post: &TruePost,
        row: &export::ExportRow,
        now_ms: i64,
    ) -> Result<(), Violation> {
        let is_dropped = machine.counters().suspects_dropped > 0;
        if is_dropped || self.disputed.contains(&post.id) {
            return Ok(());
        }
        let until_ms = post.id_time_ms + self.drawn.last_age_ms() - 2 * SECOND_MS;
        // A stream may bring a post after the last rung.
        let stored_at_ms = self.stored.get(&post.id);
        if stored_at_ms.is_none_or(|at_ms| *at_ms > until_ms) {
            return Ok(());
        }
        let wrong = |what: &str| {
            let ledger = machine.ledger();
            let text = format!("{what}: {post:?}, {row:?} of {ledger:?}");
            Err(Violation::Content(text))
        };
        let is_gone = row.post.deleted_at_ms.is_some() || row.left_at_ms.is_some();
        // A look-up without a control that is found proves nothing.
        let is_confirmed = machine.counters().not_confirmed == 0;
        let is_proven = is_confirmed && self.drawn.proves_deletion(post);
        let is_proven = is_proven && !quirk_laws::may_be_unreadable(upstream, post, now_ms);
        if post.deleted_at_ms.is_some_and(|at_ms| at_ms < until_ms) && !is_gone && is_proven {
            return wrong("its deletion was not noticed");
        }
        let is_hidden = upstream.world().hidden_at_ms(&post.id).is_some();
        let is_shown = is_proven || !is_hidden;
        // Whoever comes after a deletion sees no edit.
        let is_shown = is_shown && post.deleted_at_ms.is_none_or(|at_ms| at_ms >= until_ms);
        let unedited = row.post.edited_at_ms.is_none() && !is_gone && is_shown;
        if post.edited_at_ms.is_some_and(|at_ms| at_ms < until_ms) && unedited {
            return wrong("its edit was not noticed");
        }
        Ok(())
    }
}

fn key(scheme: &IdScheme, id: &UpstreamId) -> Key {
    scheme.key(id).unwrap()
}

fn counts_of(row: &export::ExportRow) -> Option<[i64; 3]> {
    let status: serde_json::Value = serde_json::from_str(row.post.raw.as_deref()?).ok()?;
    let count = |name: &str| status.get(name)?.as_i64();
    Some([
        count("replies_count")?,
        count("reblogs_count")?,
        count("favourites_count")?,
    ])
}

fn content_of(row: &export::ExportRow) -> Option<u64> {
    let raw = row.post.raw.as_deref()?;
    let status: serde_json::Value = serde_json::from_str(raw).ok()?;
    Some(content_hash(status.get("content")?.as_str()?))
}
