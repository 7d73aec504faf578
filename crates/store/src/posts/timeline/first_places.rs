//! Where a timeline of several sources shows each post.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use driftline_core::object_uri::UriEvidence;
use driftline_db::Tx;
use driftline_id::Layout;

use super::{
    Rule,
    copies::Copies,
    entries::{PostEntry, entries},
    places::Place,
    stored::StoredPost,
};
use crate::{error::StoreError, id_types::sql};

/// Where a timeline of several sources shows posts: each at the place that it took first, copies as one post. What
/// is taken of it later never moves it, and neither does the end of the copy that was first: its place stays with
/// the others, if they were there before it ended.
pub(super) struct FirstPlaces(HashMap<i64, FirstPlace>);

/// Where a timeline shows a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirstPlace {
    pub(super) place: i64,
    /// The copy that took it.
    taken_by: i64,
    /// The copy whose content is shown.
    pub(super) content: i64,
}

impl FirstPlaces {
    /// Of those posts, as far as a timeline takes their entries; `posts` has their copies too.
    pub(super) fn load(
        tx: &mut Tx<'_>,
        posts: &HashMap<i64, StoredPost>,
        copies: &Copies,
        rule: &Rule<'_>,
    ) -> Result<FirstPlaces, StoreError> {
        // Where the world finds a post is stored with it.
        let is_asked = |found: &&StoredPost| match rule {
            Rule::Source(_) => false,
            Rule::World(_) => copies.has(sql(found.post.post_id)),
            Rule::Public(..) | Rule::Home(..) | Rule::Readable(_) => true,
        };
        let entries = entries(tx, &posts.values().filter(is_asked))?;
        Ok(FirstPlaces::of(&entries, posts, copies, rule))
    }

    /// [`FirstPlaces::load`], where the entries of the posts have been read.
    pub(super) fn of(
        entries: &[PostEntry],
        posts: &HashMap<i64, StoredPost>,
        copies: &Copies,
        rule: &Rule<'_>,
    ) -> FirstPlaces {
        let mut groups: HashMap<i64, Group> = HashMap::new();
        let mut at_public: HashSet<i64> = HashSet::new();
        for entry in entries {
            let Some(found) = posts.get(&entry.post_id) else {
                continue;
            };
            if entry.returns != found.returns {
                continue;
            }
            let group = groups.entry(copies.first_of(entry.post_id)).or_default();
            let is_public = rule.takes_public(entry, found);
            if is_public || rule.takes_entry(entry, found) {
                group.known.insert(entry.post_id);
                group.stays.push(Stay::of(entry, found, is_public, rule));
            }
            if is_public {
                at_public.insert(entry.post_id);
            }
            if rule.shows(entry, found) {
                group.known.insert(entry.post_id);
                group.candidate(entry, found, copies, rule);
            }
        }
        let is_listed = |(_, found): &(&i64, &StoredPost)| found.listed;
        for (id, found) in posts.iter().filter(is_listed) {
            let group = groups.entry(copies.first_of(*id)).or_default();
            group.known.insert(*id);
            // An entry may have left its source since, which changes no place.
            if matches!(rule, Rule::Public(..) | Rule::World(_)) && !at_public.contains(id) {
                group.stays.push(Stay::at_public_place(found));
            }
            if !matches!(rule, Rule::Source(_)) {
                group.listed(found, copies);
            }
        }
        let mut places = HashMap::with_capacity(posts.len());
        for id in posts.keys() {
            if let Some(group) = groups.get(&copies.first_of(*id))
                // To a viewer who may not read a copy it is not there, whatever others show.
                && group.known.contains(id)
                && let Some(place) = group.place(rule)
            {
                places.insert(*id, place);
            }
        }
        FirstPlaces(places)
    }

    /// Where a post is shown, if the timeline has it.
    pub(super) fn of_post(&self, post_id: i64) -> Option<FirstPlace> {
        self.0.get(&post_id).copied()
    }

    /// The copy whose content is shown at a place; `None` if its post stands elsewhere.
    pub(super) fn content_at(&self, place: &Place) -> Option<i64> {
        let first = self.of_post(place.post_id)?;
        let is_there = first.place == place.id && first.taken_by == place.post_id;
        is_there.then_some(first.content)
    }
}

/// The copies of a post, as a timeline takes them.
#[derive(Default)]
struct Group {
    stays: Vec<Stay>,
    /// The copies that the viewer may read, or might before they ended.
    known: HashSet<i64>,
    /// The copy whose content is best, and what makes it so.
    best: Option<(Quality, i64)>,
    /// The copy that the world's public timeline lists, and where.
    listed: Option<(i64, i64)>,
}

/// What makes the content of one copy better than that of another: it is refreshed, since a timeline has it;
/// its author's own server said so; it came first.
type Quality = (bool, UriEvidence, Reverse<(i64, Reverse<i64>)>);

impl Group {
    fn candidate(
        &mut self,
        entry: &PostEntry,
        found: &StoredPost,
        copies: &Copies,
        rule: &Rule<'_>,
    ) {
        let id = sql(found.post.post_id);
        let is_of_timeline = !rule.is_of_threads(entry);
        let came = Reverse(entry.standing().came);
        self.offer((is_of_timeline, copies.evidence(id), came), id);
    }

    fn listed(&mut self, found: &StoredPost, copies: &Copies) {
        let (id, place) = (sql(found.post.post_id), sql(found.post.public_id));
        self.offer(
            (true, copies.evidence(id), Reverse((place, Reverse(place)))),
            id,
        );
        let is_first = self.listed.is_none_or(|(_, first)| place < first);
        if is_first {
            self.listed = Some((id, place));
        }
    }

    fn offer(&mut self, quality: Quality, id: i64) {
        if self.best.is_none_or(|best| (quality, id) > best) {
            self.best = Some((quality, id));
        }
    }

    fn place(&self, rule: &Rule<'_>) -> Option<FirstPlace> {
        let content = self.best.map(|(_, id)| id)?;
        let of_timelines = self.stays.iter().filter(|stay| !stay.is_of_threads);
        // A place in a timeline comes before one in a thread.
        let held = held_place(of_timelines).or_else(|| held_place(self.stays.iter()));
        let held = held.or(match rule {
            // What no source lists any more is still where the world's public timeline has it.
            Rule::Readable(_) => self.listed,
            _ => None,
        });
        held.map(|(taken_by, place)| FirstPlace {
            place,
            taken_by,
            content,
        })
    }
}

/// The time that a copy spent at a place.
struct Stay {
    post_id: i64,
    place: i64,
    came: (i64, Reverse<i64>),
    from_ms: i64,
    /// `None` while it is there.
    until_ms: Option<i64>,
    is_of_threads: bool,
}

impl Stay {
    fn of(entry: &PostEntry, found: &StoredPost, is_public: bool, rule: &Rule<'_>) -> Stay {
        let until_ms = match entry.gone && !is_public {
            true => Some(entry.left_at_ms.or(found.deleted_at_ms).unwrap_or(i64::MIN)),
            false => found.deleted_at_ms,
        };
        let came = entry.standing().came;
        Stay {
            post_id: entry.post_id,
            place: entry.place,
            came,
            // An entry whose post returned has a new ID, and arrived before.
            from_ms: entry.arrived_at_ms.max(id_time_ms(came.0)),
            until_ms,
            is_of_threads: rule.finds_in_threads(entry),
        }
    }

    /// Where the world's public timeline has a post that no source has there any more.
    fn at_public_place(found: &StoredPost) -> Stay {
        let place = sql(found.post.public_id);
        Stay {
            post_id: sql(found.post.post_id),
            place,
            came: (place, Reverse(place)),
            from_ms: id_time_ms(place),
            until_ms: found.deleted_at_ms,
            is_of_threads: false,
        }
    }
}

/// The place that a post has now, and which copy took it: the first one since which some copy was always there. A
/// copy that came after all others had ended has a place of its own, since readers were told of the end.
fn held_place<'s>(stays: impl Iterator<Item = &'s Stay>) -> Option<(i64, i64)> {
    let mut stays: Vec<&Stay> = stays.collect();
    if stays.iter().all(|stay| stay.until_ms.is_some()) {
        return None;
    }
    stays.sort_unstable_by_key(|stay| stay.came);
    let mut held = None;
    let mut until_ms = i64::MIN;
    for stay in stays {
        if held.is_none() || until_ms < stay.from_ms {
            held = Some((stay.post_id, stay.place));
        }
        until_ms = until_ms.max(stay.until_ms.unwrap_or(i64::MAX));
    }
    held
}

/// When an ID of the local clock was given, about, Unix ms.
fn id_time_ms(id: i64) -> i64 {
    Layout::PULSATE.time_ms(id.cast_unsigned().into())
}
