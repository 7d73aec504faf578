//! `why`: the state of a post.

use clap::Args;
use driftline_core::refresh::LookupOutcome;
use driftline_runtime::now_ms;
use driftline_server::admin::{ExplainPost, PendingState, PostState};

use super::history::counts;
use crate::{config::Config, duration::show_ms, error::CliError, shown, store_access::show};

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
        show(config, json, request, lines).await
    }
}

fn lines(state: &PostState) -> Vec<String> {
    let (mut lines, why) = match state {
        PostState::Stored(post) => {
            let url = post.url.as_deref().unwrap_or("-");
            let mut lines = vec![format!("post {} ({url})", post.id)];
            lines.extend(times([
                ("written", post.created_at_ms),
                ("edited", post.edited_at_ms),
                ("deleted", post.deleted_at_ms),
                ("last answer", post.refreshed_at_ms),
                ("due", post.due_at_ms),
            ]));
            lines.extend(post.left.iter().map(|left| {
                let (at, source) = (shown::time(left.at_ms), &left.source);
                format!("    left         {source}, since {at}: it lists the post no more, which is not known to be deleted")
            }));
            let refreshed = post.refreshes.map(|times| refreshed(times, post.outcome));
            lines.extend(refreshed.map(|text| format!("    refreshed    {text}")));
            // Some servers count nothing.
            let now = post.counts.as_ref().map(counts);
            let now = now.filter(|now| !now.is_empty());
            lines.extend(now.map(|now| format!("    counts       {now}")));
            lines.extend(post.history.iter().map(|row| {
                let at = shown::time(row.at_ms);
                format!("        {at}  {}", counts(&row.counts))
            }));
            (lines, &post.why)
        }
        PostState::Pending(post) => {
            let state = match post.state {
                PendingState::Waiting => "waiting",
                PendingState::Missing => "missing",
            };
            let (id, instance) = (&post.upstream_id, &post.instance);
            let mut lines = vec![format!("{id} of {instance}, not stored ({state})")];
            lines.extend(times([
                ("named", Some(post.named_at_ms)),
                ("due", post.due_at_ms),
            ]));
            (lines, &post.why)
        }
    };
    lines.push(format!("    why          {why}"));
    lines
}

fn times<const N: usize>(times: [(&str, Option<i64>); N]) -> Vec<String> {
    let known = times.into_iter().filter_map(|(what, at_ms)| {
        let at_ms = at_ms?;
        let ago = match now_ms() - at_ms {
            ago_ms @ 0.. => format!("{} ago", show_ms(ago_ms)),
            ago_ms => format!("in {}", show_ms(-ago_ms)),
        };
        Some(format!("    {what:<12} {}  ({ago})", shown::time(at_ms)))
    });
    known.collect()
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
        use LookupOutcome::{Failed, Hidden, Updated};
        for (times, outcome, text) in [
            (0, None, "not yet by a look-up"),
            (1, Some(Updated), "once, the last outcome: updated"),
            (
                0,
                Some(Failed),
                "not yet by a look-up, the last outcome: failed",
            ),
            (2, Some(Hidden), "2 times, the last outcome: hidden"),
        ] {
            assert_eq!(refreshed(times, outcome), text);
        }
    }
}
