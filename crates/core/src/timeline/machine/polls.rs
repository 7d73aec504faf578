//! What polls have had recently.

use serde::{Deserialize, Serialize};

/// The polls of a source. Times are Unix ms by the local clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Polls {
    /// How many had a usable answer.
    pub answered: u64,
    /// When the first of them was answered.
    pub first_ms: Option<i64>,
    /// When the last of them was answered.
    pub last_ms: Option<i64>,
    /// When a page last showed a post that none had shown before.
    pub news_ms: Option<i64>,
}

impl Polls {
    /// A poll had a usable answer.
    pub(super) fn answered(&mut self, now_ms: i64) {
        self.answered = self.answered.saturating_add(1);
        self.first_ms.get_or_insert(now_ms);
        self.last_ms = Some(now_ms);
    }

    /// Visits each of its times, which are of the past.
    pub(super) fn each_local_time(&mut self, visit: &mut impl FnMut(&mut i64)) {
        let times = [&mut self.first_ms, &mut self.last_ms, &mut self.news_ms];
        times.into_iter().flatten().for_each(visit);
    }

    /// For how long pages have shown nothing new, ms; `None` before the first poll.
    pub fn quiet_ms(&self, now_ms: i64) -> Option<i64> {
        let since_ms = self.news_ms.max(self.first_ms)?;
        Some(now_ms.saturating_sub(since_ms))
    }
}
