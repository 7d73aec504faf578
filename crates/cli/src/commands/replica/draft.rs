//! `replica draft`: posts that are not posted yet.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use driftline_core::sync::{ObjectKey, ObjectKind};
use driftline_replica::Replica;
use serde_json::json;

use super::{bookmark::edit, note, round::random, show::Show};
use crate::error::CliError;

/// Lists the drafts, or writes, changes or removes one. The next sync sends it.
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
        /// The `uri` of the post to which it replies.
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
    pub async fn run(self, folder: &Path, json: bool) -> Result<(), CliError> {
        let (key, value) = match self.command {
            None => return Show::of(ObjectKind::Draft).run(folder, json).await,
            Some(DraftCommand::Add { text, reply_to }) => {
                let value = json!({ "text": text.read()?, "in_reply_to": reply_to });
                (ObjectKey::random(ObjectKind::Draft, random()), Some(value))
            }
            Some(DraftCommand::Edit { key, text }) => {
                let (key, text) = (draft_key(key)?, text.read()?);
                let replica = Replica::open(folder).await?;
                let found = replica.object(&key).await;
                replica.close().await;
                let found = found?.ok_or_else(|| CliError::failed("there is no such draft"))?;
                let mut value = found.value;
                value["text"] = text.into();
                (key, Some(value))
            }
            Some(DraftCommand::Remove { key }) => (draft_key(key)?, None),
        };
        edit(folder, key, value, json).await
    }
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
