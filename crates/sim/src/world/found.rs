//! Look-ups, and what is true of one post.

use driftline_core::{post::Counts, upstream_id::UpstreamId};

use super::{HIDING, OTHER_FOUND, World};
use crate::{
    quirks::BoostLookUps,
    record::Record,
    rng::{Rng, hash_text, mix},
    status::Status,
};

/// What a look-up finds in the world, before any fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The post in its current state.
    Shown(Box<Status>),
    /// The post is there, but hidden from readers (see
    /// [`crate::WorldConfig::hidden_share`]).
    Hidden,
    /// There is no such post, not yet or not any more.
    Absent,
}

impl Found {
    /// The post, if it is shown.
    pub fn shown(self) -> Option<Status> {
        match self {
            Self::Shown(status) => Some(*status),
            Self::Hidden | Self::Absent => None,
        }
    }
}

impl World {
    /// The post of an ID, if it is visible at a time, Unix ms.
    pub fn look_up(&mut self, now_ms: i64, id: &UpstreamId) -> Option<Status> {
        self.find(now_ms, id).shown()
    }

    /// What became of the post of an ID at a time, Unix ms.
    pub fn find(&mut self, now_ms: i64, id: &UpstreamId) -> Found {
        self.advance(now_ms);
        let Some(index) = self.index(id) else {
            return Found::Absent;
        };
        let record = self.record(index);
        if !record.is_visible(now_ms) || self.is_filtered(record) {
            Found::Absent
        } else if self.is_hidden(record, now_ms) {
            Found::Hidden
        } else {
            Found::Shown(Box::new(self.status(index, now_ms)))
        }
    }

    /// The first ID of a published post, by any of its IDs.
    pub fn first_id(&self, id: &UpstreamId) -> Option<UpstreamId> {
        let record = self.record(self.index(id)?);
        Some(self.config.layout.id(record.value))
    }

    /// What a look-up by this ID answers at a time, Unix ms: what is true but for the quirks.
    pub fn answer_look_up(&mut self, now_ms: i64, id: &UpstreamId) -> Found {
        let found = self.find(now_ms, id);
        let (Found::Shown(_), Some(index)) = (&found, self.index(id)) else {
            return found;
        };
        let (record, quirks) = (self.record(index), &self.config.quirks);
        if self.is_unboosted(record, now_ms) {
            return Found::Absent;
        }
        let other = match record.boost_of {
            Some(boosted) => match quirks.boosts {
                BoostLookUps::Found => None,
                BoostLookUps::NotFound => return Found::Absent,
                BoostLookUps::Boosted => Some(boosted),
            },
            None => Rng::stream(mix(self.seed, record.genes), OTHER_FOUND)
                .happens(quirks.other_found_share)
                .then(|| self.any_other(index, now_ms))
                .flatten(),
        };
        match other {
            Some(other) => Found::Shown(Box::new(self.status(other, now_ms))),
            None => found,
        }
    }

    /// A published post as it was before its edit; `None` if it was not edited by a time, Unix ms.
    pub fn before_edit(&self, now_ms: i64, id: &UpstreamId) -> Option<Status> {
        let index = self.index(id)?;
        let edited_at_ms = self.record(index).edited_at_ms(now_ms)?;
        Some(self.status(index, edited_at_ms - 1))
    }

    /// The newest post but this one.
    fn any_other(&self, index: u32, now_ms: i64) -> Option<u32> {
        let mut others = self.by_key.values().rev().copied();
        others.find(|&other| {
            let record = self.record(other);
            other != index
                && record.is_visible(now_ms)
                && !self.is_filtered(record)
                && !self.is_hidden(record, now_ms)
        })
    }

    /// What is truly counted on a published post at a time, Unix ms: past or
    /// to come, shown or not; a deleted post keeps what it had. `None` for a
    /// post that the world has not published yet and before it is visible.
    pub fn counts_at(&self, now_ms: i64, id: &UpstreamId) -> Option<Counts> {
        let record = self.record(self.index(id)?);
        (record.visible_at_ms <= now_ms).then(|| self.counts(record, now_ms))
    }

    /// When a published post is hidden from readers, Unix ms, if it ever is.
    pub fn hidden_at_ms(&self, id: &UpstreamId) -> Option<i64> {
        self.hiding(self.record(self.index(id)?))
    }

    pub(super) fn is_hidden(&self, record: &Record, now_ms: i64) -> bool {
        self.hiding(record).is_some_and(|at_ms| at_ms <= now_ms)
    }

    pub(super) fn hiding(&self, record: &Record) -> Option<i64> {
        if self.config.hidden_share <= 0.0 {
            return None;
        }
        let mut rng = Rng::stream(mix(self.seed, record.genes), HIDING);
        let hides = rng.happens(self.config.hidden_share);
        let after_ms = self.config.hidden_after_ms.draw(&mut rng).max(0);
        hides.then(|| record.visible_at_ms.saturating_add(after_ms))
    }

    pub(super) fn index(&self, id: &UpstreamId) -> Option<u32> {
        let key = self.key(id)?;
        let others = [key.clone(), self.key(&id.stable())?];
        let mut others = others.iter().filter_map(|key| self.by_other_key.get(key));
        self.by_key.get(&key).or_else(|| others.next()).copied()
    }
}

/// Each ID once, in the order of an answer.
pub(crate) fn answer_order(ids: &[UpstreamId], shuffled: bool) -> Vec<UpstreamId> {
    let mut seen = std::collections::HashSet::new();
    let mut ids: Vec<UpstreamId> = ids.iter().filter(|&id| seen.insert(id)).cloned().collect();
    if shuffled {
        ids.sort_by_cached_key(|id| mix(hash_text(id.as_str()), 1));
    }
    ids
}
