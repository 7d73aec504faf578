//! `replica timeline` and `replica find`: the posts of subscribed sources, and those that match a predicate.

use clap::Args;
use driftline_replica::{Replica, ReplicaPost, TimelineQuery};

use super::show::one_line;
use crate::{error::CliError, output, shown::PostParts};

/// Shows the posts of the subscribed sources, the newest first. An asterisk marks those that are bookmarked; a note is
/// shown below its post.
#[derive(Debug, Args)]
pub struct Timeline {
    /// The source's name; without one the posts of all sources are shown, each once.
    name: Option<String>,
    /// The largest number of posts.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Only posts below this place, which `--json` gives.
    #[arg(long, value_name = "PLACE", value_parser = clap::value_parser!(i64).range(1..))]
    before: Option<i64>,
}

impl Timeline {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        let query = TimelineQuery {
            source: self.name,
            below: self.before,
            limit: self.limit,
            matching: None,
        };
        show(replica, query, json).await
    }
}

/// Finds posts of the subscribed sources by a predicate, the newest first, without a network. Bookmarked posts that are in
/// none of these sources follow.
///
/// The predicates are those of `driftline find`, without counts, is:followed, is:bot, has:link, has:embed, via:, source:,
/// mentions: and id:; see docs/predicates.md. `timeline NAME` shows one source.
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

/// Prints posts of the subscribed sources.
///
/// # Errors
/// [`CliError`] as the process ends.
pub async fn show(replica: &Replica, query: TimelineQuery, json: bool) -> Result<(), CliError> {
    let posts = replica.timeline(query).await?;
    let mut posts = posts.iter();
    posts.try_for_each(|post| output::reply(json, post, lines))
}

fn lines(of: &ReplicaPost) -> Vec<String> {
    let parts = PostParts {
        created_at_ms: of.created_at_ms,
        author: &of.author,
        address: of.url.as_deref().or(of.uri.as_deref()),
        text: &of.text,
    };
    let [head, text] = parts.lines();
    let mark = if of.bookmarked { '*' } else { ' ' };
    let mut lines = vec![format!("{mark} {head}"), text];
    let note = of.note.as_deref().map(one_line);
    lines.extend(note.map(|note| format!("    note: {note}")));
    lines
}
