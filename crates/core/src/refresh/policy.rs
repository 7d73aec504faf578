use serde::{Deserialize, Serialize};

use super::{
    age_table::{AgeTable, Due},
    refresh_history::RefreshHistory,
    value::ValuePolicy,
};

/// How posts share the quota.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    /// By age alone, as the seed has it.
    Table {
        /// The intervals.
        ages: AgeTable,
        /// The factor that lengthens them while the quota is short; 1 or more.
        stretch: f64,
    },
    /// By the value of a refresh.
    Value {
        /// Bounds the waits and retires posts.
        ages: AgeTable,
        /// The valuation.
        by: ValuePolicy,
    },
    /// No post is ever due; reports still use the table's ages.
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
    /// Its expected change is worth a refresh.
    #[serde(rename = "worth")]
    Value,
    /// It is young and has not been refreshed yet, or not often.
    Probe,
    /// No post waits longer.
    Bound,
}

impl Policy {
    /// By this table, unstretched.
    pub fn of_ages(ages: AgeTable) -> Self {
        let stretch = 1.0;
        Self::Table { ages, stretch }
    }

    /// The ages for reports and libraries; every post retires at their end.
    pub fn ages(&self) -> &AgeTable {
        match self {
            Self::Table { ages, .. } | Self::Value { ages, .. } | Self::Never { ages } => ages,
        }
    }

    /// When a post is due again.
    pub fn due(&self, history: &RefreshHistory) -> Due {
        self.due_because(history).0
    }

    /// When a post is due again, and why then.
    pub fn due_because(&self, history: &RefreshHistory) -> (Due, Cause) {
        let (ages, stretch) = match self {
            Self::Table { ages, stretch } => (ages, *stretch),
            Self::Value { ages, by } => return by.due_because(ages, history),
            Self::Never { .. } => return (Due::Never, Cause::Age),
        };
        let due = match ages.wait_ms(history.created_at_ms, history.refreshed_ms) {
            Ok(every_ms) => {
                let wait_ms = stretched_ms(every_ms, stretch);
                Due::At(history.refreshed_ms.saturating_add(wait_ms))
            }
            Err(due) => due,
        };
        (due, Cause::Age)
    }

    /// The value of a refresh at that time, in prices of a refresh: 1 when the post becomes due,
    /// more the longer it waits, 0 for retired posts. Overdue posts are refreshed in order of value;
    /// a batch that they do not fill takes the most valuable of the others.
    pub fn value(&self, history: &RefreshHistory, now_ms: i64) -> f64 {
        match self {
            Self::Table { ages, stretch } => {
                let wait_ms = ages.wait_ms(history.created_at_ms, history.refreshed_ms);
                let waited_ms = now_ms.saturating_sub(history.refreshed_ms).max(0);
                wait_ms.map_or(0.0, |every_ms| {
                    waited_ms as f64 / stretched_ms(every_ms, *stretch) as f64
                })
            }
            Self::Value { ages, by } => by.value(ages, history, now_ms),
            Self::Never { .. } => 0.0,
        }
    }

    /// Whether a post has waited longer than a policy by value lets any post wait; never by age.
    pub fn is_beyond_bound(&self, history: &RefreshHistory, now_ms: i64) -> bool {
        match self {
            Self::Value { ages, by } => by.is_beyond_bound(ages, history, now_ms),
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
