//! The reason for the due time of a post, in words.

use driftline_core::refresh::{AgeTable, Cause, Freshness, LookupOutcome, Policy};
use driftline_runtime::show_ms;
use driftline_store::refresh::RefreshState;

/// The reason for the due time of a post, or for its lack.
pub(super) fn reason(
    deleted_at_ms: Option<i64>,
    state: Option<&RefreshState>,
    policy: &Policy,
    now_ms: i64,
) -> String {
    match state {
        None => "it is not scheduled: it was stored before posts were refreshed, and has no creation time".into(),
        Some(_) if deleted_at_ms.is_some() => {
            "it is deleted: its tombstone and its history stay, and nothing is looked up".into()
        }
        Some(state) => {
            let due = due(&state.freshness, state.due_at_ms, policy, now_ms);
            match state.outcome {
                Some(LookupOutcome::Hidden) => format!(
                    "it is hidden: it exists, or may, but is shown to none of the credentials; {due}"
                ),
                _ => due,
            }
        }
    }
}

fn due(freshness: &Freshness, due_at_ms: Option<i64>, policy: &Policy, now_ms: i64) -> String {
    let Some(created_at_ms) = freshness.created_at_ms else {
        return "its creation time is unknown, so it has no age to schedule refreshes by".into();
    };
    let Some(due_at_ms) = due_at_ms else {
        return unscheduled(freshness, created_at_ms, policy.ages(), now_ms);
    };
    let late_ms = now_ms.saturating_sub(due_at_ms);
    let behind = if late_ms > 0 {
        format!("; it has been due for {}", show_ms(late_ms))
    } else {
        String::new()
    };
    if freshness.missing {
        return format!(
            "the last answer left it out; it is looked up once more before it counts as deleted{behind}"
        );
    }
    if freshness.failures > 0 {
        return format!(
            "its last {} look-ups failed, so it waits longer each time{behind}",
            freshness.failures
        );
    }
    let age_then = show_ms(freshness.refreshed_ms.saturating_sub(created_at_ms).max(0));
    let wait = show_ms(due_at_ms.saturating_sub(freshness.refreshed_ms));
    let cause = match policy.due_because(&freshness.refresh_history()).1 {
        Cause::Age => format!("posts of that age are refreshed every {wait}"),
        Cause::Value => format!(
            "its expected change justifies a refresh after {wait} at the current price of quota"
        ),
        Cause::Probe => {
            format!("it is young and little is known of it, so it is probed after {wait}")
        }
        Cause::Bound => format!(
            "hardly any change is expected of it, but no post of that age waits longer than {wait}"
        ),
    };
    format!("at its last answer it was {age_then} old: {cause}{behind}")
}

/// Why a post with a known creation time has no due time.
fn unscheduled(freshness: &Freshness, created_at_ms: i64, ages: &AgeTable, now_ms: i64) -> String {
    if ages.band(now_ms.saturating_sub(created_at_ms)).is_none() {
        return "it has outlived the table of ages".into();
    }
    let ahead_ms = created_at_ms.saturating_sub(freshness.refreshed_ms);
    if ahead_ms > ages.skew_ms() {
        return format!(
            "it is not scheduled: at its last answer its creation time was {} in the future, more than the tolerated clock skew",
            show_ms(ahead_ms)
        );
    }
    if freshness.refreshes > 0 {
        return "it is not scheduled: when it was last looked up, the table of ages had no place for its age".into();
    }
    "it is not scheduled: it was only to be looked up once".into()
}

#[cfg(test)]
mod tests {
    use driftline_core::refresh::{AgeTable, RefreshPlan};

    use super::*;

    const DAY_MS: i64 = 86_400_000;

    fn of(freshness: Freshness, due_at_ms: Option<i64>, now_ms: i64) -> String {
        let policy = driftline_core::refresh::LearnedState::new(0).policy(&RefreshPlan::default());
        due(&freshness, due_at_ms, &policy, now_ms)
    }

    #[test]
    fn each_cause_of_no_due_time_has_its_own_text() {
        let first =
            |created_at_ms| Freshness::first(Some(created_at_ms), 1_000, Default::default());
        let ahead_ms = 1_000 + 2 * AgeTable::default().skew_ms();
        let retired = Freshness {
            refreshes: 3,
            ..first(0)
        };
        for (freshness, now_ms, text) in [
            (first(0), 2_000, "only to be looked up once"),
            (first(ahead_ms), 2_000, "in the future"),
            (first(0), 31 * DAY_MS, "outlived"),
            (retired, 2_000, "the table of ages had no place"),
        ] {
            let shown = of(freshness, None, now_ms);
            assert!(shown.contains(text), "{shown}");
            assert_eq!(shown.contains("once"), text.contains("once"), "{shown}");
        }
    }

    #[test]
    fn times_are_formatted_as_everywhere() {
        let asked_ms = DAY_MS + 8_820_000;
        let freshness = Freshness::first(Some(0), asked_ms, Default::default());
        let due_ms = asked_ms + DAY_MS / 2;
        let text = of(freshness, Some(due_ms), due_ms + 90_000);
        assert_eq!(
            text,
            "at its last answer it was 1day2h27m old: posts of that age are refreshed every 12h; it has been due for 1m30s"
        );
    }
}
