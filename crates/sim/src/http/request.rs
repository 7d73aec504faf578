//! Requests to any of the APIs.

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Query},
    http::{
        HeaderMap, Uri,
        header::{AUTHORIZATION, HOST},
        request::Parts,
    },
    response::Response,
};
use driftline_core::{api::Api, upstream_id::UpstreamId};

use super::{
    answers::answer,
    oauth1,
    refusal::{Refusal, refuse},
    sim::{Sim, lock},
};
use crate::{
    quota::{Endpoint, RequestKind},
    status::{self, SimAuthor},
};

/// A request with what its handler needs of it.
pub(crate) struct ApiRequest {
    pub(crate) sim: Arc<Sim>,
    /// The bearer token, or OAuth's `oauth_token`; clients of Mastodon without one share "".
    pub(crate) token: String,
    /// The query.
    pub(crate) params: Params,
    headers: HeaderMap,
    pub(crate) uri: Uri,
}

/// Requests to X and Twitter without valid credentials get no further.
impl FromRequestParts<Arc<Sim>> for ApiRequest {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, sim: &Arc<Sim>) -> Result<Self, Response> {
        let token = match sim.config.api {
            Api::Mastodon => Some(bearer(&parts.headers).to_owned()),
            Api::X | Api::Twitter => verified(parts, sim),
        };
        let token = token.ok_or_else(|| refuse(sim.config.api, &Refusal::Unauthorized))?;
        let query = Query::try_from_uri(&parts.uri);
        let Query(params) = query.map_err(|_| refuse(sim.config.api, &Refusal::unreadable()))?;
        Ok(Self {
            sim: Arc::clone(sim),
            token,
            params: Params(params),
            headers: parts.headers.clone(),
            uri: parts.uri.clone(),
        })
    }
}

impl ApiRequest {
    /// Answers it with what is right, or as the faults decide.
    pub(crate) async fn answer(
        &self,
        kind: RequestKind,
        right: impl FnOnce() -> Result<Response, Refusal>,
    ) -> Response {
        self.sim.count(|traffic| match kind.endpoint {
            Endpoint::LookUp => traffic.look_ups += 1,
            Endpoint::LookUps => traffic.batches += 1,
            Endpoint::Credentials => {}
            _ => traffic.page_requests += 1,
        });
        let api = self.sim.config.api;
        let now_ms = self.sim.clock.now_ms();
        let decision = lock(&self.sim.faults).decide(now_ms, &self.token, kind);
        let right = || right().unwrap_or_else(|refusal| refuse(api, &refusal));
        answer(&self.sim, decision, right).await
    }

    /// Answers one without bounds.
    pub(crate) async fn answer_plain(
        &self,
        endpoint: Endpoint,
        right: impl FnOnce() -> Result<Response, Refusal>,
    ) -> Response {
        self.answer(RequestKind::plain(endpoint), right).await
    }

    /// The server's name, as the client knows it.
    pub(crate) fn host(&self) -> &str {
        let host = self.headers.get(HOST).and_then(|host| host.to_str().ok());
        host.unwrap_or(status::HOST)
    }
}

/// A query: its names and values in order.
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// The first value of a name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        pairs.find_map(|(key, value)| (key == name).then_some(&**value))
    }

    /// The values of some names.
    pub(crate) fn texts<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let named =
            |(name, value): &'a (String, String)| names.contains(&&**name).then_some(&**value);
        self.0.iter().filter_map(named)
    }

    /// Whether it has any of these names.
    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.text(name).is_some())
    }

    /// An ID, if its text is not empty.
    pub(crate) fn id(&self, name: &str) -> Option<UpstreamId> {
        let text = self.text(name).filter(|text| !text.is_empty());
        text.map(UpstreamId::from)
    }

    /// A comma-separated list; empty if it is not there.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        let list = self.text(name).into_iter();
        list.flat_map(|list| list.split(',')).collect()
    }

    /// Refuses names that the endpoint does not know.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Refusal> {
        match self.0.iter().find(|(name, _)| !known.contains(&&**name)) {
            None => Ok(()),
            Some((name, value)) => Err(Refusal::bad(
                name,
                value,
                format!(
                    "The query parameter [{name}] is not one of [{}]",
                    known.join(",")
                ),
            )),
        }
    }
}

/// The token of a Mastodon request; clients without one share "".
pub(crate) fn bearer(headers: &HeaderMap) -> &str {
    authorization(headers)
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or("")
}

fn authorization(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()
}

/// The token of a request to X or Twitter.
fn verified(parts: &Parts, sim: &Sim) -> Option<String> {
    match authorization(&parts.headers)?.split_once(' ')? {
        ("Bearer", token) => Some(token.trim().to_owned()).filter(|token| !token.is_empty()),
        ("OAuth", fields) => oauth1::verified(fields, parts, &sim.config.oauth1),
        _ => None,
    }
}

/// The account that all tokens belong to.
pub(crate) fn reader() -> SimAuthor {
    SimAuthor {
        id: READER_ID,
        name: "reader".to_owned(),
        host: None,
    }
}

/// The ID of the account that all tokens of a simulated server belong to.
pub const READER_ID: u64 = 1;
