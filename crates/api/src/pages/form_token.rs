//! Tokens in forms, against forms of other sites: the digest of the browser's cookies, which no other site
//! reads, and which its own page shows to nobody else.

use axum::{
    extract::Request,
    http::Method,
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::digest::{Context, SHA256};
use subtle::ConstantTimeEq as _;

use crate::{auth::is_of_another_site, transport::ApiError};

/// The token of a browser with these cookies. It changes with each log-in.
pub(super) fn of_cookies(form: &str, session: Option<&str>) -> String {
    let mut context = Context::new(&SHA256);
    for part in ["driftline form", form, session.unwrap_or_default()] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    BASE64.encode(context.finish())
}

/// Whether a form carries that token. Takes the same time for every token of one length.
pub(super) fn is(expected: &str, presented: &str) -> bool {
    expected.as_bytes().ct_eq(presented.as_bytes()).into()
}

/// Refuses forms that pages of other sites send. Links from there may be followed.
pub(super) async fn refuse_other_sites(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    // A page of a neighbouring host or port may have set our cookies where they lack `__Host-`.
    let site = request.headers().get("sec-fetch-site");
    let is_neighbour = site.is_some_and(|site| site == "same-site");
    if !reads && (is_neighbour || is_of_another_site(request.headers())) {
        let why = "This address refuses requests from pages of other sites";
        return ApiError::Forbidden(why).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_both_cookies() {
        let token = of_cookies("form", Some("session"));
        assert!(is(&token, &of_cookies("form", Some("session"))));
        for other in [
            of_cookies("form", None),
            of_cookies("form", Some("other")),
            of_cookies("forms", Some("ession")),
            String::new(),
        ] {
            assert!(!is(&token, &other));
        }
    }
}
