use serde::{Deserialize, Serialize};

use super::{
    age_table::Due,
    facts::{Look, Refreshed},
    notifying::is_worth_notifying,
    policy::Policy,
    retry::{CONFIRM_MS, retry_ms},
};
use crate::post::Counts;

/// How fresh a stored post is: what its answers have said so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Freshness {
    /// When it was written, Unix ms.
    pub created_at_ms: Option<i64>,
    /// When the answer was asked for that it first came with, Unix ms.
    pub first_ms: i64,
    /// When the newest answer was asked for whose word is stored, Unix ms.
    pub refreshed_ms: i64,
    /// How often a look-up has told of it. Polls that show it are not counted: they end no wait
    /// for a probe.
    pub refreshes: u32,
    /// Look-ups in a row that brought no word of it.
    pub failures: u32,
    /// Whether the last answer left it out without a word.
    pub missing: bool,
    /// Its counts as last seen.
    pub counts: Counts,
    /// Its total and its time at the answer before the last.
    pub before: Option<Sample>,
    /// What libraries were last told of its counts.
    pub told: Sample,
    /// The source that it was first stored by, as the store numbers it.
    pub source: Option<u64>,
}

/// A post's total of counts at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Unix ms.
    pub at_ms: i64,
    /// See [`Counts::total`].
    pub total: i64,
}

/// What a look-up said of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupResult {
    /// It is there.
    Seen {
        /// Its counts.
        counts: Counts,
        /// Whether anything of it differs from what is stored.
        changed: bool,
    },
    /// It was left out, and might be anything.
    Missing,
    /// It does not exist any more.
    Gone,
    /// It exists, but not for this reader.
    Hidden,
    /// There was no usable answer.
    Nothing,
    /// There was no usable answer to a request for it and others, and which of them is at fault was
    /// not found out.
    Suspect,
}

/// What became of a post that was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Something changed, and is stored.
    Updated,
    /// Nothing changed.
    Unchanged,
    /// A newer answer was stored already.
    Superseded,
    /// The answer left it out; it is asked for once more before that means anything.
    Missing,
    /// It is deleted; a tombstone stays.
    Deleted,
    /// It may not be seen with the credentials at hand.
    Hidden,
    /// There was no usable answer; it is due again soon. A suspect is due as it was: the search for
    /// the culprit goes on with the next claim.
    Failed,
}

/// Where and when an answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestContext {
    /// When it was asked for, Unix ms: answers are ordered by this.
    pub at_ms: i64,
    /// The time, Unix ms.
    pub now_ms: i64,
    /// When the post was due, Unix ms.
    pub due_ms: i64,
    /// Any random number, to spread retries with.
    pub random: u64,
    /// Whether anyone may see the post, so that an answer without it means that it is gone.
    pub is_open: bool,
}

/// What a look-up leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The post's freshness now.
    pub freshness: Freshness,
    /// What became of it.
    pub outcome: Outcome,
    /// When it is due next.
    pub due: Due,
    /// Whether libraries are to be told of its counts.
    pub notify: bool,
}

impl Freshness {
    /// The freshness of a post that is stored for the first time.
    pub fn first(created_at_ms: Option<i64>, asked_ms: i64, counts: Counts) -> Self {
        let told = Sample {
            at_ms: asked_ms,
            total: counts.total(),
        };
        Self {
            created_at_ms,
            first_ms: asked_ms,
            refreshed_ms: asked_ms,
            counts,
            told,
            ..Self::default()
        }
    }

    /// What a policy plans the next refresh by. Times are those of answers, so a post that was
    /// looked up in vain is planned as before.
    pub fn facts(&self) -> Refreshed {
        Refreshed {
            created_at_ms: self.created_at_ms,
            refreshed_ms: self.refreshed_ms,
            refreshes: self.refreshes,
            total: self.counts.total() as f64,
            before: self.before.map(|before| Look {
                at_ms: before.at_ms,
                total: before.total as f64,
            }),
            weight: 1.0,
            source: self.source,
        }
    }

    /// Takes in what a look-up said.
    pub fn take(&self, policy: &Policy, word: LookupResult, asked: RequestContext) -> Decision {
        let is_late = asked.at_ms < self.refreshed_ms;
        match word {
            LookupResult::Nothing => self.failed(policy, asked),
            LookupResult::Suspect => self.suspected(policy, asked),
            _ if is_late => self.stays(policy, Outcome::Superseded),
            LookupResult::Seen { counts, changed } => self.seen(policy, counts, changed, asked),
            LookupResult::Missing if !self.missing => self.missed(asked),
            LookupResult::Missing if asked.is_open => self.ended(asked),
            LookupResult::Gone => self.ended(asked),
            LookupResult::Missing | LookupResult::Hidden => self.hidden(policy, asked),
        }
    }

    fn seen(
        &self,
        policy: &Policy,
        counts: Counts,
        changed: bool,
        asked: RequestContext,
    ) -> Decision {
        let mut freshness = self.answered(asked);
        freshness.counts = counts;
        freshness.missing = false;
        let notify = is_worth_notifying(policy.ages(), &freshness, asked.now_ms);
        if notify {
            freshness.told = Sample {
                at_ms: asked.now_ms,
                total: counts.total(),
            };
        }
        Decision {
            freshness,
            outcome: if changed {
                Outcome::Updated
            } else {
                Outcome::Unchanged
            },
            due: policy.due(&freshness.facts()),
            notify,
        }
    }

    fn missed(&self, asked: RequestContext) -> Decision {
        Decision {
            freshness: Self {
                missing: true,
                ..*self
            },
            outcome: Outcome::Missing,
            due: Due::At(asked.now_ms.saturating_add(CONFIRM_MS)),
            notify: false,
        }
    }

    fn ended(&self, asked: RequestContext) -> Decision {
        Decision {
            freshness: self.answered(asked),
            outcome: Outcome::Deleted,
            due: Due::Retired,
            notify: false,
        }
    }

    fn hidden(&self, policy: &Policy, asked: RequestContext) -> Decision {
        let freshness = Self {
            missing: false,
            ..self.answered(asked)
        };
        Decision {
            freshness,
            outcome: Outcome::Hidden,
            due: policy.due(&freshness.facts()),
            notify: false,
        }
    }

    fn failed(&self, policy: &Policy, asked: RequestContext) -> Decision {
        let failures = self.failures.saturating_add(1);
        let freshness = Self { failures, ..*self };
        let age_ms = asked
            .now_ms
            .saturating_sub(self.created_at_ms.unwrap_or(asked.now_ms));
        let every_ms = policy.ages().every_ms(age_ms).unwrap_or(0);
        let retry_ms = retry_ms(failures, every_ms, asked.random);
        let due = if policy.ages().holds(self.created_at_ms, asked.now_ms) {
            Due::At(asked.now_ms.saturating_add(retry_ms))
        } else {
            Due::Retired
        };
        Decision {
            freshness,
            outcome: Outcome::Failed,
            due,
            notify: false,
        }
    }

    fn suspected(&self, policy: &Policy, asked: RequestContext) -> Decision {
        let failed = self.failed(policy, asked);
        Decision {
            due: match failed.due {
                Due::At(_) => Due::At(asked.due_ms),
                other => other,
            },
            ..failed
        }
    }

    fn stays(&self, policy: &Policy, outcome: Outcome) -> Decision {
        Decision {
            freshness: *self,
            outcome,
            due: policy.due(&self.facts()),
            notify: false,
        }
    }

    fn answered(&self, asked: RequestContext) -> Self {
        Self {
            before: Some(Sample {
                at_ms: self.refreshed_ms,
                total: self.counts.total(),
            }),
            refreshed_ms: asked.at_ms,
            refreshes: self.refreshes.saturating_add(1),
            failures: 0,
            ..*self
        }
    }
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 7] = [
        Self::Updated,
        Self::Unchanged,
        Self::Superseded,
        Self::Missing,
        Self::Deleted,
        Self::Hidden,
        Self::Failed,
    ];

    /// Its name in reports, in metrics and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Superseded => "superseded",
            Self::Missing => "missing",
            Self::Deleted => "deleted",
            Self::Hidden => "hidden",
            Self::Failed => "failed",
        }
    }

    /// The outcome of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}
