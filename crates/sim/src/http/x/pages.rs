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
        body.insert("meta".into(), meta(&cut));
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
        // It stands within the bounds already.
        request.max_id = Some(read_token(token).ok_or_else(|| {
            let message =
                format!("The `pagination_token` query parameter value [{token}] is not valid");
            Refusal::bad("pagination_token", token, message)
        })?);
    }
    Ok(request)
}

fn meta(cut: &Cut) -> Value {
    let mut meta = json!({ "result_count": cut.statuses.len() });
    if let (Some(newest), Some(oldest)) = (cut.statuses.first(), cut.statuses.last()) {
        meta["newest_id"] = json!(newest.id);
        meta["oldest_id"] = json!(oldest.id);
    }
    if let Some(oldest) = cut.oldest.as_ref().filter(|_| cut.full) {
        meta["next_token"] = json!(token(oldest));
    }
    meta
}

/// Where a walk goes on: below this post. Opaque to clients.
fn token(oldest: &UpstreamId) -> String {
    let id: u64 = oldest.as_str().parse().unwrap_or(0);
    format!("{TOKEN}{:x}", id ^ SCRAMBLE)
}

fn read_token(token: &str) -> Option<UpstreamId> {
    let id = u64::from_str_radix(token.strip_prefix(TOKEN)?, 16).ok()?;
    Some(UpstreamId::new((id ^ SCRAMBLE).to_string()))
}

const TOKEN: &str = "7140dibdnow";
const SCRAMBLE: u64 = 0x5bd1_e995_9e37_79b9;
const MOST: u16 = 100;
