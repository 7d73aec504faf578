//! What happens in a world, in order of time.

use std::collections::BTreeSet;

use driftline_core::upstream_id::UpstreamId;

use super::World;
use crate::status::Status;

/// A change that a watching reader would see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldEvent {
    /// When, Unix ms of the true clock.
    pub at_ms: i64,
    /// What.
    pub happening: Happening,
}

/// A kind of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// A post became visible.
    Appeared(Box<Status>),
    /// A post was edited.
    Edited(Box<Status>),
    /// A post was deleted. (One that gets hidden goes without a word.)
    Deleted(UpstreamId),
}

/// All events of the posts published so far: time, kind, record.
pub(super) type EventLog = BTreeSet<(i64, Kind, u32)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Appeared,
    Edited,
    Deleted,
}

impl World {
    /// What happened after a time and up to another, Unix ms, in order; each
    /// post in its state of that moment.
    pub fn events(&mut self, after_ms: i64, until_ms: i64) -> Vec<WorldEvent> {
        if self.events.is_none() {
            self.events = Some(EventLog::new());
            for index in 0..u32::try_from(self.records.len()).unwrap_or(u32::MAX) {
                self.log_events(index);
            }
        }
        self.advance(until_ms);
        if after_ms >= until_ms {
            return Vec::new();
        }
        let from = (after_ms.saturating_add(1), Kind::Appeared, 0);
        let to = (until_ms, Kind::Deleted, u32::MAX);
        let log = self.events.as_ref().into_iter();
        log.flat_map(|log| log.range(from..=to))
            .filter_map(|&(at_ms, kind, index)| self.event(at_ms, kind, index))
            .collect()
    }

    fn event(&self, at_ms: i64, kind: Kind, index: u32) -> Option<WorldEvent> {
        let record = self.record(index);
        if self.is_filtered(record) {
            return None;
        }
        let hidden = self.is_hidden(record, at_ms) || record.deleted_at_ms <= at_ms;
        let happening = match kind {
            Kind::Appeared | Kind::Edited if hidden => return None,
            Kind::Appeared => Happening::Appeared(Box::new(self.status(index, at_ms))),
            Kind::Edited => Happening::Edited(Box::new(self.status(index, at_ms))),
            Kind::Deleted => Happening::Deleted(self.id(index, at_ms)),
        };
        Some(WorldEvent { at_ms, happening })
    }

    pub(super) fn log_events(&mut self, index: u32) {
        let record = *self.record(index);
        let Some(log) = &mut self.events else { return };
        for (at_ms, kind) in [
            (record.visible_at_ms, Kind::Appeared),
            (record.edited_at_ms, Kind::Edited),
            (record.deleted_at_ms, Kind::Deleted),
        ] {
            if at_ms < i64::MAX {
                log.insert((at_ms, kind, index));
            }
        }
    }
}
