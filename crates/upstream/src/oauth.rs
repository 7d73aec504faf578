//! Signed requests: OAuth 1.0a (RFC 5849) with HMAC-SHA1.
//!
//! A crate for it (`oauth1-request`) would bring an older generation of the hash crates next to
//! today's; what there is to it, once HMAC, SHA-1 and base64 come from libraries, is the text that
//! is signed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha1::Sha1;
use url::Url;

use crate::{headers, segment::encoded};

/// A user's access through an application, as OAuth 1.0a has it: each request
/// is signed, and the two secrets never travel.
#[derive(Debug, Clone)]
pub struct OAuth1 {
    /// Names the application.
    pub consumer_key: SecretString,
    /// The application's secret.
    pub consumer_secret: SecretString,
    /// Names the user's grant.
    pub access_token: SecretString,
    /// The grant's secret.
    pub access_token_secret: SecretString,
}

impl OAuth1 {
    /// The four texts, in the order of their [`NAMES`].
    pub(crate) fn secrets(&self) -> [&SecretString; 4] {
        [
            &self.consumer_key,
            &self.consumer_secret,
            &self.access_token,
            &self.access_token_secret,
        ]
    }

    /// The `Authorization` header of a GET, with a nonce of the system's and
    /// the local clock's time.
    pub(crate) fn authorization_now(&self, url: &Url) -> Result<String, SigningError> {
        let mut nonce = [0_u8; 16];
        getrandom::fill(&mut nonce).map_err(|_| SigningError)?;
        let nonce = format!("{:032x}", u128::from_be_bytes(nonce));
        self.authorization(url, &nonce, headers::now_ms() / 1000)
    }

    /// The `Authorization` header of a GET: `nonce` is a text that no other
    /// request of the same second has, `unix_s` the time of the request.
    fn authorization(&self, url: &Url, nonce: &str, unix_s: i64) -> Result<String, SigningError> {
        let unix_s = unix_s.to_string();
        let own = [
            ("oauth_consumer_key", self.consumer_key.expose_secret()),
            ("oauth_nonce", nonce),
            ("oauth_signature_method", "HMAC-SHA1"),
            ("oauth_timestamp", &unix_s),
            ("oauth_token", self.access_token.expose_secret()),
            ("oauth_version", "1.0"),
        ];
        let query: Vec<_> = url.query_pairs().collect();
        let asked = query
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()));
        let text = signed_text("GET", url, own.into_iter().chain(asked));
        let signature = self.signature(&text)?;
        let mut header = String::from("OAuth ");
        for (name, value) in own {
            header.push_str(&format!("{name}=\"{}\", ", encoded(value)));
        }
        header.push_str(&format!("oauth_signature=\"{}\"", encoded(&signature)));
        Ok(header)
    }

    /// The signature of a text (RFC 5849, 3.4.2).
    fn signature(&self, text: &str) -> Result<String, SigningError> {
        let key = format!(
            "{}&{}",
            encoded(self.consumer_secret.expose_secret()),
            encoded(self.access_token_secret.expose_secret())
        );
        let mut mac = Hmac::<Sha1>::new_from_slice(key.as_bytes()).map_err(|_| SigningError)?;
        mac.update(text.as_bytes());
        Ok(STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// The text that is signed for a request (RFC 5849, 3.4.1): its method, its
/// address without the query, and its parameters in the order of their bytes.
fn signed_text<'a>(
    method: &str,
    url: &Url,
    parameters: impl Iterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut parameters: Vec<_> = parameters
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    parameters.sort_unstable();
    let parameters: Vec<_> = parameters
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let address = format!("{}{}", url.origin().ascii_serialization(), url.path());
    format!(
        "{method}&{}&{}",
        encoded(&address),
        encoded(&parameters.join("&"))
    )
}

/// A request that cannot be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the request cannot be signed because this system gives no random numbers; check that /dev/urandom can be read"
)]
pub(crate) struct SigningError;

/// What the four texts are called where people write them down.
pub(crate) const NAMES: [&str; 4] = [
    "consumer_key",
    "consumer_secret",
    "access_token",
    "access_token_secret",
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn oauth(texts: [&str; 4]) -> OAuth1 {
        let [key, secret, token, token_secret] = texts.map(SecretString::from);
        OAuth1 {
            consumer_key: key,
            consumer_secret: secret,
            access_token: token,
            access_token_secret: token_secret,
        }
    }

    /// The example of "Creating a signature" in Twitter's documentation.
    #[test]
    fn the_documented_request_has_the_documented_signature() {
        let oauth = oauth([
            "xvz1evFS4wEEPTGEFPHBog",
            "kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw",
            "370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb",
            "LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE",
        ]);
        let url = Url::parse("https://api.twitter.com/1.1/statuses/update.json").expect("a URL");
        let text = signed_text(
            "POST",
            &url,
            [
                (
                    "status",
                    "Hello Ladies + Gentlemen, a signed OAuth request!",
                ),
                ("include_entities", "true"),
                ("oauth_consumer_key", oauth.consumer_key.expose_secret()),
                ("oauth_nonce", "kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg"),
                ("oauth_signature_method", "HMAC-SHA1"),
                ("oauth_timestamp", "1318622958"),
                ("oauth_token", oauth.access_token.expose_secret()),
                ("oauth_version", "1.0"),
            ]
            .into_iter(),
        );
        assert!(text.starts_with(
            "POST&https%3A%2F%2Fapi.twitter.com%2F1.1%2Fstatuses%2Fupdate.json&include_entities%3Dtrue%26oauth_consumer_key%3D"
        ));
        assert!(text.ends_with(
            "%26status%3DHello%2520Ladies%2520%252B%2520Gentlemen%252C%2520a%2520signed%2520OAuth%2520request%2521"
        ));
        assert_eq!(
            oauth.signature(&text).as_deref(),
            Ok("hCtSmYh+iHYCEqBWrE7C7hYmtUk=")
        );
    }

    /// The example of OAuth Core 1.0, appendix A.5.
    #[test]
    fn a_signed_get_is_that_of_the_specification() {
        let oauth = oauth([
            "dpf43f3p2l4k3l03",
            "kd94hf93k423kf44",
            "nnch734d00sl2jdk",
            "pfkkdhi9sl3r4s00",
        ]);
        let url = Url::parse("http://photos.example.net/photos?size=original&file=vacation.jpg")
            .expect("a URL");
        assert_eq!(
            oauth
                .authorization(&url, "kllo9940pd9333jh", 1_191_242_096)
                .as_deref(),
            Ok(
                r#"OAuth oauth_consumer_key="dpf43f3p2l4k3l03", oauth_nonce="kllo9940pd9333jh", oauth_signature_method="HMAC-SHA1", oauth_timestamp="1191242096", oauth_token="nnch734d00sl2jdk", oauth_version="1.0", oauth_signature="tR3%2BTy81lMeYAr%2FFid0kMTYa%2FWM%3D""#
            )
        );
    }

    #[test]
    fn ports_and_repeated_parameters_are_signed_as_the_rfc_says() {
        let url = Url::parse("HTTP://Example.COM:8080/r%20v/X").expect("a URL");
        let text = signed_text(
            "GET",
            &url,
            [("b", "2"), ("a", "z"), ("a", "b c"), ("c@", "")].into_iter(),
        );
        assert_eq!(
            text,
            "GET&http%3A%2F%2Fexample.com%3A8080%2Fr%2520v%2FX&a%3Db%2520c%26a%3Dz%26b%3D2%26c%2540%3D"
        );
    }

    #[test]
    fn no_two_requests_are_signed_alike() {
        let oauth = oauth(["a", "b", "c", "d"]);
        let url = Url::parse("https://a.example/").expect("a URL");
        let headers: HashSet<_> = (0..100)
            .map(|_| oauth.authorization_now(&url).expect("signed"))
            .collect();
        assert_eq!(headers.len(), 100);
    }
}
