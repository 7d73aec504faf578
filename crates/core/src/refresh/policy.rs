use super::{
    age_table::{AgeTable, Due},
    cause::Cause,
    refresh_history::RefreshHistory,
    value::ValuePolicy,
};

/// The distribution of the quota among posts.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    /// By age only, like the seed.
    Table {
        /// The intervals.
        ages: AgeTable,
        /// The factor that lengthens the intervals while the quota is short; at least 1.
        stretch: f64,
    },
    /// By the value of a refresh.
    Value {
        /// The table that limits the waits and retires posts.
        ages: AgeTable,
        /// The valuation.
        by: ValuePolicy,
    },
    /// No post is ever due. Reports still use the table's ages.
    Never {
        /// The ages.
        ages: AgeTable,
    },
}

impl Policy {
    /// A policy by this table without stretching.
    pub fn of_ages(ages: AgeTable) -> Self {
        let stretch = 1.0;
        Self::Table { ages, stretch }
    }

    /// The ages for reports and libraries. Every post retires at their end.
    pub fn ages(&self) -> &AgeTable {
        match self {
            Self::Table { ages, .. } | Self::Value { ages, .. } | Self::Never { ages } => ages,
        }
    }

    /// The next due time of a post.
    pub fn due(&self, history: &RefreshHistory) -> Due {
        self.due_because(history).0
    }

    /// The next due time of a post, and its reason.
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

    /// The value of a refresh at `now_ms`, in prices of a refresh. It is 1 when the post becomes
    /// due, grows while the post waits, and is 0 for retired posts. Overdue posts are refreshed in
    /// order of value. If they do not fill a batch, the most valuable of the others are added.
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

    /// True if a post has waited longer than the limit of a policy by value. Always false for a
    /// policy by age.
    pub fn is_beyond_bound(&self, history: &RefreshHistory, now_ms: i64) -> bool {
        match self {
            Self::Value { ages, by } => by.is_beyond_bound(ages, history, now_ms),
            Self::Table { .. } | Self::Never { .. } => false,
        }
    }
}

impl Default for Policy {
    /// The policy by the seed's table.
    fn default() -> Self {
        Self::of_ages(AgeTable::default())
    }
}

fn stretched_ms(every_ms: i64, stretch: f64) -> i64 {
    ((every_ms as f64 * stretch) as i64).max(every_ms)
}
