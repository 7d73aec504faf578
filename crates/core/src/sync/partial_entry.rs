use serde_json::{Map, Value};

/// True if a value of a source's library has the post's counts alone, not the whole post.
pub fn is_partial_entry(value: &Value) -> bool {
    value.get("counts").is_some() && value.get("status").is_none()
}

/// The whole value with the counts and the author's profile of a partial one; `None` if they are of different places or
/// otherwise do not fit.
pub fn merge_partial_entry(mut whole: Value, partial: &Value) -> Option<Value> {
    let counts = partial.get("counts")?.as_object()?;
    if whole.get("place")? != partial.get("place")? {
        return None;
    }
    let status = whole.get_mut("status")?.as_object_mut()?;
    set_counts(status, counts)?;
    if let Some(account) = partial.get("account") {
        status.insert("account".to_owned(), account.clone());
    }
    Some(whole)
}

fn set_counts(status: &mut Map<String, Value>, counts: &Map<String, Value>) -> Option<()> {
    for (name, count) in counts {
        match (name.as_str(), count) {
            // Mastodon has no boosts of boosts.
            ("reblog", Value::Object(counts)) => {
                let boosted = status.get_mut("reblog")?.as_object_mut()?;
                let counts = counts.iter().filter(|(name, _)| *name != "reblog");
                boosted.extend(counts.map(|(name, count)| (name.clone(), count.clone())));
            }
            ("reblog", _) => return None,
            _ => {
                status.insert(name.clone(), count.clone());
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_and_the_profile_take_their_places_in_the_status() {
        let whole = json!({"place": "7", "status": {
            "id": "7", "content": "text", "favourites_count": 1, "poll": null, "account": {"acct": "ann", "note": "n"},
            "reblog": {"content": "boosted", "favourites_count": 2},
        }});
        let partial = json!({"place": "7", "account": {"acct": "eve"}, "counts": {
            "favourites_count": 3, "poll": {"votes_count": 4}, "reblog": {"favourites_count": 5},
        }});
        assert!(is_partial_entry(&partial) && !is_partial_entry(&whole));
        let expected = json!({"place": "7", "status": {
            "id": "7", "content": "text", "favourites_count": 3, "poll": {"votes_count": 4}, "account": {"acct": "eve"},
            "reblog": {"content": "boosted", "favourites_count": 5},
        }});
        assert_eq!(merge_partial_entry(whole, &partial), Some(expected));
    }

    #[test]
    fn values_that_do_not_fit_are_not_merged() {
        let partial = |counts: Value| json!({"place": "7", "counts": counts});
        let whole = json!({"place": "7", "status": {"reblog": null}});
        let boost = partial(json!({"reblog": {"favourites_count": 5}}));
        for (whole, partial) in [
            (whole.clone(), boost),
            (whole.clone(), partial(json!({"reblog": null}))),
            (whole.clone(), partial(json!(3))),
            (whole.clone(), json!({"counts": {}})),
            (whole, json!({"place": "8", "counts": {}})),
            (json!({"place": "7"}), partial(json!({}))),
            (json!(3), partial(json!({}))),
        ] {
            assert_eq!(merge_partial_entry(whole, &partial), None, "{partial}");
        }
    }
}
