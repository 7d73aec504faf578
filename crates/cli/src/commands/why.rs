//! `why`: the state of a post.

use clap::Args;
use driftline_runtime::now_ms;
use driftline_server::admin::Command;
use serde_json::Value;

use super::history::counts;
use crate::{
    config::Config,
    duration::show_ms,
    error::CliError,
    output, shown,
    store_access::{Missing, once},
};

/// Shows a post's state: its refreshes, its counts, when it is due next, and why.
#[derive(Debug, Args)]
pub struct Why {
    /// The post: its ID here, its address, or INSTANCE/ID.
    post: String,
}

impl Why {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let post = self.post;
        let answer = once(config, Missing::Refuse, Command::Why { post }).await?;
        if json {
            return output::json(&answer);
        }
        print(&answer)
    }
}

fn print(answer: &Value) -> Result<(), CliError> {
    let time = |key: &str| answer[key].as_i64().map(shown::time);
    let text = |key: &str| answer[key].as_str().unwrap_or("-");
    if answer["id"].is_null() {
        let (id, instance) = (text("upstream_id"), text("instance"));
        output::line(&format!(
            "{id} of {instance}, not stored ({})",
            text("state")
        ))?;
    } else {
        output::line(&format!("post {} ({})", text("id"), text("url")))?;
    }
    for (what, key) in [
        ("named", "named_at_ms"),
        ("written", "created_at_ms"),
        ("edited", "edited_at_ms"),
        ("deleted", "deleted_at_ms"),
        ("last answer", "refreshed_at_ms"),
        ("due", "due_at_ms"),
    ] {
        if let (Some(at), Some(at_ms)) = (time(key), answer[key].as_i64()) {
            let ago_ms = now_ms() - at_ms;
            let ago = if ago_ms >= 0 {
                format!("{} ago", show_ms(ago_ms))
            } else {
                format!("in {}", show_ms(-ago_ms))
            };
            output::line(&format!("    {what:<12} {at}  ({ago})"))?;
        }
    }
    if let Some(refreshes) = answer["refreshes"].as_u64() {
        output::line(&format!(
            "    refreshed    {}",
            refreshed(refreshes, answer["outcome"].as_str())
        ))?;
    }
    if !answer["counts"].is_null() {
        output::line(&format!("    counts       {}", counts(&answer["counts"])))?;
    }
    for row in answer["history"].as_array().into_iter().flatten() {
        let at = row["at_ms"].as_i64().map_or_else(String::new, shown::time);
        output::line(&format!("        {at}  {}", counts(row)))?;
    }
    output::line(&format!("    why          {}", text("why")))
}

/// How often look-ups have refreshed a post, and the last outcome.
fn refreshed(times: u64, outcome: Option<&str>) -> String {
    let times = match times {
        0 => "not yet by a look-up".to_owned(),
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    match outcome {
        Some(outcome) => format!("{times}, the last outcome: {outcome}"),
        None => times,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refreshes_are_counted_in_words() {
        assert_eq!(refreshed(0, None), "not yet by a look-up");
        assert_eq!(
            refreshed(1, Some("updated")),
            "once, the last outcome: updated"
        );
        let failed = "not yet by a look-up, the last outcome: failed";
        assert_eq!(refreshed(0, Some("failed")), failed);
        assert_eq!(
            refreshed(2, Some("hidden")),
            "2 times, the last outcome: hidden"
        );
    }
}
