//! Filters as requests write them. Keywords are in JSON a list of objects, in forms
//! `keywords_attributes[0][keyword]` or `keywords_attributes[][keyword]`.

use std::str::FromStr as _;

use driftline_core::social::{FilterAction, FilterContext, FilterKeyword, FilterSettings};
use driftline_store::social::filter::{Keyword, KeywordChange};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    mastodon::values::{boolean, is_true, rows, text, texts},
    transport::{ApiError, ApiResult},
};

/// What a filter is created or changed with.
#[derive(Deserialize)]
pub(crate) struct FilterParams {
    pub(crate) title: Option<String>,
    pub(crate) context: Option<Value>,
    pub(crate) filter_action: Option<String>,
    /// `expires_in`, of which null says something, and keywords.
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

impl FilterParams {
    /// What they make of what was known.
    pub(crate) fn over(&self, known: FilterSettings, now_ms: i64) -> ApiResult<FilterSettings> {
        let contexts = match &self.context {
            None => known.contexts,
            given => {
                let names = texts(given.as_ref());
                let names = names.iter().filter(|name| !name.trim().is_empty());
                let contexts = names.map(|name| FilterContext::from_str(name.trim()));
                let contexts: Result<Vec<_>, _> = contexts.collect();
                contexts
                    .map_err(|_| ApiError::invalid("Context None or invalid context supplied"))?
            }
        };
        let action = self.filter_action.as_deref().map(FilterAction::from_str);
        let action = action.transpose();
        let action =
            action.map_err(|_| ApiError::invalid("Filter action is not included in the list"))?;
        Ok(FilterSettings {
            title: self.title.clone().unwrap_or(known.title),
            contexts,
            action: action.unwrap_or(known.action),
            expires_at_ms: match self.expires_in_s()? {
                None => known.expires_at_ms,
                Some(None) => None,
                Some(Some(seconds)) => Some(now_ms.saturating_add(seconds.saturating_mul(1_000))),
            },
        })
    }

    /// `None` if it says nothing, and `Some(None)` for never.
    fn expires_in_s(&self) -> ApiResult<Option<Option<i64>>> {
        let Some(value) = self.rest.get("expires_in") else {
            return Ok(None);
        };
        let text = text(value).unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(Some(None));
        }
        let seconds = text.trim().parse().ok();
        let seconds = seconds.filter(|seconds| (1..=MAX_EXPIRES_IN_S).contains(seconds));
        let invalid = "expires_in has to be a number of seconds";
        let seconds = seconds.ok_or_else(|| ApiError::Unprocessable(invalid.to_owned()))?;
        Ok(Some(Some(seconds)))
    }
}

/// Those of a filter of which nothing is said.
pub(crate) fn new_settings() -> FilterSettings {
    FilterSettings {
        title: String::new(),
        contexts: Vec::new(),
        action: FilterAction::Warn,
        expires_at_ms: None,
    }
}

/// The changes that a request asks for; `known` are the filter's keywords.
pub(crate) fn keyword_changes(
    params: &Map<String, Value>,
    known: &[Keyword],
) -> ApiResult<Vec<KeywordChange>> {
    let mut changes = Vec::new();
    for attributes in rows(params, NAME) {
        let keyword = attributes.get("keyword").and_then(text);
        let whole_word = attributes.get("whole_word");
        let Some(id) = attributes
            .get("id")
            .and_then(text)
            .filter(|id| !id.is_empty())
        else {
            // One that is blank is passed over, as Mastodon does.
            if keyword
                .as_ref()
                .is_some_and(|keyword| !keyword.trim().is_empty())
            {
                changes.push(KeywordChange::Add(keyword_rule(keyword, whole_word, None)));
            }
            continue;
        };
        let found = known.iter().find(|known| known.id.to_string() == id);
        let known = found.ok_or(ApiError::NotFound)?;
        changes.push(match is_true(attributes.get("_destroy")) {
            true => KeywordChange::Remove(known.id),
            false => KeywordChange::Set(Keyword {
                id: known.id,
                rule: keyword_rule(keyword, whole_word, Some(known.rule.clone())),
            }),
        });
    }
    Ok(changes)
}

/// A keyword over what it was; a new one has to be a whole word unless it says otherwise.
pub(crate) fn keyword_rule(
    keyword: Option<String>,
    whole_word: Option<&Value>,
    known: Option<FilterKeyword>,
) -> FilterKeyword {
    let known = known.unwrap_or(FilterKeyword {
        keyword: String::new(),
        whole_word: true,
    });
    FilterKeyword {
        keyword: keyword.unwrap_or(known.keyword),
        whole_word: boolean(whole_word).unwrap_or(known.whole_word),
    }
}

const NAME: &str = "keywords_attributes";
/// A century.
const MAX_EXPIRES_IN_S: i64 = 3_200_000_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keywords(params: &Value) -> Vec<(String, bool)> {
        let params = params.as_object().cloned().unwrap_or_default();
        let changes = keyword_changes(&params, &[]).expect("keywords");
        let rules = changes.into_iter().filter_map(|change| match change {
            KeywordChange::Add(rule) => Some((rule.keyword, rule.whole_word)),
            _ => None,
        });
        rules.collect()
    }

    #[test]
    fn json_and_both_forms_say_the_same() {
        let expected = [("cat".to_owned(), false), ("dog".to_owned(), true)];
        for params in [
            json!({ NAME: [{ "keyword": "cat", "whole_word": false }, { "keyword": "dog" }] }),
            json!({ NAME: { "0": { "keyword": "cat", "whole_word": "false" }, "1": { "keyword": "dog" } } }),
            json!({
                "keywords_attributes[0][keyword]": "cat",
                "keywords_attributes[0][whole_word]": "0",
                "keywords_attributes[1][keyword]": "dog",
            }),
            json!({
                "keywords_attributes[][keyword]": ["cat", "dog"],
                "keywords_attributes[][whole_word]": ["false", "true"],
            }),
        ] {
            assert_eq!(keywords(&params), expected, "{params}");
        }
        assert_eq!(keywords(&json!({ NAME: [{ "keyword": " " }] })), []);
    }
}
