//! The recent results of polls.

use serde::{Deserialize, Serialize};

/// The polls of a source. Times are Unix ms by the local clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Polls {
    /// The number of polls with a usable answer.
    pub answered: u64,
    /// The time of the first of these answers.
    pub first_ms: Option<i64>,
    /// The time of the last of these answers.
    pub last_ms: Option<i64>,
    /// The time at which a page last showed a post that none had shown before.
    pub news_ms: Option<i64>,
}

impl Polls {
    /// Records a poll with a usable answer.
    pub(super) fn answered(&mut self, now_ms: i64) {
        self.answered = self.answered.saturating_add(1);
        self.first_ms.get_or_insert(now_ms);
        self.last_ms = Some(now_ms);
    }

    /// Visits each of its past times.
    pub(super) fn each_local_time(&mut self, visit: &mut impl FnMut(&mut i64)) {
        let times = [&mut self.first_ms, &mut self.last_ms, &mut self.news_ms];
        times.into_iter().flatten().for_each(visit);
    }

    /// The time for which pages have shown no new post, in ms; `None` before the first poll.
    pub fn quiet_ms(&self, now_ms: i64) -> Option<i64> {
        let since_ms = self.news_ms.max(self.first_ms)?;
        Some(now_ms.saturating_sub(since_ms))
    }
}
