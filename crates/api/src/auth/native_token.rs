//! Driftline's native tokens: a JWT of 15 minutes that nests a refresh token of 30 days.
//!
//! The algorithm is HS256 and no other; keys have IDs ([`TokenKeys`]). Whether a token is still good is the
//! store's to say: `docs/tokens.md`. Pure: the time comes as an argument.

use std::sync::Arc;

use driftline_core::clock::is_ahead;
use driftline_store::{
    LocalAccountId,
    social::token_family::{TokenFamily, TokenFamilyId},
};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode,
};
use parking_lot::RwLock;
use secrecy::SecretString;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    jwt_provider,
    opaque_secret::{OpaqueSecret, SecretKind},
    token_keys::TokenKeys,
};

/// How long an auth token is good.
pub const AUTH_LIFETIME_MS: i64 = 15 * 60_000;

/// The claims of a token: those that every kind has, and its own. `sub` and `iat` are the seed's; the others are added.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Claims<T> {
    /// Of an auth token the account's name, of the others its ID.
    pub(super) sub: String,
    /// When it was given, Unix seconds.
    iat: i64,
    pub(super) exp: i64,
    iss: String,
    aud: String,
    #[serde(flatten)]
    pub(super) own: T,
}

#[derive(Debug, Serialize, Deserialize)]
struct AuthClaims {
    /// The family: the account's ID and its own.
    fam: String,
    /// The refresh token.
    refresh: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct RefreshClaims {
    fam: String,
    /// The opaque ID that is known to the store by its hash.
    jti: String,
}

/// An auth token that was given here and has not expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthToken {
    pub(crate) account: LocalAccountId,
    pub(crate) account_name: String,
    pub(crate) family: TokenFamilyId,
    pub(crate) expires_at_ms: i64,
}

/// A refresh token that was given here and has not expired.
#[derive(Debug)]
pub(crate) struct RefreshToken {
    pub(crate) account: LocalAccountId,
    pub(crate) family: TokenFamilyId,
    pub(crate) id: OpaqueSecret,
}

/// The token is forged, of another kind or server, or has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidToken;

/// Tokens for the device of a log-in.
#[derive(Debug)]
pub(crate) struct TokenPair {
    /// With the refresh token in it.
    pub(crate) auth: SecretString,
    /// When the auth token expires, Unix ms.
    pub(crate) auth_expires_at_ms: i64,
}

/// Gives and verifies native tokens. Clones have the same keys.
#[derive(Clone, Debug)]
pub struct NativeTokens {
    keys: Arc<RwLock<TokenKeys>>,
    issuer: String,
}

impl NativeTokens {
    /// With these keys, for the store of that random name: another server's tokens are refused even where
    /// it has the same keys.
    pub fn new(keys: TokenKeys, store_nonce: &str) -> Self {
        jwt_provider::install();
        Self {
            keys: Arc::new(RwLock::new(keys)),
            issuer: format!("urn:driftline:{store_nonce}"),
        }
    }

    /// Signs and verifies with these keys from now on.
    pub fn replace_keys(&self, keys: TokenKeys) {
        *self.keys.write() = keys;
    }

    /// Signs the tokens of a family.
    pub(crate) fn sign(
        &self,
        family: &TokenFamily,
        account_name: &str,
        refresh: &OpaqueSecret,
        now_ms: i64,
    ) -> Result<TokenPair, InvalidToken> {
        let fam = family_text(family.account, family.id);
        let nested = RefreshClaims {
            fam: fam.clone(),
            jti: refresh.expose().to_owned(),
        };
        let account = family.account.to_string();
        let refresh = self.encode(REFRESH, account, nested, family.ends_at_ms, now_ms)?;
        let auth_expires_at_ms = (now_ms + AUTH_LIFETIME_MS).min(family.ends_at_ms);
        let own = AuthClaims { fam, refresh };
        let auth = self.encode(
            AUTH,
            account_name.to_owned(),
            own,
            auth_expires_at_ms,
            now_ms,
        )?;
        Ok(TokenPair {
            auth: auth.into(),
            auth_expires_at_ms,
        })
    }

    /// Reads an auth token.
    pub(crate) fn auth(&self, text: &str, now_ms: i64) -> Result<AuthToken, InvalidToken> {
        let claims: Claims<AuthClaims> = self.decode(AUTH, text, now_ms)?;
        let expires_at_ms = claims.exp.checked_mul(1000).ok_or(InvalidToken)?;
        // A clock that was ahead gave what lasts for longer than a token may; it can be refreshed.
        let is_given_ahead = is_ahead(expires_at_ms, now_ms.saturating_add(AUTH_LIFETIME_MS));
        if expires_at_ms <= now_ms || is_given_ahead {
            return Err(InvalidToken);
        }
        let (account, family) = family_of(&claims.own.fam).ok_or(InvalidToken)?;
        Ok(AuthToken {
            account,
            family,
            account_name: claims.sub,
            expires_at_ms,
        })
    }

    /// Reads a refresh token, by itself or nested in an auth token, which may have expired.
    pub(crate) fn refresh(&self, text: &str, now_ms: i64) -> Result<RefreshToken, InvalidToken> {
        let nested = self.decode::<AuthClaims>(AUTH, text, now_ms);
        let text = nested
            .as_ref()
            .map_or(text, |auth| auth.own.refresh.as_str());
        let claims: Claims<RefreshClaims> = self.decode(REFRESH, text, now_ms)?;
        if claims.exp <= now_ms.div_euclid(1000) {
            return Err(InvalidToken);
        }
        let (account, family) = family_of(&claims.own.fam).ok_or(InvalidToken)?;
        let id = OpaqueSecret::parse(SecretKind::RefreshId, &claims.own.jti).ok_or(InvalidToken)?;
        if id.account != Some(account) || claims.sub != account.to_string() {
            return Err(InvalidToken);
        }
        Ok(RefreshToken {
            account,
            family,
            id,
        })
    }

    pub(super) fn encode(
        &self,
        kind: Kind,
        sub: String,
        own: impl Serialize,
        expires_at_ms: i64,
        now_ms: i64,
    ) -> Result<String, InvalidToken> {
        let claims = Claims {
            sub,
            iat: now_ms.div_euclid(1000),
            exp: expires_at_ms.div_euclid(1000),
            iss: self.issuer.clone(),
            aud: kind.audience.to_owned(),
            own,
        };
        let keys = self.keys.read();
        let key = keys.signing(now_ms).ok_or(InvalidToken)?;
        let mut header = Header::new(ALGORITHM);
        header.typ = Some(kind.typ.to_owned());
        header.kid = Some(key.id.clone());
        let signed = encode(&header, &claims, &EncodingKey::from_secret(&key.secret));
        signed.map_err(|error| {
            tracing::error!(%error, "a token could not be signed");
            InvalidToken
        })
    }

    /// Checks all but the expiry, which is the caller's.
    pub(super) fn decode<T: DeserializeOwned>(
        &self,
        kind: Kind,
        text: &str,
        now_ms: i64,
    ) -> Result<Claims<T>, InvalidToken> {
        if text.len() > MAX_BYTES {
            return Err(InvalidToken);
        }
        let header = decode_header(text).map_err(|_| InvalidToken)?;
        if header.alg != ALGORITHM || header.typ.as_deref() != Some(kind.typ) {
            return Err(InvalidToken);
        }
        let id = header.kid.ok_or(InvalidToken)?;
        let keys = self.keys.read();
        let key = keys.find(&id, now_ms).ok_or(InvalidToken)?;
        let mut validation = Validation::new(ALGORITHM);
        validation.validate_exp = false;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[kind.audience]);
        let decoded = decode(text, &DecodingKey::from_secret(&key.secret), &validation);
        decoded.map(|token| token.claims).map_err(|_| InvalidToken)
    }
}

/// A kind of token: one is never accepted as another.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) typ: &'static str,
    pub(super) audience: &'static str,
}

const AUTH: Kind = Kind {
    typ: "at+jwt",
    audience: "driftline/api",
};
const REFRESH: Kind = Kind {
    typ: "refresh+jwt",
    audience: "driftline/refresh",
};

fn family_text(account: LocalAccountId, family: TokenFamilyId) -> String {
    format!("{account}.{family}")
}

fn family_of(text: &str) -> Option<(LocalAccountId, TokenFamilyId)> {
    let (account, family) = text.split_once('.')?;
    let account: u64 = account.parse().ok()?;
    let family: u64 = family.parse().ok()?;
    Some((LocalAccountId::new(account), TokenFamilyId::new(family)))
}

const ALGORITHM: Algorithm = Algorithm::HS256;
/// Ours have about 900.
const MAX_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
    use secrecy::ExposeSecret as _;
    use serde_json::{Value, json};

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;
    const DAY_MS: i64 = 86_400_000;

    fn keys() -> TokenKeys {
        TokenKeys::new([1; 8], [2; 32], NOW_MS)
    }

    fn tokens() -> NativeTokens {
        NativeTokens::new(keys(), "store")
    }

    fn family() -> TokenFamily {
        TokenFamily {
            id: TokenFamilyId::new(77),
            account: LocalAccountId::new(1234),
            device: "phone".to_owned(),
            created_at_ms: NOW_MS,
            rotated_at_ms: NOW_MS,
            ends_at_ms: NOW_MS + 30 * DAY_MS,
        }
    }

    fn refresh_id() -> OpaqueSecret {
        OpaqueSecret::generate(SecretKind::RefreshId, Some(LocalAccountId::new(1234))).unwrap()
    }

    fn signed(tokens: &NativeTokens) -> String {
        let pair = tokens.sign(&family(), "ann", &refresh_id(), NOW_MS);
        pair.unwrap().auth.expose_secret().to_owned()
    }

    fn part(token: &str, number: usize) -> Value {
        let part = token.split('.').nth(number).unwrap();
        serde_json::from_slice(&BASE64.decode(part).unwrap()).unwrap()
    }

    fn nested(token: &str) -> String {
        part(token, 1)["refresh"].as_str().unwrap().to_owned()
    }

    /// The same token with another header or other claims, and the old signature.
    fn with(token: &str, number: usize, change: impl FnOnce(&mut Value)) -> String {
        let mut changed = part(token, number);
        change(&mut changed);
        let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
        parts[number] = BASE64.encode(changed.to_string());
        parts.join(".")
    }

    #[test]
    fn tokens_have_the_payloads_of_the_model_and_the_claims_that_are_added() {
        let token = signed(&tokens());
        assert_eq!(
            part(&token, 0),
            json!({ "typ": "at+jwt", "alg": "HS256", "kid": BASE64.encode([1; 8]) })
        );
        let claims = part(&token, 1);
        assert_eq!(claims["sub"], "ann");
        assert_eq!(claims["iat"], NOW_MS / 1000);
        assert_eq!(claims["exp"], NOW_MS / 1000 + 900);
        let inner = part(&nested(&token), 1);
        assert_eq!(inner["sub"], "1234");
        assert_eq!(inner["iat"], NOW_MS / 1000);
        assert_eq!(inner["exp"], NOW_MS / 1000 + 2_592_000);
        let names = |claims: &Value| {
            let mut names: Vec<String> = claims.as_object().unwrap().keys().cloned().collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(names(&claims), "aud exp fam iat iss refresh sub");
        assert_eq!(names(&inner), "aud exp fam iat iss jti sub");
        let read = tokens().auth(&token, NOW_MS).unwrap();
        assert_eq!(
            (read.account, &*read.account_name),
            (family().account, "ann")
        );
        assert_eq!(read.family, family().id);
        let documented = include_str!("../../../../docs/tokens.md");
        for claim in ["aud", "exp", "fam", "iat", "iss", "jti", "refresh", "sub"] {
            assert!(documented.contains(&format!("| `{claim}` |")), "{claim}");
        }
    }

    #[test]
    fn an_auth_token_expires_and_can_still_be_refreshed() {
        let (tokens, token) = (tokens(), signed(&tokens()));
        let later = NOW_MS + AUTH_LIFETIME_MS;
        assert!(tokens.auth(&token, later - 1).is_ok());
        assert_eq!(tokens.auth(&token, later), Err(InvalidToken));
        let refreshed = tokens.refresh(&token, later).unwrap();
        assert_eq!(
            (refreshed.account, refreshed.family),
            (family().account, family().id)
        );
        assert!(tokens.refresh(&nested(&token), later).is_ok());
        assert_eq!(tokens.auth(&token, NOW_MS - DAY_MS), Err(InvalidToken));
        assert!(tokens.refresh(&token, NOW_MS - DAY_MS).is_ok());
        let end = NOW_MS + 30 * DAY_MS;
        assert!(tokens.refresh(&token, end - 1000).is_ok());
        assert!(tokens.refresh(&token, end).is_err());
    }

    #[test]
    fn one_kind_is_not_accepted_as_the_other() {
        let (tokens, token) = (tokens(), signed(&tokens()));
        assert!(tokens.auth(&nested(&token), NOW_MS).is_err());
        let retyped = with(&nested(&token), 0, |header| header["typ"] = json!("at+jwt"));
        assert!(tokens.auth(&retyped, NOW_MS).is_err());
    }

    #[test]
    fn forged_tokens_are_refused() {
        let (tokens, token) = (tokens(), signed(&tokens()));
        let mut forged: Vec<String> = vec![
            String::new(),
            ".".to_owned(),
            "..".to_owned(),
            token[..token.len() - 1].to_owned(),
            format!("{token}A"),
            format!("{token}."),
            token.replacen('.', "..", 1),
            "a".repeat(10_000),
        ];
        for alg in [
            "none", "None", "NONE", "HS384", "HS512", "RS256", "EdDSA", "hs256",
        ] {
            let other = with(&token, 0, |header| header["alg"] = json!(alg));
            let unsigned = other.rsplit_once('.').unwrap().0.to_owned() + ".";
            forged.extend([other, unsigned]);
        }
        for (claim, value) in [
            ("sub", json!("ben")),
            ("exp", json!(i64::MAX)),
            ("fam", json!("1235.77")),
            ("iss", json!("urn:driftline:other")),
            ("aud", json!("driftline/refresh")),
        ] {
            forged.push(with(&token, 1, |claims| claims[claim] = value));
        }
        let unknown_key = with(&token, 0, |header| header["kid"] = json!("AAAA"));
        let key_missing = with(&token, 0, |header| {
            header.as_object_mut().unwrap().remove("kid");
        });
        forged.extend([unknown_key, key_missing]);
        let others = [
            NativeTokens::new(TokenKeys::new([1; 8], [3; 32], NOW_MS), "store"),
            NativeTokens::new(keys(), "another store"),
        ];
        forged.extend(others.iter().map(signed));
        for forged in forged {
            assert_eq!(tokens.auth(&forged, NOW_MS), Err(InvalidToken), "{forged}");
            assert!(tokens.refresh(&forged, NOW_MS).is_err(), "{forged}");
        }
        assert!(tokens.auth(&token, NOW_MS).is_ok());
    }

    /// Signed with the right key, so that each check stands by itself.
    #[test]
    fn each_claim_is_checked() {
        let (tokens, token) = (tokens(), signed(&tokens()));
        let sign = |change: &dyn Fn(&mut Value), typ: &str| {
            let mut claims = part(&token, 1);
            change(&mut claims);
            let mut header = Header::new(ALGORITHM);
            header.typ = Some(typ.to_owned());
            header.kid = Some(BASE64.encode([1; 8]));
            encode(&header, &claims, &EncodingKey::from_secret(&[2; 32])).unwrap()
        };
        assert!(tokens.auth(&sign(&|_| {}, "at+jwt"), NOW_MS).is_ok());
        assert!(tokens.auth(&sign(&|_| {}, "JWT"), NOW_MS).is_err());
        for claim in ["exp", "iss", "aud", "sub", "fam", "refresh"] {
            let missing = sign(
                &|claims| drop(claims.as_object_mut().unwrap().remove(claim)),
                "at+jwt",
            );
            assert!(tokens.auth(&missing, NOW_MS).is_err(), "{claim}");
        }
        for (claim, value) in [
            ("exp", json!(NOW_MS / 1000)),
            ("exp", json!(i64::MAX)),
            ("exp", json!("never")),
            ("iss", json!("urn:driftline:other")),
            ("aud", json!("driftline/refresh")),
            ("fam", json!("1234")),
            ("fam", json!("-1.77")),
        ] {
            let other = sign(&|claims| claims[claim] = value.clone(), "at+jwt");
            assert!(tokens.auth(&other, NOW_MS).is_err(), "{claim} {value}");
        }
    }
}
