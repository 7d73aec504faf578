//! The timelines of a server that are mirrored, and what the server says of them at the end.

use std::collections::HashSet;

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

/// The timelines that the server shows to the first account, and to nobody in particular. Prints
/// those that it refuses, with the status.
pub(super) fn shown(
    api: &Api,
    accounts: &[Account],
    list: Option<&str>,
) -> Result<Vec<Timeline>, TaskError> {
    let other = &accounts[1].id;
    let list = list.unwrap_or_default();
    #[rustfmt::skip]
    let all = [
        ("public", "public".to_owned(), "timelines/public?".to_owned()),
        ("local", "local".to_owned(), "timelines/public?local=true&".to_owned()),
        ("tag", format!("tag:{TAG}"), format!("timelines/tag/{TAG}?")),
        ("account", format!("account:{other}"), format!("accounts/{other}/statuses?")),
        ("home", "home".to_owned(), "timelines/home?".to_owned()),
        ("mentions", "mentions".to_owned(), "notifications?types[]=mention&".to_owned()),
        ("list", format!("list:{list}"), format!("timelines/list/{list}?")),
    ];
    let mut timelines = Vec::new();
    for (kind, timeline, path) in all
        .iter()
        .filter(|(kind, ..)| *kind != "list" || !list.is_empty())
    {
        let is_own = matches!(*kind, "home" | "mentions" | "list");
        for with_token in [true, false].into_iter().filter(|with| *with || !is_own) {
            let timeline = Timeline {
                name: format!("{kind}{}", if with_token { "" } else { "-open" }),
                timeline: timeline.clone(),
                path: format!("/api/v1/{path}"),
                with_token,
            };
            let answer = api.get(
                &format!("{}limit=1", timeline.path),
                timeline.token(accounts),
            )?;
            match answer.status {
                200 => timelines.push(timeline),
                status => println!("not shown: {} ({status})", timeline.name),
            }
        }
    }
    Ok(timelines)
}

impl Timeline {
    fn token<'a>(&self, accounts: &'a [Account]) -> Option<&'a str> {
        self.with_token.then_some(accounts[0].token.as_str())
    }

    /// All statuses that the server shows now, from the newest down.
    pub(super) fn walk(&self, api: &Api, accounts: &[Account]) -> Result<Vec<Value>, TaskError> {
        let mut statuses: Vec<Value> = Vec::new();
        let mut seen = HashSet::new();
        let mut below = String::new();
        for _ in 0..MAX_PAGES {
            let path = format!("{}limit=40{below}", self.path);
            let answer = api.get(&path, self.token(accounts))?.success(&path)?;
            let mut page = answer.json.as_array().cloned().unwrap_or_default();
            let last = page
                .last()
                .map(|item| item["id"].as_str().unwrap_or_default().to_owned());
            // A server that takes no bound shows the same page again.
            page.retain(|item| seen.insert(item["id"].to_string()));
            let Some(last) = last.filter(|_| !page.is_empty()) else {
                return Ok(statuses);
            };
            below = format!("&max_id={last}");
            // Mitra lists all kinds of notifications.
            page.retain(|item| item["type"].as_str().is_none_or(|kind| kind == "mention"));
            statuses.extend(
                page.into_iter()
                    .map(|item| match item["status"].is_object() {
                        true => item["status"].clone(),
                        false => item,
                    }),
            );
        }
        Err(TaskError::message(format!("{} has no end", self.name)))
    }
}

/// What half of the posts are tagged with.
pub(super) const TAG: &str = "driftline";
const MAX_PAGES: usize = 500;
