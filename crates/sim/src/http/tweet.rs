//! Posts as both of Twitter's APIs see them.

use driftline_core::post::Counts;
use jiff::Timestamp;

use super::sim::Sim;
use crate::status::{SimAuthor, Status};

/// A post and what is counted on it.
pub(crate) struct Tweet<'s> {
    pub(crate) status: &'s Status,
    pub(crate) counts: Counts,
    pub(crate) boosted: Option<Box<Tweet<'s>>>,
}

impl<'s> Tweet<'s> {
    /// Posts as they are now.
    pub(crate) fn all(sim: &Sim, statuses: &'s [Status]) -> Vec<Self> {
        let now_ms = sim.clock.now_ms();
        let tweets = statuses.iter().map(|status| Self::of(sim, now_ms, status));
        tweets.collect()
    }

    /// A repost counts the reposts of what it reposts, and nothing else.
    pub(crate) fn of(sim: &Sim, now_ms: i64, status: &'s Status) -> Self {
        let boosted = status.boost_of.as_deref();
        let boosted = boosted.map(|boosted| Box::new(Self::of(sim, now_ms, boosted)));
        let counts = match &boosted {
            Some(boosted) => Counts {
                boosts: boosted.counts.boosts,
                ..Counts::default()
            },
            // The numbers that the status was made with, as time goes on.
            None => Counts {
                replies: Some(status.replies),
                boosts: Some(status.boosts),
                favourites: Some(status.favourites),
                ..sim.counts_at(now_ms, &status.id).unwrap_or_default()
            },
        };
        Self {
            status,
            counts,
            boosted,
        }
    }

    /// The text without markup; a repost's is that of what it reposts.
    pub(crate) fn text(&self) -> String {
        match &self.boosted {
            Some(boosted) => {
                format!("RT @{}: {}", boosted.status.author.name, boosted.text())
            }
            None => self
                .status
                .content
                .trim_start_matches("<p>")
                .trim_end_matches("</p>")
                .to_owned(),
        }
    }

    pub(crate) fn author(&self) -> &'s SimAuthor {
        &self.status.author
    }
}

/// `Wed Oct 10 20:19:24 +0000 2018`.
pub(crate) fn twitter_date(unix_ms: i64) -> String {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%a %b %d %H:%M:%S +0000 %Y").to_string()
}

/// The language of every post.
pub(crate) const LANGUAGE: &str = "en";
/// When every account was made, Unix ms.
pub(crate) const ACCOUNTS_MADE_AT_MS: i64 = 1_262_304_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_documentation() {
        let date = twitter_date(1_539_202_764_000);
        assert_eq!(date, "Wed Oct 10 20:19:24 +0000 2018");
        assert_eq!(
            twitter_date(1_759_745_045_000),
            "Mon Oct 06 10:04:05 +0000 2025"
        );
    }
}
