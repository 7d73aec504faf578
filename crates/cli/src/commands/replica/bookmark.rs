//! `replica bookmark`: bookmarks a post.

use clap::Args;
use driftline_core::sync::{ObjectKey, ObjectKind};
use driftline_replica::{Edited, Replica};
use serde_json::{Value, json};

use crate::{error::CliError, output};

/// Bookmarks a post, or removes its bookmark. The next sync sends it.
#[derive(Debug, Args)]
pub struct Bookmark {
    /// The post's `uri`, such as `https://social.example/users/ann/statuses/1`; of a post that is in the replica also the `url`
    /// that `timeline` shows.
    uri: String,
    /// Remove the bookmark.
    #[arg(long)]
    remove: bool,
}

impl Bookmark {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        let name = replica.post_name(&self.uri).await?;
        let key = ObjectKey::named(ObjectKind::Bookmark, &name);
        let key = key.map_err(CliError::usage)?;
        let value = (!self.remove).then(|| json!({}));
        edit(replica, key, value, json).await
    }
}

/// Edits an object, and prints the outcome.
///
/// # Errors
/// [`CliError`] as the process ends.
pub async fn edit(
    replica: &Replica,
    key: ObjectKey,
    value: Option<Value>,
    json: bool,
) -> Result<(), CliError> {
    let edited = replica.edit(key, value).await?;
    output::reply(json, &edited, |of| vec![words(*of).to_owned()])
}

/// The text for the outcome of an edit.
pub fn words(of: Edited) -> &'static str {
    match (of.changed, of.dirty) {
        (false, _) => "nothing was changed: the replica already has this",
        (true, true) => "stored here; the next sync sends it",
        (true, false) => "stored here; the server has the same",
    }
}
