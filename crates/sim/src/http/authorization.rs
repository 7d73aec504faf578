//! The authorization of requests.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header::AUTHORIZATION, request::Parts},
    response::Response,
};

use super::{
    oauth1,
    refusal::{Refusal, refuse},
    sim::Sim,
};
use crate::status::SimAuthor;

/// The token of a Mastodon request; clients without one share "".
pub(crate) fn bearer(headers: &HeaderMap) -> &str {
    authorization(headers)
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or("")
}

fn authorization(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()
}

/// Who sends a request to X or Twitter: a request without valid credentials
/// gets no further.
pub(crate) struct Caller {
    /// The bearer token, or OAuth's `oauth_token`.
    pub(crate) token: String,
}

impl FromRequestParts<Arc<Sim>> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, sim: &Arc<Sim>) -> Result<Self, Response> {
        let refused = || refuse(sim.api(), &Refusal::Unauthorized);
        let header = authorization(&parts.headers).ok_or_else(refused)?;
        let token = match header.split_once(' ') {
            Some(("Bearer", token)) if !token.trim().is_empty() => token.trim().to_owned(),
            Some(("OAuth", fields)) => {
                oauth1::verified(fields, parts, sim.oauth1_keys()).ok_or_else(refused)?
            }
            _ => return Err(refused()),
        };
        Ok(Self { token })
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
