//! What look-ups will take, before they are sent.

use driftline_core::api::Api;
use driftline_server::admin::LookUpPlan;

use crate::{duration::show_ms, shown::count};

/// How so many posts will be looked up, and how long that takes as far as is known.
pub fn shown(plan: &LookUpPlan, posts: u64) -> String {
    let (batch, origin) = (plan.batch.max(1), &plan.origin);
    let requests = posts.div_ceil(batch);
    let batch = match (plan.batch_is_known, plan.batch) {
        (false, _) => {
            "1 a request, or 20 if the server can, which the first look-up shows".to_owned()
        }
        (true, batch) => format!("up to {batch} a request"),
    };
    let (rate, is_reported) = match (plan.requests_per_s, plan.api) {
        (Some(rate), _) => (Some(rate), true),
        (None, Api::Mastodon) => (Some(USUAL_PER_S), false),
        (None, _) => (None, false),
    };
    let time = rate.filter(|rate| *rate > 0.0).map(|rate| {
        let time = show_ms((requests as f64 / rate * 1000.0) as i64);
        match is_reported {
            true => format!("at its limits of {rate:.2} a second they take {time}"),
            false => format!("at a usual server's limit of 300 in 5 minutes they take {time}"),
        }
    });
    let time =
        time.unwrap_or_else(|| "its limits are not known before the first answer".to_owned());
    format!(
        "looking up {} of {origin}, {batch}: {}; {time}",
        count(posts, "post"),
        count(requests, "request"),
    )
}

/// What a Mastodon server allows unless it is configured otherwise: 300 requests in 5 minutes.
const USUAL_PER_S: f64 = 1.0;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Single look-ups at a server of which nothing else is known.
    pub(in crate::commands::track) fn single_look_ups() -> LookUpPlan {
        LookUpPlan {
            origin: "https://a.example".into(),
            api: Api::Mastodon,
            batch: 1,
            batch_is_known: true,
            requests_per_s: None,
            limits: Vec::new(),
            until_ms: None,
            reason: None,
            next_lookup_ms: None,
        }
    }

    #[test]
    fn a_million_single_look_ups_take_days() {
        let mut plan = single_look_ups();
        let text = shown(&plan, 1_000_000);
        assert!(text.contains("1000000 requests"), "{text}");
        assert!(text.contains("11d"), "{text}");
        plan.batch = 20;
        plan.requests_per_s = Some(0.5);
        let text = shown(&plan, 30);
        assert!(text.contains("2 requests"), "{text}");
        assert!(
            text.contains("they take 4.0 s") || text.contains("they take 4s"),
            "{text}"
        );
    }
}
