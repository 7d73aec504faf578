//! `replica find`: posts of subscribed sources and of bookmarks by predicates.

use clap::Args;
use driftline_replica::{Replica, TimelineQuery};

use super::timeline::show;
use crate::error::CliError;

/// Finds posts of the subscribed sources by a predicate, the newest first, without a network. Bookmarked posts that are in
/// none of these sources follow.
///
/// The predicates are those of `driftline find`, without counts, is:followed, is:bot, has:link, has:embed, via:, source:,
/// mentions: and id:; see docs/predicates.md.
#[derive(Debug, Args)]
pub struct Find {
    /// The predicate, such as '(cat OR dog) -instance:bots.example has:media'.
    #[arg(allow_hyphen_values = true)]
    query: String,
    /// The largest number of posts.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

impl Find {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        let query = TimelineQuery {
            limit: self.limit,
            matching: Some(self.query),
            ..TimelineQuery::default()
        };
        show(replica, query, json).await
    }
}
