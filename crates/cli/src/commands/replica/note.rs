//! `replica note`: the note on a post.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use clap::Args;
use driftline_core::sync::{ObjectKey, ObjectKind};
use driftline_replica::Replica;
use serde_json::json;

use super::bookmark::edit;
use crate::{error::CliError, output};

/// Writes, shows or removes the note on a post. The next sync sends it.
#[derive(Debug, Args)]
pub struct Note {
    /// The post's `uri`, such as `https://social.example/users/ann/statuses/1`; of a post that is in the replica also the `url`
    /// that `timeline` shows.
    uri: String,
    #[command(flatten)]
    action: Action,
}

/// The action on the note.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Action {
    /// The text, at most 10,000 characters.
    #[arg(num_args = 1..)]
    text: Vec<String>,
    /// Read the text from this file, or from standard input if it is -.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Remove the note.
    #[arg(long)]
    remove: bool,
    /// Show the note.
    #[arg(long)]
    show: bool,
}

impl Note {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, as_json: bool) -> Result<(), CliError> {
        let name = replica.post_name(&self.uri).await?;
        let key = ObjectKey::named(ObjectKind::Note, &name);
        let key = key.map_err(CliError::usage)?;
        if self.action.show {
            return show(replica, &key, as_json).await;
        }
        let value = match self.action.remove {
            true => None,
            false => Some(json!({ "text": text(&self.action.text, self.action.file.as_deref())? })),
        };
        edit(replica, key, value, as_json).await
    }
}

/// The text of a file, or of standard input if the file is `-`; without a file, the words of the command line.
///
/// # Errors
/// [`CliError`] if the file cannot be read.
pub fn text(words: &[String], file: Option<&Path>) -> Result<String, CliError> {
    let Some(path) = file else {
        return Ok(words.join(" "));
    };
    let read = match path.as_os_str() == "-" {
        true => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => fs::read_to_string(path),
    };
    let text = read
        .map_err(|error| CliError::usage(format!("{} cannot be read: {error}", path.display())))?;
    Ok(text.trim_end().to_owned())
}

async fn show(replica: &Replica, key: &ObjectKey, as_json: bool) -> Result<(), CliError> {
    match replica.object(key).await? {
        Some(object) => output::reply(as_json, &object, |of| {
            let text = of.value["text"].as_str().unwrap_or_default();
            vec![text.to_owned()]
        }),
        None => Err(CliError::failed("there is no note on this post")),
    }
}
