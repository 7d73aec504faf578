use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{header::ACCEPT_LANGUAGE, request::Parts},
};
use url::form_urlencoded;

use super::texts::{ENGLISH, JAPANESE, PORTUGUESE, Texts};
use crate::App;

/// A language of our pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Japanese,
    Portuguese,
}

impl Language {
    pub(super) const ALL: [Self; 3] = [Self::English, Self::Japanese, Self::Portuguese];

    /// Its tag (BCP 47).
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Japanese => "ja",
            Self::Portuguese => "pt",
        }
    }

    /// Its own name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Japanese => "日本語",
            Self::Portuguese => "Português",
        }
    }

    /// What the pages say in it.
    pub(crate) const fn texts(self) -> &'static Texts {
        match self {
            Self::English => &ENGLISH,
            Self::Japanese => &JAPANESE,
            Self::Portuguese => &PORTUGUESE,
        }
    }

    /// The language of a tag, whatever its region.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        let of = |language: &Self| primary.eq_ignore_ascii_case(language.tag());
        Self::ALL.into_iter().find(of)
    }

    /// The best of an `Accept-Language` (RFC 9110, 12.5.4).
    fn accepted(header: &str) -> Option<Self> {
        let mut best: Option<(f32, Self)> = None;
        for range in header.split(',').take(MAX_RANGES) {
            let (tag, weight) = range.split_once(';').unwrap_or((range, "q=1"));
            let weight = weight
                .trim()
                .strip_prefix("q=")
                .and_then(|q| q.parse().ok());
            let weight = weight.unwrap_or(0.0);
            let Some(language) = Self::of_tag(tag.trim()) else {
                continue;
            };
            if weight > best.map_or(0.0, |(weight, _)| weight) {
                best = Some((weight, language));
            }
        }
        best.map(|(_, language)| language)
    }
}

/// By `?lang=`, else what the browser prefers, else English.
impl FromRequestParts<Arc<App>> for Language {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let mut params = form_urlencoded::parse(query.as_bytes());
        let named = params.find(|(name, _)| name == "lang");
        let named = named.and_then(|(_, tag)| Self::of_tag(&tag));
        let accepted = || {
            let header = parts.headers.get(ACCEPT_LANGUAGE)?.to_str().ok()?;
            Self::accepted(header)
        };
        Ok(named.or_else(accepted).unwrap_or(Self::English))
    }
}

const MAX_RANGES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_language_that_there_is_is_taken() {
        for (header, expected) in [
            ("ja", Some(Language::Japanese)),
            ("ja-JP, en;q=0.5", Some(Language::Japanese)),
            ("de, pt-BR;q=0.8, en;q=0.7", Some(Language::Portuguese)),
            ("en;q=0.1, pt;q=0.2", Some(Language::Portuguese)),
            ("en;q=0", None),
            ("de", None),
            ("", None),
            ("*;q=x, ,;", None),
        ] {
            assert_eq!(Language::accepted(header), expected, "{header}");
        }
    }
}
