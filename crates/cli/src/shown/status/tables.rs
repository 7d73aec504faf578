//! The tables of the screen: for terminals of 80 columns, and for wide ones.

use driftline_core::{quota::Unit, timeline::Proof};
use driftline_mirror::SourceState;
use driftline_server::admin::{CredentialRow, MirrorStatus, QuotaLimit, RefreshLoad, SourceStatus};

use super::cell::{cut, short};
use crate::{
    shown::count,
    table::{self, Cell, left, right},
};

/// The sources.
pub(super) fn sources(of: &[&SourceStatus], now_ms: i64, columns: usize) -> Vec<String> {
    let rows = of.iter();
    if !is_wide(columns) {
        return table::lines(rows.map(|of| source(of, 18, 10)));
    }
    table::lines(rows.map(|of| {
        let [name, state, rate, delay, lateness, proven, gaps] = source(of, 20, 16);
        let polled = of
            .last_poll_ms
            .map(|at_ms| now_ms.saturating_sub(at_ms).max(0));
        let between = of.proof.filter(|proof| proof.page_fulls > 0);
        let between = between.map(|of| format!("{} to {}", short(of.above_ms), short(of.up_to_ms)));
        [
            name,
            state,
            right("POLLED AGO", duration(polled)),
            rate,
            delay,
            lateness,
            right("LONGEST", duration(of.longest_lateness_ms)),
            proven,
            right("BETWEEN", or_none(between)),
            gaps,
            right("WAITING", of.ranges.provisional),
        ]
    }))
}

fn source(of: &SourceStatus, name: usize, state: usize) -> [Cell; 7] {
    [
        left("SOURCE", cut(&of.name, name)),
        left("STATE", cut(of.state.name(), state)),
        right("POSTS/MIN", rate(of.posts_a_minute)),
        right("DELAY", duration(of.delay_ms)),
        right("LATENESS", duration(of.lateness_ms)),
        right("PROVEN", or_none(of.proof.as_ref().and_then(proven))),
        right("GAPS", of.ranges.open + of.ranges.unrecoverable),
    ]
}

/// What the operator should know of a source, in sentences.
pub(super) fn troubles(of: &SourceStatus) -> Vec<String> {
    let mut texts = Vec::new();
    let says_more = matches!(
        of.state,
        SourceState::Failing
            | SourceState::NotPolled
            | SourceState::CannotBeProven
            | SourceState::History
    );
    if says_more {
        texts.push(of.state_text.clone());
    }
    let (lost, passed_over) = (of.ranges.unrecoverable, of.ranges.passed_over);
    if lost > 0 {
        let gaps = count(lost, "gap");
        texts.push(format!(
            "{gaps} lost: the upstream's pages do not reach so far"
        ));
    }
    if passed_over > 0 {
        let ranges = count(passed_over, "range");
        texts.push(format!("{ranges} passed over by later looks"));
    }
    if of.unreadable > 0 {
        let items = count(of.unreadable, "item");
        texts.push(format!("{items} unreadable, kept as they came").replace(
            "1 item unreadable, kept as they came",
            "1 item unreadable, kept as it came",
        ));
    }
    texts
}

/// Whether a source needs its operator.
pub(super) fn has_trouble(of: &SourceStatus) -> bool {
    let ranges = &of.ranges;
    matches!(
        of.state,
        SourceState::Failing
            | SourceState::NotPolled
            | SourceState::CannotBeProven
            | SourceState::OutOfRoom
    ) || ranges.open + ranges.unrecoverable + ranges.passed_over + of.unreadable > 0
}

/// What refreshing has to do, and how full its batches are.
pub(super) fn refreshing(of: &MirrorStatus, columns: usize) -> Vec<String> {
    let rows = of.instances.iter();
    if !is_wide(columns) {
        return table::lines(rows.map(|of| load(of, 36)));
    }
    table::lines(rows.map(|of| {
        let [instance, posts, overdue, oldest] = load(of, 60);
        let requests = or_none(of.requests.map(|number| number.to_string()));
        [
            instance,
            right("LOOK-UPS", requests),
            posts,
            overdue,
            oldest,
        ]
    }))
}

fn load(of: &RefreshLoad, instance: usize) -> [Cell; 4] {
    let most = of.max_posts_a_request;
    let posts = of.mean_posts_a_request;
    let posts = posts.map(|mean| format!("{mean:.1} of {most}"));
    let more = if of.has_more { "+" } else { "" };
    [
        left("REFRESHING", cut(&of.instance, instance)),
        right("POSTS/LOOK-UP", or_none(posts)),
        right("OVERDUE", format!("{}{more}", of.overdue)),
        right("OVERDUE FOR", duration(of.oldest_overdue_ms)),
    ]
}

/// What is left of quotas: the tightest of each credential, or all where there is room.
pub(super) fn credentials(of: &MirrorStatus, columns: usize) -> Vec<String> {
    let is_wide = is_wide(columns);
    let mut rows = Vec::new();
    for credential in &of.credentials {
        let mut limits: Vec<&QuotaLimit> = credential.limits.iter().collect();
        limits.sort_by(|a, b| share(a).total_cmp(&share(b)));
        if !is_wide {
            limits.truncate(1);
        }
        if limits.is_empty() {
            rows.push((credential, None));
        }
        rows.extend(limits.into_iter().map(|limit| (credential, Some(limit))));
    }
    let cells = |(credential, limit): &(&CredentialRow, Option<&QuotaLimit>), width| {
        let reset = limit.map(|limit| limit.reset_at_ms - of.now_ms);
        let reset = reset.filter(|left_ms| *left_ms > 0);
        [
            left("CREDENTIAL", cut(&credential.name, width)),
            left("STATE", &credential.state),
            right("QUOTA LEFT", or_none(limit.map(quota))),
            right("FOR", duration(reset)),
        ]
    };
    if !is_wide {
        return table::lines(rows.iter().map(|row| cells(row, 24)));
    }
    table::lines(rows.iter().map(|row| {
        let [name, state, left_of_it, reset] = cells(row, 30);
        let scope = or_none(row.1.map(|limit| cut(&limit.scope, 30)));
        [name, state, left("SCOPE", scope), left_of_it, reset]
    }))
}

fn quota(of: &QuotaLimit) -> String {
    let unit = match of.unit {
        Unit::Requests => "request",
        Unit::Posts => "post",
    };
    format!("{} of {}", of.remaining, count(of.limit.into(), unit))
}

fn share(of: &QuotaLimit) -> f64 {
    f64::from(of.remaining) / f64::from(of.limit.max(1))
}

/// At most one page in so many lacks a late post.
fn proven(of: &Proof) -> Option<String> {
    match (of.is_enough, of.page_fulls) {
        (true, _) => Some("1 in 10000".to_owned()),
        (_, 0) => None,
        _ => Some(format!("1 in {}", (1.0 / of.bound).floor())),
    }
}

fn rate(posts_a_minute: f64) -> String {
    match posts_a_minute {
        ..100.0 => format!("{posts_a_minute:.1}"),
        _ => format!("{posts_a_minute:.0}"),
    }
}

fn duration(ms: Option<i64>) -> String {
    or_none(ms.map(short))
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

const fn is_wide(columns: usize) -> bool {
    columns >= WIDE
}

/// What the wide tables take at most.
const WIDE: usize = 131;
