use crate::raw_object::{RawObject, text};

/// The members of a `Status` that may change without an edit, as JSON: a replica that has the post needs no others. For a
/// boost, `reblog` has those of the boosted post. `None` if the text is not an object, or lacks the post that `is_boost` says
/// it boosts: a device would keep its copy of that.
pub fn entry_update(status: &str, is_boost: bool) -> Option<String> {
    let status = RawObject::parse(status).ok()?;
    let boosted = match is_boost {
        true => {
            let boosted = RawObject::from_value(status.get(REBLOG)?)?;
            Some(object(members(&boosted, |name| !is_kept(name))))
        }
        false => None,
    };
    let boosted = boosted.as_deref().map(|boosted| (REBLOG, boosted));
    let changing = members(&status, |name| !is_kept(name));
    Some(object(changing.chain(boosted)))
}

/// True if a value of a source's library has the post's update alone, not the whole post.
pub fn is_partial_entry(value: &str) -> bool {
    let value = RawObject::parse(value);
    value.is_ok_and(|value| {
        value.members().any(|(name, _)| name == UPDATE) && value.get(STATUS).is_none()
    })
}

/// The whole value of an entry with the update and the author's profile of a partial one; `None` if they are of different
/// places or otherwise do not fit. Values pass unchanged, whatever they are.
pub fn merge_partial_entry(whole: &str, partial: &str) -> Option<String> {
    let whole = RawObject::parse(whole).ok()?;
    let partial = RawObject::parse(partial).ok()?;
    if text(whole.get("place")?)? != text(partial.get("place")?)? {
        return None;
    }
    let status = RawObject::from_value(whole.get(STATUS)?)?;
    let update = RawObject::from_value(partial.get(UPDATE)?)?;
    let mut reblogs = update.members().filter(|(name, _)| *name == REBLOG);
    let boosted = match reblogs.next() {
        // Mastodon has no boosts of boosts.
        Some((_, update)) => {
            let boosted = RawObject::from_value(status.get(REBLOG)?)?;
            Some(updated(&boosted, &RawObject::from_value(update)?, &[]))
        }
        None => None,
    };
    let account = partial.get(ACCOUNT);
    let account = account.map(|account| (ACCOUNT, account.get()));
    let boosted = boosted.as_deref().map(|boosted| (REBLOG, boosted));
    let others: Vec<(&str, &str)> = account.into_iter().chain(boosted).collect();
    let status = updated(&status, &update, &others);
    let members = whole.written().map(|(name, written, value)| match name {
        STATUS => (inner(written), status.as_str()),
        _ => (inner(written), value.get()),
    });
    Some(object(members))
}

/// An object with the members of an update, of which its own `reblog` is left out, and with some others. Members that may
/// change and are not among them are gone.
fn updated(known: &RawObject<'_>, update: &RawObject<'_>, others: &[(&str, &str)]) -> String {
    let is_new = |name: &str| {
        let mut new = update.members().filter(|(of, _)| *of != REBLOG);
        new.any(|(of, _)| of == name) || others.iter().any(|(of, _)| *of == name)
    };
    let kept = members(known, |name| is_kept(name) && !is_new(name));
    let new = members(update, |name| name != REBLOG);
    object(kept.chain(new).chain(others.iter().copied()))
}

/// True if a member of a `Status` is as it was in the whole object, unless an update has it.
fn is_kept(name: &str) -> bool {
    KEPT.contains(&name)
}

/// The members with these names, as they are written, but the names without quotes.
fn members<'o>(
    object: &'o RawObject<'_>,
    is_selected: impl Fn(&str) -> bool + 'o,
) -> impl Iterator<Item = (&'o str, &'o str)> {
    let members = object.written();
    let selected = members.filter(move |(name, ..)| is_selected(name));
    selected.map(|(_, written, value)| (inner(written), value.get()))
}

fn inner(written: &str) -> &str {
    &written[1..written.len() - 1]
}

/// A JSON object with these members.
fn object<'m>(members: impl IntoIterator<Item = (&'m str, &'m str)>) -> String {
    let mut json = String::from("{");
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        for part in ["\"", name, "\":", value] {
            json.push_str(part);
        }
    }
    json.push('}');
    json
}

const STATUS: &str = "status";
const UPDATE: &str = "update";
const ACCOUNT: &str = "account";
const REBLOG: &str = "reblog";

/// The members that a partial object leaves out: they change with an edit alone (`post_hashes`), never, or
/// by rules of their own, as the last two do. A later version may take names out, and adds none: devices drop the others.
const KEPT: [&str; 13] = [
    "id",
    "uri",
    "url",
    "created_at",
    "edited_at",
    "visibility",
    "content",
    "spoiler_text",
    "sensitive",
    "language",
    "tags",
    ACCOUNT,
    REBLOG,
];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn merged(whole: &Value, partial: &Value) -> Option<Value> {
        let merged = merge_partial_entry(&whole.to_string(), &partial.to_string())?;
        Some(serde_json::from_str(&merged).expect("JSON"))
    }

    #[test]
    fn an_update_has_the_members_that_change_without_an_edit() {
        let boosted = json!({"id": "1", "content": "text", "quote": {"state": "revoked"}, "tags": [], "reblog": null});
        let status = json!({
            "id": "2", "content": "", "favourites_count": 0, "poll": null, "new": [1], "reblog": boosted, "account": {},
        });
        let update = |status: &Value, is_boost| {
            let update = entry_update(&status.to_string(), is_boost)?;
            Some(serde_json::from_str::<Value>(&update).expect("JSON"))
        };
        let expected = json!({
            "favourites_count": 0, "poll": null, "new": [1], "reblog": {"quote": {"state": "revoked"}},
        });
        assert_eq!(update(&status, true), Some(expected));
        let plain = json!({"id": "2", "card": null, "reblog": null});
        assert_eq!(update(&plain, false), Some(json!({"card": null})));
        // A boost without its post.
        for status in [plain, json!({"id": "2"})] {
            assert_eq!(update(&status, true), None);
        }
        assert_eq!(update(&json!([]), false), None);
    }

    #[test]
    fn an_update_and_the_profile_take_their_places_in_the_status() {
        let whole = json!({"place": "7", "status": {
            "id": "7", "content": "text", "favourites_count": 1, "poll": null, "account": {"acct": "ann", "note": "n"},
            "reblog": {"content": "boosted", "favourites_count": 2, "account": {"acct": "bob"}, "quote": {"state": "accepted"}},
            "quote": {"state": "accepted"},
        }});
        let partial = json!({"place": "7", "account": {"acct": "eve"}, "update": {
            "favourites_count": 3, "poll": {"votes_count": 4}, "reblog": {"favourites_count": 5, "reblog": {}},
        }});
        assert!(is_partial_entry(&partial.to_string()) && !is_partial_entry(&whole.to_string()));
        // Members that the update lacks are gone.
        let expected = json!({"place": "7", "status": {
            "id": "7", "content": "text", "favourites_count": 3, "poll": {"votes_count": 4}, "account": {"acct": "eve"},
            "reblog": {"content": "boosted", "favourites_count": 5, "account": {"acct": "bob"}},
        }});
        assert_eq!(merged(&whole, &partial), Some(expected));
    }

    #[test]
    fn values_pass_as_they_are_written() {
        let whole =
            r#"{"place":"7","status":{"id":"7","content":"\ud800","a":1,"b\u0062":2,"url":1e400}}"#;
        let now = r#"{"id":"7","content":"\ud800","b\u0062":18446744073709551617,"a":"\udfff","url":1e400}"#;
        let update = entry_update(now, false).expect("an update");
        let partial = format!(r#"{{"place":"\u0037","update":{update}}}"#);
        assert!(is_partial_entry(&partial));
        assert_eq!(
            merge_partial_entry(whole, &partial).as_deref(),
            Some(
                r#"{"place":"7","status":{"id":"7","content":"\ud800","url":1e400,"b\u0062":18446744073709551617,"a":"\udfff"}}"#
            )
        );
    }

    #[test]
    fn nesting_without_end_breaks_nothing() {
        let depth = 100_000;
        let update = [
            r#"{"reblog":"#.repeat(depth),
            "{}".to_owned(),
            "}".repeat(depth),
        ]
        .concat();
        let partial = format!(r#"{{"place":"7","update":{update}}}"#);
        let whole = r#"{"place":"7","status":{"reblog":{"a":1}}}"#;
        let expected = r#"{"place":"7","status":{"reblog":{}}}"#;
        assert_eq!(
            merge_partial_entry(whole, &partial).as_deref(),
            Some(expected)
        );
    }

    #[test]
    fn values_that_do_not_fit_are_not_merged() {
        let partial = |update: Value| json!({"place": "7", "update": update});
        let whole = json!({"place": "7", "status": {"reblog": null}});
        let boost = partial(json!({"reblog": {"favourites_count": 5}}));
        for (whole, partial) in [
            (whole.clone(), boost),
            (whole.clone(), partial(json!({"reblog": null}))),
            (whole.clone(), partial(json!(3))),
            (whole.clone(), json!({"update": {}})),
            (whole, json!({"place": "8", "update": {}})),
            (json!({"place": "7"}), partial(json!({}))),
            (json!(3), partial(json!({}))),
        ] {
            assert_eq!(merged(&whole, &partial), None, "{partial}");
        }
    }
}
