//! Posts that a page should list and does not, until a look-up says what became of them.

use serde::{Deserialize, Serialize};

use super::Machine;
use crate::{
    answer::AnswerHeaders,
    upstream_id::{Key, UpstreamId},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Suspect {
    pub(super) id: UpstreamId,
    rung: usize,
}

impl Machine {
    /// Applies the result of a look-up of an absent post.
    pub fn looked_up(&mut self, id: &UpstreamId, gone: bool, headers: &AnswerHeaders) {
        self.apply_headers(headers);
        self.pace.work_failures = 0;
        self.update_empty_ranges(id, gone);
        let index = self.suspects.iter().position(|suspect| suspect.id == *id);
        let suspect = index.and_then(|index| self.suspects.remove(index));
        if gone {
            self.counters.deleted += 1;
            if let Some(Suspect { rung, .. }) = suspect {
                self.stats_of(rung).deleted += 1;
                let look = self.choice().and_then(|choice| choice.looks.get(rung));
                if let Some(age_ms) = look.map(|look| look.age_ms) {
                    self.changes.insert(age_ms, headers.received_at_ms);
                }
            }
        } else {
            self.counters.hidden += 1;
        }
    }

    /// Queues a look-up of an anchor that was not reached: it may be deleted, and
    /// an older one then replaces it.
    pub(super) fn suspect_anchor(&mut self, anchor: Option<&Key>) {
        if let (Some(scheme), Some(anchor)) = (self.scheme, anchor) {
            self.suspect(0, &[scheme.id(anchor)]);
        }
    }

    pub(super) fn suspect(&mut self, rung: usize, absent: &[UpstreamId]) {
        for id in absent {
            if self.suspects.iter().any(|suspect| suspect.id == *id) {
                continue;
            }
            if self.suspects.len() >= MAX_SUSPECTS {
                self.counters.suspects_dropped += 1;
                continue;
            }
            self.suspects.push_back(Suspect {
                id: id.clone(),
                rung,
            });
        }
    }
}

const MAX_SUSPECTS: usize = 80;
