//! `replica show`: the objects of a replica.

use clap::Args;
use driftline_core::sync::ObjectKind;
use driftline_replica::{Replica, ReplicaObject};
use serde_json::Value;

use crate::{error::CliError, output, shown::plain};

/// Shows the objects of the replica, by their keys. An asterisk marks those with changes that were not sent yet. A bookmark has
/// the author and the text of its post, if the account may see it.
#[derive(Debug, Args)]
pub struct Show {
    /// Only those of this kind: bookmark, favourite, list, list-member, marker, filter, note, draft, profile, follow, block,
    /// mute or account-note.
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
}

impl Show {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        let objects = replica.objects(self.kind.as_deref()).await?;
        // A newer server may have sent a kind that this program does not know.
        let kind = self.kind.as_deref().filter(|_| objects.is_empty());
        if let Some(unknown) = kind.filter(|kind| kind.parse::<ObjectKind>().is_err()) {
            let kinds: Vec<&str> = ObjectKind::ALL.iter().map(|kind| kind.name()).collect();
            return Err(CliError::usage(format!(
                "there is no kind {unknown:?}; the kinds are {}",
                kinds.join(", ")
            )));
        }
        for object in objects {
            output::reply(json, &object, lines)?;
        }
        Ok(())
    }
}

fn lines(of: &ReplicaObject) -> Vec<String> {
    let mark = if of.dirty { '*' } else { ' ' };
    let mut lines = vec![format!("{mark} {}", plain(of.key.as_str()))];
    let shown = match &of.copy {
        Some(copy) => one_line(&format!("@{}: {}", copy.author, copy.text)),
        None => excerpt(&of.value),
    };
    if shown != "{}" {
        lines.push(format!("    {shown}"));
    }
    lines
}

/// The beginning of a value: the text of a note or draft, or the JSON of others without the copy of a post, on one line of at
/// most 64 columns.
pub fn excerpt(value: &Value) -> String {
    match (value["text"].as_str(), value.as_object()) {
        (Some(text), _) => one_line(text),
        (None, Some(members)) => {
            let mut members = members.clone();
            members.remove("status");
            one_line(&Value::Object(members).to_string())
        }
        (None, None) => one_line(&value.to_string()),
    }
}

/// The beginning of a text on one line of at most 64 columns.
pub fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    console::truncate_str(&plain(&text), MAX_COLUMNS, "…").into_owned()
}

const MAX_COLUMNS: usize = 64;
