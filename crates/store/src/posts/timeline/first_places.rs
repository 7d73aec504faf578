//! The places at which a timeline of several sources shows posts.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use driftline_core::names::object_uri::UriEvidence;
use driftline_db::Tx;
use driftline_id::Layout;

use super::{
    copies::Copies,
    entries::{PostEntry, came, entries},
    place::Place,
    rule::Rule,
    stored_post::StoredPost,
};
use crate::{error::StoreError, id_types::sql};

/// The places at which a timeline of several sources shows posts, with copies as one post: each at
/// the first of its places that came live, or else as history ([`came`]). Later entries only move
/// it up from a place of history. The end of the first copy does not move it either: its place
/// stays with the copies that were there before the first one ended.
#[derive(Default)]
pub(super) struct FirstPlaces {
    places: HashMap<i64, FirstPlace>,
    /// The copies that a source shows to the viewer now.
    shown: HashSet<i64>,
}

/// The place at which a timeline shows a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirstPlace {
    pub(super) place: i64,
    /// The copy that took it.
    taken_by: i64,
    /// The copy whose content is shown.
    pub(super) content: i64,
}

impl FirstPlaces {
    /// The places of these posts, as far as a timeline includes their entries; `posts` has their
    /// copies too.
    pub(super) fn load(
        tx: &mut Tx<'_>,
        posts: &HashMap<i64, StoredPost>,
        copies: &Copies,
        rule: &Rule<'_>,
    ) -> Result<FirstPlaces, StoreError> {
        // The place in the public timeline is stored with the post.
        let is_worlds = rule.is_of_world();
        let is_asked = |found: &&StoredPost| !is_worlds || copies.has(found.id());
        let entries = entries(tx, &posts.values().filter(is_asked))?;
        Ok(FirstPlaces::of(&entries, posts, copies, rule))
    }

    /// [`FirstPlaces::load`] with entries of the posts that have been read already.
    pub(super) fn of(
        entries: &[PostEntry],
        posts: &HashMap<i64, StoredPost>,
        copies: &Copies,
        rule: &Rule<'_>,
    ) -> FirstPlaces {
        let mut all = FirstPlaces::default();
        let Some(readable) = rule.readable() else {
            return all;
        };
        let mut groups: HashMap<i64, Group> = HashMap::new();
        let mut at_public: HashSet<i64> = HashSet::new();
        for entry in entries {
            let found = posts.get(&entry.post_id);
            let Some(found) = found.filter(|found| found.returns == entry.returns) else {
                continue;
            };
            let group = groups.entry(copies.first_of(entry.post_id)).or_default();
            let source = readable.of_raw(entry.source_id);
            let is_of_threads = source.is_some_and(|source| source.is_of_threads);
            let is_public = rule.has_public_place(entry, found);
            if is_public || rule.takes(entry, found) {
                group.known.insert(entry.post_id);
                let stay = Stay::of(entry, found, is_public);
                group.stays.push((is_of_threads && !is_public, stay));
            }
            if is_public {
                at_public.insert(entry.post_id);
            }
            if entry.is_shown(readable, found) {
                let came = Reverse(entry.came.1);
                group.offer(
                    (!is_of_threads, copies.evidence(entry.post_id), came),
                    entry.post_id,
                );
                all.shown.insert(entry.post_id);
            }
        }
        for (id, found) in posts.iter().filter(|(_, found)| found.listed) {
            let group = groups.entry(copies.first_of(*id)).or_default();
            let public = Stay::at_public_place(found);
            group.offer((true, copies.evidence(*id), Reverse(public.place)), *id);
            all.shown.insert(*id);
            match rule {
                // An entry may have left its source since then, which changes no place.
                Rule::Public(_) if !at_public.contains(id) => group.stays.push((false, public)),
                // A post that no source lists any more still has its place in the public timeline
                // of the world.
                Rule::Readable(_) => group.listed.push(public),
                _ => {}
            }
        }
        for id in posts.keys() {
            if let Some(group) = groups.get(&copies.first_of(*id))
                // To a viewer who may not read any copy the post does not exist, whatever others
                // show.
                && group.known.contains(id)
                && let Some(place) = group.place()
            {
                all.places.insert(*id, place);
            }
        }
        all
    }

    /// The place at which a post is shown, if the timeline has it.
    pub(super) fn of_post(&self, post_id: i64) -> Option<FirstPlace> {
        self.places.get(&post_id).copied()
    }

    /// True if a source shows the viewer this very copy now.
    pub(super) fn shows(&self, post_id: i64) -> bool {
        self.shown.contains(&post_id)
    }

    /// The copy whose content is shown at a place; `None` if its post stands elsewhere.
    pub(super) fn content_at(&self, place: &Place) -> Option<i64> {
        let first = self.of_post(place.post_id)?;
        let is_there = first.place == place.id && first.taken_by == place.post_id;
        is_there.then_some(first.content)
    }
}

/// The copies of a post, as a timeline includes them.
#[derive(Default)]
struct Group {
    /// The times at places. Each is marked as true if it is only in a thread.
    stays: Vec<(bool, Stay)>,
    /// The places at which the world's public timeline lists copies.
    listed: Vec<Stay>,
    /// The copies that the viewer may read, or could until they ended.
    known: HashSet<i64>,
    /// The copy with the best content, and its quality.
    best: Option<(Quality, i64)>,
}

/// The quality of a copy's content. A copy is better if it is refreshed, because a timeline has it;
/// then if its author's own server confirmed it; then if it came first.
type Quality = (bool, UriEvidence, Reverse<i64>);

impl Group {
    fn offer(&mut self, quality: Quality, id: i64) {
        self.known.insert(id);
        if self.best.is_none_or(|best| (quality, id) > best) {
            self.best = Some((quality, id));
        }
    }

    fn place(&self) -> Option<FirstPlace> {
        let content = self.best.map(|(_, id)| id)?;
        // A place in a timeline comes before one in a thread.
        let of_timelines = self
            .stays
            .iter()
            .filter(|(is_of_threads, _)| !is_of_threads);
        let held = held_place(of_timelines.map(|(_, stay)| stay))
            .or_else(|| held_place(self.stays.iter().map(|(_, stay)| stay)))
            .or_else(|| self.listed.iter().min_by_key(|stay| stay.place));
        held.map(|stay| FirstPlace {
            place: stay.place,
            taken_by: stay.post_id,
            content,
        })
    }
}

/// The time that a copy spent at a place.
struct Stay {
    post_id: i64,
    place: i64,
    came: (bool, i64),
    from_ms: i64,
    /// The end of that time; `None` while it is there.
    until_ms: Option<i64>,
}

impl Stay {
    fn of(entry: &PostEntry, found: &StoredPost, is_public: bool) -> Stay {
        Stay {
            post_id: entry.post_id,
            place: entry.id,
            came: entry.came,
            // An entry whose post returned has a new ID, and arrived before.
            from_ms: entry.arrived_at_ms.max(id_time_ms(entry.came.1)),
            until_ms: match entry.gone && !is_public {
                true => Some(entry.left_at_ms.or(found.deleted_at_ms).unwrap_or(i64::MIN)),
                false => found.deleted_at_ms,
            },
        }
    }

    /// The place in the world's public timeline of a post that no source has there any more.
    fn at_public_place(found: &StoredPost) -> Stay {
        let place = sql(found.post.public_id);
        Stay {
            post_id: found.id(),
            place,
            came: came(place, found.from_history.then_some(place)),
            from_ms: id_time_ms(place),
            until_ms: found.deleted_at_ms,
        }
    }
}

/// The place that a post has now: some copy has been there at every moment since the place was
/// taken. A copy that came after all others had ended has its own place, because readers were told
/// about the end.
fn held_place<'s>(stays: impl Iterator<Item = &'s Stay>) -> Option<&'s Stay> {
    let mut stays: Vec<&Stay> = stays.collect();
    if stays.iter().all(|stay| stay.until_ms.is_some()) {
        return None;
    }
    // Entries that came with one page are ordered by their places.
    stays.sort_unstable_by_key(|stay| (stay.came.1, stay.place));
    let mut held: Option<&Stay> = None;
    let mut until_ms = i64::MIN;
    for stay in stays {
        let is_first = held.is_none_or(|held| stay.came < held.came);
        if is_first || until_ms < stay.from_ms {
            held = Some(stay);
        }
        until_ms = until_ms.max(stay.until_ms.unwrap_or(i64::MAX));
    }
    held
}

/// The approximate time at which an ID of the local clock was given, in Unix ms.
pub(super) fn id_time_ms(id: i64) -> i64 {
    Layout::PULSATE.time_ms(id.cast_unsigned().into())
}
