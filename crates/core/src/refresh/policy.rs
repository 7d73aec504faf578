use super::{age_table::AgeTable, age_table::Due, freshness::Freshness};

/// How a server decides when its posts are refreshed.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    /// By age alone, as the seed does.
    AgeTable(AgeTable),
    /// Not at all.
    Never(AgeTable),
}

impl Policy {
    /// A policy by which no post is ever due.
    pub fn never() -> Self {
        Self::Never(AgeTable::default())
    }

    /// When a post is due.
    pub fn due(&self, post: &Freshness) -> Due {
        match self {
            Self::AgeTable(table) => table.due(post.born_ms, post.refreshed_ms),
            Self::Never(_) => Due::Never,
        }
    }

    /// The ages that reports and libraries go by, and at whose end every post retires.
    pub fn table(&self) -> &AgeTable {
        match self {
            Self::AgeTable(table) | Self::Never(table) => table,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::AgeTable(AgeTable::default())
    }
}
