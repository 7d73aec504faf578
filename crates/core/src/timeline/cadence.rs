//! The poll interval while a stream shows the same posts.

use super::settings::Settings;

/// The growth of the time between two polls. It doubles after each poll that shows no post that the
/// stream missed, up to [`Settings::streamed_every_ms`]. A poll with such a post, and the stream's
/// end, reset it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cadence {
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// No stream is open.
    #[default]
    Alone,
    /// The stream is open. The next poll also shows earlier posts.
    Opened,
    /// Polls have started since it was opened.
    Growing {
        /// The factor of the interval's growth.
        times: u32,
    },
}

impl Cadence {
    /// Records that the stream was opened.
    pub fn opened(&mut self) {
        self.state = State::Opened;
    }

    /// Records that the stream has ended.
    pub fn lost(&mut self) {
        self.state = State::Alone;
    }

    /// Records a poll that has shown `shown` posts for the first time. The stream had not shown
    /// `missed` of them.
    pub fn polled(&mut self, shown: u64, missed: u64) {
        self.state = match self.state {
            State::Alone => State::Alone,
            State::Opened => State::Growing { times: 1 },
            State::Growing { .. } if missed > tolerated(shown) => State::Growing { times: 1 },
            State::Growing { times } => State::Growing {
                times: times.saturating_mul(2),
            },
        };
    }

    /// The time between two polls, ms.
    pub fn every_ms(&self, settings: &Settings) -> i64 {
        let State::Growing { times } = self.state else {
            return settings.every_ms;
        };
        let max_ms = settings.streamed_every_ms.max(settings.every_ms);
        settings
            .every_ms
            .saturating_mul(i64::from(times))
            .min(max_ms)
    }
}

/// The number of posts that a stream may miss. A few become visible just before a poll, which then
/// shows them first.
fn tolerated(shown: u64) -> u64 {
    (shown / 10).max(u64::from(shown > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_grow_rare_while_the_stream_shows_all_and_are_as_before_once_it_does_not() {
        let settings = Settings {
            every_ms: 3_000,
            streamed_every_ms: 15_000,
            ..Settings::default()
        };
        let mut cadence = Cadence::default();
        let poll = |cadence: &mut Cadence, shown, missed| {
            cadence.polled(shown, missed);
            cadence.every_ms(&settings)
        };
        assert_eq!(poll(&mut cadence, 5, 5), 3_000, "no stream");
        cadence.opened();
        assert_eq!(poll(&mut cadence, 5, 5), 3_000, "from before it was open");
        assert_eq!(poll(&mut cadence, 0, 0), 6_000);
        assert_eq!(poll(&mut cadence, 20, 2), 12_000, "two came just then");
        assert_eq!(poll(&mut cadence, 20, 0), 15_000, "not beyond the bound");
        for _ in 0..100 {
            assert_eq!(poll(&mut cadence, 1, 0), 15_000);
        }
        assert_eq!(poll(&mut cadence, 20, 3), 3_000, "it misses posts");
        assert_eq!(poll(&mut cadence, 20, 0), 6_000);
        assert_eq!(poll(&mut cadence, 1, 1), 3_000, "all that there was");
        assert_eq!(poll(&mut cadence, 2, 1), 6_000);
        cadence.lost();
        assert_eq!(cadence.every_ms(&settings), 3_000);
        assert_eq!(poll(&mut cadence, 0, 0), 3_000);
        let rare = Settings {
            every_ms: 60_000,
            ..settings.clone()
        };
        cadence.opened();
        poll(&mut cadence, 0, 0);
        poll(&mut cadence, 0, 0);
        assert_eq!(cadence.every_ms(&rare), 60_000, "not more frequent");
    }
}
