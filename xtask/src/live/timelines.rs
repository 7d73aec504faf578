//! The timelines of a server that are mirrored, and what the server says of them at the end.

use serde_json::Value;

use super::api::Api;
use super::server::Account;
use crate::error::TaskError;

/// A timeline as a source.
pub(super) struct Timeline {
    /// The source's name.
    pub(super) name: String,
    /// As `driftline source add --timeline` takes it.
    pub(super) timeline: String,
    /// Its path and query at the server.
    path: String,
    /// Whether it is read with the first account's token.
    pub(super) with_token: bool,
}

/// The source's name of a timeline that the server does not show, with the status.
pub(super) type Refused = (String, u16);

/// The timelines that the server shows to the first account, and to nobody in particular; and
/// those that it refuses, with the status.
pub(super) fn shown(
    api: &Api,
    accounts: &[Account],
    list: Option<&str>,
) -> Result<(Vec<Timeline>, Vec<Refused>), TaskError> {
    let (reader, other) = (&accounts[0], &accounts[1]);
    let mut all = vec![
        (
            "public",
            "public".to_owned(),
            "/api/v1/timelines/public?".to_owned(),
        ),
        (
            "local",
            "local".to_owned(),
            "/api/v1/timelines/public?local=true&".to_owned(),
        ),
        (
            "tag",
            format!("tag:{TAG}"),
            format!("/api/v1/timelines/tag/{TAG}?"),
        ),
        (
            "account",
            format!("account:{}", other.id),
            format!("/api/v1/accounts/{}/statuses?", other.id),
        ),
        (
            "home",
            "home".to_owned(),
            "/api/v1/timelines/home?".to_owned(),
        ),
        (
            "mentions",
            "mentions".to_owned(),
            "/api/v1/notifications?types[]=mention&".to_owned(),
        ),
    ];
    if let Some(list) = list {
        let path = format!("/api/v1/timelines/list/{list}?");
        all.push(("list", format!("list:{list}"), path));
    }
    let (mut timelines, mut refused) = (Vec::new(), Vec::new());
    for (kind, timeline, path) in all {
        for with_token in [true, false] {
            let own = matches!(kind, "home" | "mentions" | "list");
            if own && !with_token {
                continue;
            }
            let name = if with_token {
                kind.to_owned()
            } else {
                format!("{kind}-open")
            };
            let token = with_token.then_some(reader.token.as_str());
            let answer = api.get(&format!("{path}limit=1"), token)?;
            match answer.status {
                200 => timelines.push(Timeline {
                    name,
                    timeline: timeline.clone(),
                    path: path.clone(),
                    with_token,
                }),
                status => refused.push((name, status)),
            }
        }
    }
    Ok((timelines, refused))
}

impl Timeline {
    /// All statuses that the server shows now, from the newest down.
    pub(super) fn walk(&self, api: &Api, reader: &Account) -> Result<Vec<Value>, TaskError> {
        let token = self.with_token.then_some(reader.token.as_str());
        let mut statuses: Vec<Value> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut below = String::new();
        for _ in 0..MAX_PAGES {
            let path = format!("{}limit=40{below}", self.path);
            let answer = api.get(&path, token)?.success(&path)?;
            let page = answer.json.as_array().cloned().unwrap_or_default();
            let ids = page.iter().map(|item| item["id"].to_string());
            // A server that takes no bound shows the same page again.
            let news: Vec<bool> = ids.map(|id| seen.insert(id)).collect();
            let Some(last) = page.last().filter(|_| news.contains(&true)) else {
                return Ok(statuses);
            };
            let last = last["id"].as_str().unwrap_or_default();
            below = format!("&max_id={last}");
            for (item, is_new) in page.into_iter().zip(news) {
                if is_new && !is_other_notification(&item) {
                    let of_notification = item.get("status").filter(|of| of.is_object());
                    statuses.push(of_notification.cloned().unwrap_or(item));
                }
            }
        }
        Err(TaskError::message(format!("{} has no end", self.name)))
    }
}

/// Whether it is a notification of something else than a mention: Mitra lists all kinds.
fn is_other_notification(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| kind != "mention")
}

/// What half of the posts are tagged with.
pub(super) const TAG: &str = "driftline";
const MAX_PAGES: usize = 500;
