//! The keywords of a filter, as requests write them: in JSON a list of objects, in forms
//! `keywords_attributes[0][keyword]` or `keywords_attributes[][keyword]`.

use std::collections::BTreeMap;

use driftline_core::social::FilterKeyword;
use driftline_store::social::filter::{Keyword, KeywordChange};
use serde_json::{Map, Value};

use crate::{
    mastodon::{accounts::profiles::is_true, timelines::markers::text},
    transport::ApiError,
};

/// The changes that a request asks for; `known` are the filter's keywords.
pub(crate) fn keyword_changes(
    params: &Map<String, Value>,
    known: &[Keyword],
) -> Result<Vec<KeywordChange>, ApiError> {
    let mut changes = Vec::new();
    for attributes in all_attributes(params) {
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
        whole_word: match whole_word {
            Some(value) => is_true(Some(value)),
            None => known.whole_word,
        },
    }
}

fn all_attributes(params: &Map<String, Value>) -> Vec<Map<String, Value>> {
    match params.get(NAME) {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_object).cloned().collect(),
        // Rails reads an object by its keys, too.
        Some(Value::Object(all)) => {
            let all = all.values().filter_map(Value::as_object);
            all.cloned().collect()
        }
        _ => of_form(params),
    }
}

fn of_form(params: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let mut all: BTreeMap<usize, Map<String, Value>> = BTreeMap::new();
    for (name, value) in params {
        let parts = name.strip_prefix(NAME).and_then(|rest| {
            let rest = rest.strip_prefix('[')?.strip_suffix(']')?;
            rest.split_once("][")
        });
        let Some((index, field)) = parts else {
            continue;
        };
        // Without numbers the values of a field are in the order of their objects.
        let values = match value {
            Value::Array(values) => values.clone(),
            one => vec![one.clone()],
        };
        let first: usize = index.parse().unwrap_or(0);
        for (at, value) in values.into_iter().enumerate() {
            let attributes = all.entry(first.saturating_add(at)).or_default();
            attributes.insert(field.to_owned(), value);
        }
    }
    all.into_values().collect()
}

const NAME: &str = "keywords_attributes";

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
