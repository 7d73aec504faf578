use serde::{Deserialize, Serialize};

use super::{
    age_table::{AgeTable, Due},
    facts::Refreshed,
    value_policy::ValuePolicy,
};

/// How posts share the quota.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    /// By age alone, as the seed has it.
    Table {
        /// The intervals.
        ages: AgeTable,
        /// How much longer they all are while the quota does not carry them; 1 or more.
        stretch: f64,
    },
    /// By what a refresh is worth.
    Value {
        /// What bounds the waits and retires posts.
        ages: AgeTable,
        /// How worth is told.
        by: ValuePolicy,
    },
    /// No post is ever due; ages are told by the table all the same.
    Never {
        /// The ages.
        ages: AgeTable,
    },
}

/// Why a post becomes due when it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The age table says so.
    Age,
    /// What it is expected to have gathered is worth a refresh.
    Worth,
    /// It is young and has not been refreshed yet, or not often.
    Probe,
    /// No post waits longer.
    Bound,
}

impl Policy {
    /// By this table, which the quota carries.
    pub fn of_ages(ages: AgeTable) -> Self {
        let stretch = 1.0;
        Self::Table { ages, stretch }
    }

    /// The ages that reports and libraries go by, and at whose end every post retires.
    pub fn ages(&self) -> &AgeTable {
        match self {
            Self::Table { ages, .. } | Self::Value { ages, .. } | Self::Never { ages } => ages,
        }
    }

    /// When a post is due again.
    pub fn due(&self, facts: &Refreshed) -> Due {
        self.due_because(facts).0
    }

    /// When a post is due again, and why then.
    pub fn due_because(&self, facts: &Refreshed) -> (Due, Cause) {
        let (ages, stretch) = match self {
            Self::Table { ages, stretch } => (ages, *stretch),
            Self::Value { ages, by } => return by.due_because(ages, facts),
            Self::Never { .. } => return (Due::Never, Cause::Age),
        };
        let due = match ages.due(facts.created_at_ms, facts.refreshed_ms) {
            Due::At(due_ms) => {
                let wait_ms = stretched_ms(due_ms.saturating_sub(facts.refreshed_ms), stretch);
                Due::At(facts.refreshed_ms.saturating_add(wait_ms))
            }
            other => other,
        };
        (due, Cause::Age)
    }

    /// What a refresh at that time would be worth, in prices of a refresh: 1 when the post becomes
    /// due, and more the longer it waits; 0 for posts that are not refreshed any more. Overdue
    /// posts are refreshed in the order of their value, and a batch that they do not fill takes
    /// the most valuable of the others.
    pub fn value(&self, facts: &Refreshed, now_ms: i64) -> f64 {
        match self {
            Self::Table { ages, stretch } => {
                match ages.due(facts.created_at_ms, facts.refreshed_ms) {
                    Due::At(due_ms) => {
                        let every_ms = due_ms.saturating_sub(facts.refreshed_ms);
                        let waited_ms = now_ms.saturating_sub(facts.refreshed_ms).max(0);
                        waited_ms as f64 / stretched_ms(every_ms, *stretch) as f64
                    }
                    Due::Retired | Due::Never => 0.0,
                }
            }
            Self::Value { ages, by } => by.value(ages, facts, now_ms),
            Self::Never { .. } => 0.0,
        }
    }

    /// Whether a post has waited longer than a policy by value lets any post wait; never by age.
    pub fn is_beyond_bound(&self, facts: &Refreshed, now_ms: i64) -> bool {
        match self {
            Self::Value { ages, by } => by.is_beyond_bound(ages, facts, now_ms),
            Self::Table { .. } | Self::Never { .. } => false,
        }
    }
}

impl Default for Policy {
    /// By the seed's table.
    fn default() -> Self {
        Self::of_ages(AgeTable::default())
    }
}

fn stretched_ms(every_ms: i64, stretch: f64) -> i64 {
    ((every_ms as f64 * stretch) as i64).max(every_ms)
}
