use serde::{Deserialize, Serialize};

use super::{
    age_table::Due,
    notification::is_worth_notifying,
    policy::Policy,
    refresh_history::{EngagementSample, RefreshHistory},
    retry::{CONFIRM_MS, retry_ms},
};
use crate::{clock::is_older, post::Counts};

/// The freshness of a stored post, by its answers so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Freshness {
    /// The time of its creation, in Unix ms.
    pub created_at_ms: Option<i64>,
    /// The time of the request whose answer first showed it, in Unix ms.
    pub first_ms: i64,
    /// The time of the request for the newest stored answer, in Unix ms.
    pub refreshed_ms: i64,
    /// The number of look-ups that have answered it. Polls that show it are not counted, because
    /// they end no wait for a probe.
    pub refreshes: u32,
    /// The number of consecutive look-ups without an answer on it.
    pub failures: u32,
    /// True if the last answer omitted it without an error.
    pub missing: bool,
    /// Its last known counts.
    pub counts: Counts,
    /// Its total and its time at the answer before the last.
    pub before: Option<CountSample>,
    /// The counts at the last notification of libraries.
    pub notified: CountSample,
    /// The first source that stored it, by its number in the store.
    pub source: Option<u64>,
}

/// A post's total of counts at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CountSample {
    /// The time in Unix ms.
    pub at_ms: i64,
    /// The total: see [`Counts::total`].
    pub total: i64,
}

/// The result of a look-up for one post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupResult {
    /// The post exists.
    Seen {
        /// Its counts.
        counts: Counts,
        /// True if it differs from the stored version.
        changed: bool,
    },
    /// The answer omitted it, for an unknown reason.
    Missing,
    /// The post does not exist any more.
    Gone,
    /// The post exists, but is hidden from this reader.
    Hidden,
    /// The answer was not usable, or there was none.
    Nothing,
    /// A request for it and others had no usable answer, and the post at fault is unknown.
    Suspect,
    /// It was not requested, because no source with the post has a credential any more.
    NoCredential,
    /// It was not requested, because look-ups with the credential find no posts of its kind.
    Unsupported,
}

named_enum! {
    /// The outcome of a look-up for one post.
    pub enum LookupOutcome: "snake_case" {
        /// A change was stored.
        Updated,
        /// The post has not changed.
        Unchanged,
        /// A newer answer was already stored.
        Superseded,
        /// The answer omitted it. A second look-up must confirm that.
        Missing,
        /// It is deleted, and a tombstone stays.
        Deleted,
        /// It is hidden from the available credentials.
        Hidden,
        /// The answer was not usable. The post is due again soon. A suspect keeps its due time, and the
        /// search for the culprit continues with the next claim.
        Failed,
        /// Only private sources have it, or its author hides it, and none of its sources has a
        /// credential any more. It is not requested, but checked again from time to time.
        NoCredential,
        /// Look-ups with the credential find no posts of its kind, as some find no boosts. It is not
        /// requested, but checked again from time to time. Pages that show it are its refreshes.
        Unsupported,
    }
}

/// The context of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestContext {
    /// The time of the request, in Unix ms. Answers are ordered by it.
    pub at_ms: i64,
    /// The present time, in Unix ms.
    pub now_ms: i64,
    /// The due time of the post, in Unix ms.
    pub due_ms: i64,
    /// A random number, which spreads retries.
    pub random: u64,
    /// True if everyone may see the post, so that an answer without it means that it is deleted.
    pub is_open: bool,
}

/// The consequences of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The post's new freshness.
    pub freshness: Freshness,
    /// The outcome.
    pub outcome: LookupOutcome,
    /// The next due time.
    pub due: Due,
    /// True if libraries must be notified of its counts.
    pub notify: bool,
}

impl Freshness {
    /// The freshness of a post that is stored for the first time.
    pub fn first(created_at_ms: Option<i64>, asked_ms: i64, counts: Counts) -> Self {
        let notified = CountSample {
            at_ms: asked_ms,
            total: counts.total(),
        };
        Self {
            created_at_ms,
            first_ms: asked_ms,
            refreshed_ms: asked_ms,
            counts,
            notified,
            ..Self::default()
        }
    }

    /// The input for planning the next refresh. Its times are those of answers, so a look-up
    /// without an answer does not change it.
    pub fn refresh_history(&self) -> RefreshHistory {
        RefreshHistory {
            created_at_ms: self.created_at_ms,
            refreshed_ms: self.refreshed_ms,
            refreshes: self.refreshes,
            total: self.counts.total() as f64,
            before: self.before.map(|before| EngagementSample {
                at_ms: before.at_ms,
                total: before.total as f64,
            }),
            source: self.source,
        }
    }

    /// Applies the result of a look-up.
    pub fn take(&self, policy: &Policy, result: LookupResult, context: RequestContext) -> Decision {
        let is_late = is_older(context.at_ms, self.refreshed_ms, context.now_ms);
        let (mut freshness, outcome) = match result {
            LookupResult::Nothing | LookupResult::Suspect => {
                let failures = self.failures.saturating_add(1);
                (Self { failures, ..*self }, LookupOutcome::Failed)
            }
            LookupResult::NoCredential => (*self, LookupOutcome::NoCredential),
            LookupResult::Unsupported => (*self, LookupOutcome::Unsupported),
            _ if is_late => (*self, LookupOutcome::Superseded),
            LookupResult::Seen { counts, changed } => {
                let seen = Self {
                    counts,
                    missing: false,
                    ..self.answered(context)
                };
                let outcome = if changed {
                    LookupOutcome::Updated
                } else {
                    LookupOutcome::Unchanged
                };
                (seen, outcome)
            }
            LookupResult::Missing if !self.missing => {
                let missing = true;
                (Self { missing, ..*self }, LookupOutcome::Missing)
            }
            LookupResult::Missing if !context.is_open => self.hidden(context),
            LookupResult::Hidden => self.hidden(context),
            LookupResult::Missing | LookupResult::Gone => {
                (self.answered(context), LookupOutcome::Deleted)
            }
        };
        let is_seen = matches!(outcome, LookupOutcome::Updated | LookupOutcome::Unchanged);
        let notify = is_seen && is_worth_notifying(policy.ages(), &freshness, context.now_ms);
        if notify {
            freshness.notified = CountSample {
                at_ms: context.now_ms,
                total: freshness.counts.total(),
            };
        }
        let due = match outcome {
            LookupOutcome::Missing => Due::At(context.now_ms.saturating_add(CONFIRM_MS)),
            LookupOutcome::Deleted => Due::Retired,
            LookupOutcome::NoCredential | LookupOutcome::Unsupported
                if policy.ages().holds(self.created_at_ms, context.now_ms) =>
            {
                Due::At(context.now_ms.saturating_add(NOT_ASKED_FOR_MS))
            }
            LookupOutcome::NoCredential | LookupOutcome::Unsupported => Due::Retired,
            LookupOutcome::Failed => {
                freshness.retry(policy, result == LookupResult::Suspect, context)
            }
            _ => policy.due(&freshness.refresh_history()),
        };
        Decision {
            freshness,
            outcome,
            due,
            notify,
        }
    }

    /// The next due time of a post without an answer. A suspect keeps its due time.
    fn retry(&self, policy: &Policy, is_suspect: bool, context: RequestContext) -> Due {
        let (ages, now_ms) = (policy.ages(), context.now_ms);
        if !ages.holds(self.created_at_ms, now_ms) {
            return Due::Retired;
        }
        if is_suspect {
            return Due::At(context.due_ms);
        }
        let age_ms = now_ms.saturating_sub(self.created_at_ms.unwrap_or(now_ms));
        let every_ms = ages.every_ms(age_ms).unwrap_or(0);
        let retry_ms = retry_ms(self.failures, every_ms, context.random);
        Due::At(now_ms.saturating_add(retry_ms))
    }

    fn hidden(&self, context: RequestContext) -> (Self, LookupOutcome) {
        let hidden = Self {
            missing: false,
            ..self.answered(context)
        };
        (hidden, LookupOutcome::Hidden)
    }

    fn answered(&self, context: RequestContext) -> Self {
        Self {
            before: Some(CountSample {
                at_ms: self.refreshed_ms,
                total: self.counts.total(),
            }),
            refreshed_ms: context.at_ms,
            refreshes: self.refreshes.saturating_add(1),
            failures: 0,
            ..*self
        }
    }
}

/// The wait of a post that was not requested, in ms. There may be another credential by then, or
/// the server may find such posts.
const NOT_ASKED_FOR_MS: i64 = 3_600_000;
