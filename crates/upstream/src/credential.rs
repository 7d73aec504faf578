//! What an upstream is shown so that it answers.

use std::collections::HashMap;

use driftline_core::api::Api;
use driftline_net::{Authorization, Http};
use http::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::{
    Address,
    oauth::{NAMES, OAuth1},
};

/// What requests to an upstream carry.
#[derive(Debug, Clone, Default)]
pub enum Credential {
    /// Nothing: only what is public can be read.
    #[default]
    None,
    /// A token that is sent as is: of a Mastodon account or
    /// application, or of X's OAuth 2.0.
    Bearer(SecretString),
    /// A signature of each request (X and Twitter).
    OAuth1(Box<OAuth1>),
}

impl Credential {
    /// Reads a credential from the text of a file or of an environment
    /// variable: a bare token, or the four names `consumer_key`,
    /// `consumer_secret`, `access_token` and `access_token_secret` of OAuth
    /// 1.0a, as a JSON object or as lines `name=value`. Other names are
    /// passed over, and so are empty lines and those that begin with `#`.
    ///
    /// # Errors
    /// [`CredentialError`]; it repeats nothing of the text.
    pub fn parse(text: &str) -> Result<Self, CredentialError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(CredentialError::Empty);
        }
        if text.starts_with('{') {
            return signed(json_members(text)?);
        }
        let mut lines = text.lines().map(str::trim).filter(|line| is_said(line));
        let name = |line: &str| line.split_once('=').map(|(name, _)| name.trim().to_owned());
        // A token may end in `=`, so one line is a member only by its name.
        let is_member = |line: &str| name(line).is_some_and(|name| NAMES.contains(&&*name));
        match (lines.next(), lines.next()) {
            (Some(token), None) if !is_member(token) => {
                if !is_sendable(token) {
                    return Err(CredentialError::NotAToken);
                }
                Ok(Self::Bearer(SecretString::from(token)))
            }
            _ => signed(line_members(text)?),
        }
    }

    /// Whether it is a bearer token, which may be an application's own.
    pub(crate) const fn is_bearer(&self) -> bool {
        matches!(self, Self::Bearer(_))
    }

    /// Whether there is no credential.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Checks that it can be sent to this server.
    pub(crate) fn check(&self, api: Api, address: &Address, http: &Http) -> Result<(), TokenError> {
        if !self.secrets().all(is_sendable) {
            return Err(TokenError::NotAToken);
        }
        if api == Api::Mastodon && matches!(self, Self::OAuth1(_)) {
            return Err(TokenError::NotForMastodon);
        }
        if !self.is_none() && !address.is_encrypted() && !http.allows_private(address.url()) {
            return Err(TokenError::Unencrypted(address.clone()));
        }
        Ok(())
    }

    /// The `Authorization` header of a GET of this address.
    pub(crate) fn authorization(&self, url: &Url) -> Authorization {
        let text = match self {
            Self::None => return Ok(None),
            Self::Bearer(token) => format!("Bearer {}", token.expose_secret()),
            Self::OAuth1(oauth) => oauth.authorization_now(url)?,
        };
        // Checked texts always make a header.
        let Ok(mut value) = HeaderValue::from_str(&text) else {
            return Ok(None);
        };
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Every text that no message may repeat.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let secrets = match self {
            Self::None => Vec::new(),
            Self::Bearer(token) => vec![token],
            Self::OAuth1(oauth) => oauth.secrets().to_vec(),
        };
        secrets.into_iter().map(|secret| secret.expose_secret())
    }
}

/// A text that is no credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// There is nothing in it.
    #[error("the credential is empty: expected a token, or the four names of OAuth 1.0a")]
    Empty,
    /// One line, but no token.
    #[error(
        "this is not a token: tokens are printable ASCII without spaces; check that it was copied whole and without a line break"
    )]
    NotAToken,
    /// It begins like a JSON object but is invalid.
    #[error(
        "the credential begins with {{ but is not a JSON object of strings (line {line}, column {column})"
    )]
    NotJson {
        /// Where it cannot be read, counted from one.
        line: usize,
        /// Where in the line, counted from one.
        column: usize,
    },
    /// A line of several that is not `name=value`.
    #[error(
        "line {0} of the credential is not name=value; write one token alone, or the four names of OAuth 1.0a on a line each"
    )]
    NotAMember(usize),
    /// A name that occurs twice.
    #[error("the credential holds {0} twice; keep the right one")]
    Twice(&'static str),
    /// A name that is missing, or whose value cannot be sent.
    #[error(
        "the credential's {0} is missing, or is not printable ASCII without spaces; OAuth 1.0a needs consumer_key, consumer_secret, access_token and access_token_secret"
    )]
    Incomplete(&'static str),
}

/// A token that is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is empty or holds spaces, line breaks or other characters that no
    /// token holds.
    #[error(
        "this is not a token: tokens are printable ASCII without spaces; check that it was copied whole and without a line break"
    )]
    NotAToken,
    /// It would be sent unencrypted.
    #[error(
        "a token would travel unencrypted to {0}; use https://, or, on a network that you trust, allow it for the source with --allow-private (`driftline source set NAME --allow-private on` if it is there already), or for every server with upstream.allow_private = true in driftline.toml"
    )]
    Unencrypted(Address),
    /// OAuth 1.0a, which Mastodon does not speak.
    #[error(
        "the credential is one of OAuth 1.0a, which Mastodon does not know; give the access token alone"
    )]
    NotForMastodon,
}

fn is_said(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

fn is_sendable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())
}

type Members = HashMap<&'static str, String>;

fn signed(mut members: Members) -> Result<Credential, CredentialError> {
    let [key, secret, token, token_secret] = NAMES.map(|name| {
        let value = members.remove(name).filter(|value| is_sendable(value));
        value
            .map(SecretString::from)
            .ok_or(CredentialError::Incomplete(name))
    });
    Ok(Credential::OAuth1(Box::new(OAuth1 {
        consumer_key: key?,
        consumer_secret: secret?,
        access_token: token?,
        access_token_secret: token_secret?,
    })))
}

fn json_members(text: &str) -> Result<Members, CredentialError> {
    // The reader's own words are left out: they quote what they stop at.
    let object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|error| CredentialError::NotJson {
            line: error.line(),
            column: error.column(),
        })?;
    let found = NAMES.into_iter().filter_map(|name| {
        let value = object.get(name)?.as_str()?;
        Some((name, value.trim().to_owned()))
    });
    Ok(found.collect())
}

fn line_members(text: &str) -> Result<Members, CredentialError> {
    let mut members = Members::new();
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if !is_said(line) {
            continue;
        }
        let (name, value) = line
            .split_once('=')
            .ok_or(CredentialError::NotAMember(index + 1))?;
        let Some(name) = NAMES.into_iter().find(|known| *known == name.trim()) else {
            continue;
        };
        let value = unquoted(value.trim()).to_owned();
        if members.insert(name, value).is_some() {
            return Err(CredentialError::Twice(name));
        }
    }
    Ok(members)
}

/// The value without the quotes that files of environment variables put
/// around it.
fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINES: &str =
        "consumer_key=ck\nconsumer_secret=cs\naccess_token=7-at\naccess_token_secret=ts";

    fn texts(text: &str) -> Vec<String> {
        let credential = Credential::parse(text).expect(text);
        credential.secrets().map(str::to_owned).collect()
    }

    #[test]
    fn a_bare_token_is_a_bearer_token() {
        for token in ["abc", "AAAA%3D%3D", "a=", "a=b", "key=value==", "Bearer"] {
            let credential = Credential::parse(&format!("  {token}\n\n")).expect(token);
            assert!(matches!(credential, Credential::Bearer(_)), "{token}");
            assert_eq!(texts(token), [token]);
        }
        assert_eq!(texts("# for X\nabc"), ["abc"]);
    }

    #[test]
    fn four_names_are_oauth_1() {
        let four = ["ck", "cs", "7-at", "ts"];
        for text in [
            LINES,
            "access_token_secret = ts\r\n\r\n# mine\naccess_token=\"7-at\"\nconsumer_key='ck'\nconsumer_secret=cs\nscreen_name=x\n",
            r#"{"consumer_key":"ck","consumer_secret":" cs","access_token":"7-at","access_token_secret":"ts","user":{"id":7}}"#,
        ] {
            let credential = Credential::parse(text).expect(text);
            assert!(matches!(credential, Credential::OAuth1(_)));
            assert_eq!(texts(text), four);
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        use CredentialError as Is;
        for (text, error) in [
            ("", Is::Empty),
            (" \n", Is::Empty),
            ("two words", Is::NotAToken),
            ("é", Is::NotAToken),
            ("consumer_key=ck", Is::Incomplete("consumer_secret")),
            ("abc\ndef", Is::NotAMember(1)),
            ("consumer_key=ck\n\nabc", Is::NotAMember(3)),
            (
                "consumer_key=ck\nconsumer_key=ck",
                Is::Twice("consumer_key"),
            ),
            ("a=b\nc=d", Is::Incomplete("consumer_key")),
            ("{}", Is::Incomplete("consumer_key")),
            ("{", Is::NotJson { line: 1, column: 1 }),
            (r#"{"consumer_key":7}"#, Is::Incomplete("consumer_key")),
            (
                &LINES.replace("=cs", "=c s"),
                Is::Incomplete("consumer_secret"),
            ),
        ] {
            assert_eq!(Credential::parse(text).err(), Some(error), "{text:?}");
        }
    }

    #[test]
    fn nothing_shows_a_secret() {
        let lines = LINES.replace("=c", "=hunter2c").replace("7-at", "hunter2");
        for text in ["hunter2", &*lines] {
            let shown = format!("{:?}", Credential::parse(text));
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        for text in [
            "hunter2 hunter2",
            "hunter2\nhunter2",
            "{\"consumer_key\":\"hunter2\" hunter2",
            "{\"consumer_key\":\"hunter2\"}",
            "consumer_key=hunter2\nhunter2",
            "consumer_key=hunter2\nconsumer_key=hunter2",
        ] {
            let error = Credential::parse(text).expect_err(text);
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text: String) {
            let _ = Credential::parse(&text);
            let _ = Credential::parse(&format!("{{{text}"));
            let _ = Credential::parse(&format!("consumer_key={text}"));
        }
    }
}
