//! Pages of timelines.

use axum::response::Response;
use driftline_core::{answer::PageRequest, upstream_id::UpstreamId};
use serde_json::{Value, json};

use super::{
    entity,
    fields::{Fields, PARAMETERS, check_id},
};
use crate::{
    http::{
        answers::ok,
        refusal::Refusal,
        request::{ApiRequest, Params},
        timeline::Timeline,
        tweet::Tweet,
    },
    quota::{Endpoint, RequestKind},
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
    ..USER
};
pub(super) const LIST: Rules = Rules {
    endpoint: Endpoint::List,
    bounds: false,
    ..HOME
};

pub(super) async fn page(
    request: &ApiRequest,
    timeline: Result<Timeline, Refusal>,
    rules: &Rules,
) -> Response {
    let (sim, params) = (&request.sim, &request.params);
    let kind = RequestKind {
        endpoint: rules.endpoint,
        paged: params.has_any(&["since_id", "until_id", "pagination_token"]),
    };
    let right = || {
        let timeline = timeline?;
        let bounds = bounds(rules, params)?;
        let fields = Fields::of(params)?;
        sim.check_cap()?;
        let cut = sim.cut(&timeline, &request.token, &bounds);
        let cut = cut.ok_or(Refusal::NotFound)?;
        sim.give(cut.statuses.len());
        let mut body = entity::several(&Tweet::all(sim, &cut.statuses), &fields);
        body.insert("meta".into(), meta(&cut, params));
        Ok(ok(&Value::Object(body)))
    };
    request.answer(kind, right).await
}

fn bounds(rules: &Rules, params: &Params) -> Result<PageRequest, Refusal> {
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
    let id = |name| match params.text(name) {
        Some(id) => check_id(name, id).map(|()| Some(id.into())),
        None => Ok(None),
    };
    let mut request = PageRequest {
        since_id: id("since_id")?,
        max_id: id("until_id")?,
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
