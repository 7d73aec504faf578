//! Which requests may do more than read public posts.

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderMap,
        header::{AUTHORIZATION, HOST, ORIGIN},
    },
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use ring::digest::{Digest, SHA256, digest};
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use url::{Host, Url};

use crate::transport::ApiError;

/// What a request needs in order to do more than read public posts. Its address never suffices: through a proxy
/// on this machine all clients look local.
#[derive(Clone, Debug)]
pub enum Authorization {
    /// The operator's token.
    Operator(OperatorToken),
    /// Never allowed: there is no operator over HTTP.
    Closed,
}

/// The operator's token. Only a digest of it is kept.
#[derive(Clone)]
pub struct OperatorToken(Digest);

/// Why a text is not a valid operator's token. Never holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorTokenError {
    /// It could be guessed.
    #[error(
        "invalid operator's token: shorter than {MIN_CHARACTERS} characters; `openssl rand -hex 32` makes a good one"
    )]
    Short,
    /// It could not be sent in a header.
    #[error(
        "invalid operator's token: expected printable ASCII without spaces; `openssl rand -hex 32` makes a good one"
    )]
    Unusable,
}

impl OperatorToken {
    /// Parses a token, with or without a line end.
    ///
    /// # Errors
    /// [`OperatorTokenError`] if it is too short or could not be sent.
    pub fn new(text: &SecretString) -> Result<Self, OperatorTokenError> {
        let token = text.expose_secret().trim();
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OperatorTokenError::Unusable);
        }
        if token.len() < MIN_CHARACTERS {
            return Err(OperatorTokenError::Short);
        }
        Ok(Self(digest(&SHA256, token.as_bytes())))
    }

    /// Takes the same time for every token of one length.
    fn is(&self, presented: &[u8]) -> bool {
        let presented = digest(&SHA256, presented);
        self.0.as_ref().ct_eq(presented.as_ref()).into()
    }
}

impl std::fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OperatorToken(…)")
    }
}

impl Authorization {
    /// Restricts routes that show more than public posts, or change something, to the operator.
    pub fn guard<S: Clone + Send + Sync + 'static>(&self, routes: Router<S>) -> Router<S> {
        routes.route_layer(middleware::from_fn_with_state(self.clone(), check_request))
    }

    /// Whether that is the operator's token.
    pub fn is_operators(&self, presented: &[u8]) -> bool {
        matches!(self, Self::Operator(token) if token.is(presented))
    }

    /// Whether a request with these headers may do more than read public posts.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        match self {
            Self::Closed => Err(ApiError::Forbidden(
                "This server has no operator's token, so nobody may do this over HTTP",
            )),
            Self::Operator(token) => match bearer(headers) {
                Some(presented) if token.is(presented) => Ok(()),
                presented => Err(ApiError::Unauthorized {
                    presented: presented.is_some(),
                }),
            },
        }
    }
}

async fn check_request(
    State(authorization): State<Authorization>,
    request: Request,
    next: Next,
) -> Response {
    match authorization.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

/// Makes routes that any client may call refuse requests from pages of other sites.
pub fn refuse_other_sites<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes.route_layer(middleware::from_fn(async |request: Request, next: Next| {
        if is_of_another_site(request.headers()) {
            return ApiError::Forbidden(NOT_FOR_OTHER_SITES).into_response();
        }
        next.run(request).await
    }))
}

/// The bearer token, if there is exactly one `Authorization` header.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (sent.next(), sent.next()) else {
        return None;
    };
    let (scheme, token) = only.as_bytes().split_at_checked(SCHEME.len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(SCHEME) && !token.is_empty()).then_some(token)
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether the request comes from a page of another site. Only browsers send these headers.
pub(crate) fn is_of_another_site(headers: &HeaderMap) -> bool {
    if let Some(site) = text(headers, FETCH_SITE) {
        return site == CROSS_SITE;
    }
    // Browsers send `Sec-Fetch-Site` only over trustworthy connections, and old ones never.
    headers.get(ORIGIN).is_some_and(|origin| {
        let origin = origin.to_str().ok().and_then(|text| text.split_once("://"));
        origin.map(|(_, host)| host) != text(headers, HOST.as_str())
    })
}

/// Whether a host is one of this server's names: any other name that resolves to it may belong to
/// another site.
pub(crate) fn is_own_name(host: &str, public_base: Option<&Url>) -> bool {
    let Ok(url) = Url::parse(&format!("http://{host}")) else {
        return false;
    };
    let public = public_base.and_then(Url::host_str);
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || Some(name) == public,
        None => false,
    }
}

const FETCH_SITE: &str = "sec-fetch-site";
const CROSS_SITE: &str = "cross-site";
const NOT_FOR_OTHER_SITES: &str = "This address refuses requests from pages of other sites";
const MIN_CHARACTERS: usize = 32;
const SCHEME: &[u8] = b"bearer ";

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(sent: &[(&'static str, &str)]) -> HeaderMap {
        let sent = sent.iter();
        sent.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_page_of_another_site_is_recognised_by_browser_headers() {
        let host = ("host", "ids.example:7610");
        for other in [
            ("sec-fetch-site", "cross-site"),
            ("origin", "https://evil.example"),
            ("origin", "http://ids.example"),
            ("origin", "null"),
        ] {
            assert!(is_of_another_site(&headers(&[host, other])), "{other:?}");
        }
        for own in [
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "none"),
            ("origin", "http://ids.example:7610"),
            ("user-agent", "curl"),
        ] {
            assert!(!is_of_another_site(&headers(&[host, own])), "{own:?}");
        }
        // `Sec-Fetch-Site` decides, also behind a proxy that sends another `Host`.
        let own = [
            ("host", "127.0.0.1:7610"),
            ("origin", "https://ids.example"),
            ("sec-fetch-site", "same-origin"),
        ];
        assert!(!is_of_another_site(&headers(&own)));
    }

    const GOOD: &str = "0123456789abcdef0123456789abcdef";

    fn token(text: &str) -> Result<OperatorToken, OperatorTokenError> {
        OperatorToken::new(&SecretString::from(text))
    }

    #[test]
    fn tokens_that_could_be_guessed_or_not_be_sent_are_refused() {
        assert_eq!(token("short").unwrap_err(), OperatorTokenError::Short);
        assert_eq!(token(&GOOD[1..]).unwrap_err(), OperatorTokenError::Short);
        for bad in [
            format!("{GOOD} {GOOD}"),
            format!("{GOOD}\n{GOOD}"),
            format!("ä{GOOD}"),
        ] {
            assert_eq!(token(&bad).unwrap_err(), OperatorTokenError::Unusable);
        }
        let written = token(&format!("{GOOD}\n")).unwrap();
        assert!(written.is(GOOD.as_bytes()));
        assert!(!written.is(&GOOD.as_bytes()[1..]) && !written.is(b""));
        assert!(!format!("{written:?}").contains("0123"));
    }

    #[test]
    fn a_token_is_read_from_one_header_of_a_bearer() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            bearer(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(read(&["Bearer abc"]), Some(b"abc".to_vec()));
        assert_eq!(read(&["bearer  abc "]), Some(b"abc".to_vec()));
        for none in [
            &[] as &[&str],
            &["Bearer "],
            &["Bearerabc"],
            &["Basic abc"],
            &["B"],
            &["Bearer abc", "Bearer abc"],
        ] {
            assert_eq!(read(none), None, "{none:?}");
        }
    }
}
