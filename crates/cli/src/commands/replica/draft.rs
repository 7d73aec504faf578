//! `replica draft`: posts that are not posted yet.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use driftline_core::sync::{ObjectKey, ObjectKind};
use driftline_replica::{Edited, Replica};
use serde_json::{Value, json};

use super::{bookmark::words, note, round::random, show::Show};
use crate::{error::CliError, output};

/// Lists the drafts, or writes, changes or removes one, and prints its key. The next sync sends it.
#[derive(Debug, Args)]
pub struct Draft {
    #[command(subcommand)]
    command: Option<DraftCommand>,
}

/// The commands on one draft.
#[derive(Debug, Subcommand)]
enum DraftCommand {
    /// Write a draft.
    Add {
        #[command(flatten)]
        text: Text,
        /// The `uri` of the post to which it replies; of a post that is in the replica also its `url`.
        #[arg(long, value_name = "URI")]
        reply_to: Option<String>,
    },
    /// Replace the text of a draft.
    Edit {
        /// Its key, as `draft` lists it.
        key: String,
        #[command(flatten)]
        text: Text,
    },
    /// Remove a draft.
    Remove {
        /// Its key, as `draft` lists it.
        key: String,
    },
}

/// The text of a draft.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Text {
    /// The text, at most 10,000 characters.
    #[arg(num_args = 1..)]
    text: Vec<String>,
    /// Read the text from this file, or from standard input if it is -.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Draft {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        match self.command {
            None => {
                let kind = Some(ObjectKind::Draft.name().to_owned());
                Show { kind }.run(replica, json).await
            }
            Some(DraftCommand::Add { text, reply_to }) => {
                let reply_to = match reply_to {
                    Some(post) => Some(replica.post_name(&post).await?),
                    None => None,
                };
                let value = json!({ "text": text.read()?, "in_reply_to": reply_to });
                let key = ObjectKey::random(ObjectKind::Draft, random());
                let edited = replica.edit(key.clone(), Some(value)).await?;
                reply(&key, edited, json)
            }
            Some(DraftCommand::Edit { key, text }) => {
                let (key, text) = (draft_key(key)?, Value::from(text.read()?));
                let change = move |mut value: Value| {
                    value["text"] = text.clone();
                    Some(value)
                };
                edit_with(replica, &key, change, json).await
            }
            Some(DraftCommand::Remove { key }) => {
                edit_with(replica, &draft_key(key)?, |_| None, json).await
            }
        }
    }
}

/// Edits a draft that is there.
async fn edit_with(
    replica: &Replica,
    key: &ObjectKey,
    change: impl FnMut(Value) -> Option<Value> + Send + 'static,
    json: bool,
) -> Result<(), CliError> {
    let edited = replica.edit_with(key.clone(), change).await?;
    let edited = edited.ok_or_else(|| CliError::failed("there is no such draft"))?;
    reply(key, edited, json)
}

fn reply(key: &ObjectKey, edited: Edited, json: bool) -> Result<(), CliError> {
    let reply = json!({ "key": key, "changed": edited.changed, "dirty": edited.dirty });
    output::reply(json, &reply, |_| vec![format!("{key}: {}", words(edited))])
}

impl Text {
    fn read(&self) -> Result<String, CliError> {
        note::text(&self.text, self.file.as_deref())
    }
}

fn draft_key(text: String) -> Result<ObjectKey, CliError> {
    let key = ObjectKey::parse(text).map_err(CliError::usage)?;
    match key.kind() {
        Some(ObjectKind::Draft) => Ok(key),
        _ => Err(CliError::usage(format!("{key} is not the key of a draft"))),
    }
}
