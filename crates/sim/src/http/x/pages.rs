//! Pages of timelines.

use std::sync::Arc;

use axum::{http::StatusCode, response::Response};
use driftline_core::{answer::PageRequest, api::Api, upstream_id::UpstreamId};
use serde_json::{Map, Value, json};

use super::{
    entity,
    fields::{Fields, PARAMETERS},
    query::Params,
};
use crate::{
    http::{
        answers::{answer, json as json_answer},
        authorization::Caller,
        refusal::{Refusal, refuse},
        sim::Sim,
        timeline::Timeline,
        tweet::Tweet,
    },
    quota::{Asked, Endpoint},
    world::Cut,
};

/// What an endpoint allows.
pub(super) struct Rules {
    endpoint: Endpoint,
    least: u16,
    default: u16,
    /// Whether it takes `since_id` and `until_id`.
    bounds: bool,
}

pub(super) const HOME: Rules = Rules {
    endpoint: Endpoint::Home,
    least: 1,
    default: 100,
    bounds: true,
};
pub(super) const USER: Rules = Rules {
    endpoint: Endpoint::User,
    least: 5,
    default: 10,
    bounds: true,
};
pub(super) const MENTIONS: Rules = Rules {
    endpoint: Endpoint::Mentions,
    least: 5,
    default: 10,
    bounds: true,
};
pub(super) const LIST: Rules = Rules {
    endpoint: Endpoint::List,
    least: 1,
    default: 100,
    bounds: false,
};

pub(super) async fn page(
    sim: &Arc<Sim>,
    caller: &Caller,
    timeline: Result<Timeline, Refusal>,
    rules: &Rules,
    params: &Params,
) -> Response {
    sim.count(|traffic| traffic.page_requests += 1);
    let asked = Asked {
        endpoint: rules.endpoint,
        paged: ["since_id", "until_id", "pagination_token"]
            .iter()
            .any(|name| params.text(name).is_some()),
    };
    let verdict = sim.verdict(&caller.token, asked);
    answer(sim, verdict, || {
        let page = timeline.and_then(|timeline| right(sim, caller, &timeline, rules, params));
        match page {
            Ok(body) => json_answer(StatusCode::OK, Value::Object(body).to_string()),
            Err(refusal) => refuse(Api::X, &refusal),
        }
    })
    .await
}

fn right(
    sim: &Sim,
    caller: &Caller,
    timeline: &Timeline,
    rules: &Rules,
    params: &Params,
) -> Result<Map<String, Value>, Refusal> {
    let request = request(rules, params)?;
    let fields = Fields::of(params)?;
    sim.capped().map_or(Ok(()), Err)?;
    let cut = sim.cut(timeline, &caller.token, &request);
    let cut = cut.ok_or(Refusal::NotFound)?;
    sim.give(cut.statuses.len());
    let now_ms = sim.clock.now_ms();
    let tweets: Vec<_> = cut
        .statuses
        .iter()
        .map(|status| Tweet::of(sim, now_ms, status))
        .collect();
    let mut body = entity::several(&tweets, &fields);
    body.insert("meta".into(), meta(&cut, params));
    Ok(body)
}

fn request(rules: &Rules, params: &Params) -> Result<PageRequest, Refusal> {
    let mut known = vec!["id", "max_results", "pagination_token"];
    known.extend(PARAMETERS);
    if rules.bounds {
        known.extend(["since_id", "until_id"]);
    }
    params.only(&known)?;
    let limit = match params.text("max_results") {
        None => rules.default,
        Some(text) => text
            .parse()
            .ok()
            .filter(|most| (rules.least..=MOST).contains(most))
            .ok_or_else(|| {
                let least = rules.least;
                let message = format!(
                    "The `max_results` query parameter value [{text}] is not between {least} and {MOST}"
                );
                Refusal::bad("max_results", text, message)
            })?,
    };
    let since = params.id("since_id")?.map(UpstreamId::from);
    let until = params.id("until_id")?.map(UpstreamId::from);
    let mut request = PageRequest {
        since_id: since,
        max_id: until,
        min_id: None,
        limit,
    };
    if let Some(token) = params.text("pagination_token") {
        match Token::read(token) {
            // It stands within the bounds already.
            Some(Token::Older(id)) => request.max_id = Some(id),
            Some(Token::Newer(id)) => request.min_id = Some(id),
            None => {
                let message =
                    format!("The `pagination_token` query parameter value [{token}] is not valid");
                return Err(Refusal::bad("pagination_token", token, message));
            }
        }
    }
    Ok(request)
}

fn meta(cut: &Cut, params: &Params) -> Value {
    let mut meta = json!({ "result_count": cut.statuses.len() });
    if let (Some(newest), Some(oldest)) = (cut.statuses.first(), cut.statuses.last()) {
        meta["newest_id"] = json!(newest.id);
        meta["oldest_id"] = json!(oldest.id);
    }
    if let Some(oldest) = cut.oldest.clone().filter(|_| cut.full) {
        meta["next_token"] = json!(Token::Older(oldest).write());
    }
    if let Some(newest) = cut.newest.clone()
        && params.text("pagination_token").is_some()
    {
        meta["previous_token"] = json!(Token::Newer(newest).write());
    }
    meta
}

/// Where a walk goes on. Opaque to clients.
enum Token {
    /// The posts below.
    Older(UpstreamId),
    /// The posts just above.
    Newer(UpstreamId),
}

impl Token {
    fn write(&self) -> String {
        let (kind, id) = match self {
            Self::Older(id) => ("7140dibdnow", id),
            Self::Newer(id) => ("77qpymm88g5", id),
        };
        let id: u64 = id.as_str().parse().unwrap_or(0);
        format!("{kind}{:x}", id ^ SCRAMBLE)
    }

    fn read(text: &str) -> Option<Self> {
        let (kind, id) = text.split_at_checked(11)?;
        let id = u64::from_str_radix(id, 16).ok()? ^ SCRAMBLE;
        let id = UpstreamId::new(id.to_string());
        match kind {
            "7140dibdnow" => Some(Self::Older(id)),
            "77qpymm88g5" => Some(Self::Newer(id)),
            _ => None,
        }
    }
}

const SCRAMBLE: u64 = 0x5bd1_e995_9e37_79b9;
const MOST: u16 = 100;
