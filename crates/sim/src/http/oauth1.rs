//! OAuth 1.0a (RFC 5849) with HMAC-SHA1, the server's side.

use std::{borrow::Cow, collections::BTreeMap};

use axum::{
    extract::{OriginalUri, Query},
    http::{header::HOST, request::Parts},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha1::Sha1;

use super::config::OAuth1Keys;

/// The token of a header (what follows `OAuth `), if it is well formed and
/// signed with one of the keys; with no keys the signature is not looked at.
pub(crate) fn verified(fields: &str, parts: &Parts, keys: &[OAuth1Keys]) -> Option<String> {
    let fields = parse(fields)?;
    let field = |name: &str| fields.get(name).map(String::as_str);
    let whole = field("oauth_signature_method")? == "HMAC-SHA1"
        && field("oauth_version").is_none_or(|version| version == "1.0")
        && field("oauth_timestamp")?.parse::<u64>().is_ok()
        && !field("oauth_nonce")?.is_empty()
        && !field("oauth_consumer_key")?.is_empty();
    let signature = STANDARD.decode(field("oauth_signature")?).ok()?;
    if !whole {
        return None;
    }
    let consumer_key = field("oauth_consumer_key")?;
    let token = field("oauth_token").unwrap_or(consumer_key);
    if keys.is_empty() {
        return Some(token.to_owned());
    }
    let keys = keys
        .iter()
        .find(|keys| keys.consumer_key == consumer_key && keys.token == token)?;
    let Query(query): Query<Vec<(String, String)>> = Query::try_from_uri(&parts.uri).ok()?;
    let parameters = normalized(&fields, &query);
    let key = format!(
        "{}&{}",
        encoded(&keys.consumer_secret),
        encoded(&keys.token_secret)
    );
    addresses(parts)
        .iter()
        .map(|address| {
            let method = parts.method.as_str();
            format!("{method}&{}&{}", encoded(address), encoded(&parameters))
        })
        .any(|base| is_signed(&key, &base, &signature))
        .then(|| token.to_owned())
}

/// `name="value", …`, percent-decoded; `None` if it is anything else.
fn parse(fields: &str) -> Option<BTreeMap<String, String>> {
    fields
        .split(',')
        .map(|field| {
            let (name, value) = field.trim().split_once('=')?;
            let value = value.strip_prefix('"')?.strip_suffix('"')?;
            Some((decoded(name)?, decoded(value)?))
        })
        .collect()
}

/// The query's and the header's parameters, encoded, sorted and joined (RFC
/// 5849, 3.4.1.3.2).
fn normalized(fields: &BTreeMap<String, String>, query: &[(String, String)]) -> String {
    let fields = fields
        .iter()
        .filter(|(name, _)| !["realm", "oauth_signature"].contains(&name.as_str()));
    let mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = fields
        .chain(query.iter().map(|(name, value)| (name, value)))
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// The URLs that the client may have signed: with its own idea of the scheme,
/// or, when something in between sent it here, of the host.
fn addresses(parts: &Parts) -> Vec<String> {
    // A slash at its end is signed too, and gone by now.
    let written = parts.extensions.get::<OriginalUri>();
    let path = written.map_or(&parts.uri, |OriginalUri(uri)| uri).path();
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.unwrap_or_default().to_ascii_lowercase();
    [
        format!("http://{host}{path}"),
        format!("https://{host}{path}"),
        format!("https://api.twitter.com{path}"),
        format!("https://api.x.com{path}"),
    ]
    .into()
}

fn is_signed(key: &str, base: &str, signature: &[u8]) -> bool {
    Hmac::<Sha1>::new_from_slice(key.as_bytes()).is_ok_and(|mac| {
        mac.chain_update(base.as_bytes())
            .verify_slice(signature)
            .is_ok()
    })
}

fn decoded(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?;
    Some(text.into_owned())
}

fn encoded(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, RESERVED).into()
}

/// Everything but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    /// The example of Twitter's page "Creating a signature", as a GET: the
    /// signature was computed with oauthlib 3.3.1.
    fn request(uri: &str) -> Parts {
        let request = Request::get(uri).header(HOST, "api.twitter.com");
        request.body(()).expect("a request").into_parts().0
    }

    fn keys() -> OAuth1Keys {
        OAuth1Keys {
            consumer_key: "xvz1evFS4wEEPTGEFPHBog".into(),
            consumer_secret: "kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw".into(),
            token: "370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb".into(),
            token_secret: "LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE".into(),
        }
    }

    fn header(signature: &str) -> String {
        format!(
            "oauth_consumer_key=\"xvz1evFS4wEEPTGEFPHBog\", \
             oauth_nonce=\"kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg\", \
             oauth_signature=\"{signature}\", oauth_signature_method=\"HMAC-SHA1\", \
             oauth_timestamp=\"1318622958\", \
             oauth_token=\"370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb\", \
             oauth_version=\"1.0\""
        )
    }

    const URI: &str = "/1.1/statuses/lookup.json?status=Hello%20Ladies%20%2b%20Gentlemen%2c\
                       %20a%20signed%20OAuth%20request%21&include_entities=true";

    #[test]
    fn a_signature_by_another_library_is_accepted_and_a_wrong_one_not() {
        let right = header("cWAogpEATSnwDW2O2DneoOcUJ7g%3D");
        let token = Some(keys().token);
        assert_eq!(verified(&right, &request(URI), &[keys()]), token);
        let other = URI.replace("true", "false");
        assert_eq!(verified(&right, &request(&other), &[keys()]), None);
        let mut secret = keys();
        secret.token_secret.push('x');
        assert_eq!(verified(&right, &request(URI), &[secret]), None);
        let wrong = header("AAAAAAAAAAAAAAAAAAAAAAAAAAA%3D");
        assert_eq!(verified(&wrong, &request(URI), &[keys()]), None);
        assert_eq!(verified(&wrong, &request(URI), &[]), token, "not looked at");
    }

    #[test]
    fn the_path_is_signed_as_the_client_wrote_it() {
        let mut parts = request(URI);
        let slashed = URI.replace(".json", ".json/");
        let written = slashed.parse().expect("a URI");
        parts.extensions.insert(OriginalUri(written));
        let right = header("6%2BRAzrkKZPaCkrS9pmF%2BTv%2FF6pA%3D");
        assert!(verified(&right, &parts, &[keys()]).is_some());
        let of_another = header("cWAogpEATSnwDW2O2DneoOcUJ7g%3D");
        assert_eq!(verified(&of_another, &parts, &[keys()]), None);
    }

    #[test]
    fn headers_that_are_not_well_formed_are_refused() {
        let right = header("cWAogpEATSnwDW2O2DneoOcUJ7g%3D");
        for (from, to) in [
            ("HMAC-SHA1", "PLAINTEXT"),
            ("oauth_nonce=", "nonce="),
            ("\"1318622958\"", "1318622958"),
            ("\"1.0\"", "\"2.0\""),
            ("1318622958", "yesterday"),
        ] {
            let wrong = right.replace(from, to);
            assert_ne!(wrong, right);
            assert_eq!(verified(&wrong, &request(URI), &[]), None, "{to}");
        }
        assert_eq!(verified("", &request(URI), &[]), None);
    }
}
