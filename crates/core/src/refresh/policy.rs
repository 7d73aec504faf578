use super::{age_table::AgeTable, age_table::Due, freshness::Freshness};

/// How a server decides when its posts are refreshed.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    /// By age alone, as the seed does.
    AgeTable(AgeTable),
}

impl Policy {
    /// When a post is due.
    pub fn due(&self, post: &Freshness) -> Due {
        match self {
            Self::AgeTable(table) => table.due(post.born_ms, post.refreshed_ms),
        }
    }

    /// The ages that reports and libraries go by, and at whose end every post retires.
    pub fn table(&self) -> &AgeTable {
        match self {
            Self::AgeTable(table) => table,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::AgeTable(AgeTable::default())
    }
}
