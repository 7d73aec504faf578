//! `why`: the state of a post.

use clap::Args;
use driftline_core::refresh::LookupOutcome;
use driftline_runtime::now_ms;
use driftline_server::admin::{ExplainPost, PendingState, PostState};

use super::history::counts;
use crate::{
    config::Config, duration::show_ms, error::CliError, output, shown, store_access::show,
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
        let request = ExplainPost { post: self.post };
        show(config, json, request, print).await
    }
}

fn print(state: &PostState) -> Result<(), CliError> {
    let why = match state {
        PostState::Stored(post) => {
            let url = post.url.as_deref().unwrap_or("-");
            output::line(&format!("post {} ({url})", post.id))?;
            print_times([
                ("written", post.created_at_ms),
                ("edited", post.edited_at_ms),
                ("deleted", post.deleted_at_ms),
                ("last answer", post.refreshed_at_ms),
                ("due", post.due_at_ms),
            ])?;
            if let Some(refreshes) = post.refreshes {
                let refreshed = refreshed(refreshes, post.outcome);
                output::line(&format!("    refreshed    {refreshed}"))?;
            }
            if let Some(now) = &post.counts {
                output::line(&format!("    counts       {}", counts(now)))?;
            }
            for row in &post.history {
                let at = shown::time(row.at_ms);
                output::line(&format!("        {at}  {}", counts(&row.counts)))?;
            }
            &post.why
        }
        PostState::Pending(post) => {
            let state = match post.state {
                PendingState::Waiting => "waiting",
                PendingState::Missing => "missing",
            };
            output::line(&format!(
                "{} of {}, not stored ({state})",
                post.upstream_id, post.instance
            ))?;
            print_times([("named", Some(post.named_at_ms)), ("due", post.due_at_ms)])?;
            &post.why
        }
    };
    output::line(&format!("    why          {why}"))
}

fn print_times<const N: usize>(times: [(&str, Option<i64>); N]) -> Result<(), CliError> {
    for (what, at_ms) in times {
        let Some(at_ms) = at_ms else { continue };
        let ago_ms = now_ms() - at_ms;
        let ago = match ago_ms {
            0.. => format!("{} ago", show_ms(ago_ms)),
            _ => format!("in {}", show_ms(-ago_ms)),
        };
        let at = shown::time(at_ms);
        output::line(&format!("    {what:<12} {at}  ({ago})"))?;
    }
    Ok(())
}

/// How often look-ups have refreshed a post, and the last outcome.
fn refreshed(times: u32, outcome: Option<LookupOutcome>) -> String {
    let times = match times {
        0 => "not yet by a look-up".to_owned(),
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    match outcome {
        Some(outcome) => format!("{times}, the last outcome: {}", outcome.name()),
        None => times,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refreshes_are_counted_in_words() {
        for (times, outcome, text) in [
            (0, None, "not yet by a look-up"),
            (
                1,
                Some(LookupOutcome::Updated),
                "once, the last outcome: updated",
            ),
            (
                0,
                Some(LookupOutcome::Failed),
                "not yet by a look-up, the last outcome: failed",
            ),
            (
                2,
                Some(LookupOutcome::Hidden),
                "2 times, the last outcome: hidden",
            ),
        ] {
            assert_eq!(refreshed(times, outcome), text);
        }
    }
}
