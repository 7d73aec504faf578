//! What a status says of the account with whose token it was read.
//!
//! It is no part of the post: nobody else may see it.

use crate::raw_object::RawObject;

/// A status without what concerns its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The status, JSON. All its other members are as they were written.
    pub status: String,
    /// What was taken off it, as an object of the same shape, JSON.
    pub viewer: String,
}

/// Takes what concerns its reader off a status, also inside the boosted and the quoted post. `None`
/// if there is nothing to take, or if the JSON is not an object.
pub fn split(json: &str) -> Option<Split> {
    split_object(&RawObject::parse(json).ok()?, Part::Status, MAX_DEPTH)
}

/// A status without what concerns its reader.
pub fn without(json: String) -> String {
    split(&json).map_or(json, |split| split.status)
}

/// [`split`] of a status that is parsed already.
pub(crate) fn split_status(status: &RawObject<'_>) -> Option<Split> {
    split_object(status, Part::Status, MAX_DEPTH)
}

/// The objects that hold such members.
#[derive(Clone, Copy)]
enum Part {
    Status,
    Poll,
    QuoteApproval,
}

impl Part {
    fn is_of_viewer(self, name: &str) -> bool {
        let names: &[&str] = match self {
            Self::Status => &[
                "favourited",
                "reblogged",
                "muted",
                "bookmarked",
                "pinned",
                "filtered",
            ],
            Self::Poll => &["voted", "own_votes"],
            Self::QuoteApproval => &["current_user"],
        };
        names.contains(&name)
    }

    fn inner(self, name: &str) -> Option<Self> {
        match (self, name) {
            // Mastodon's quote holds a `quoted_status`; some servers' is one.
            (Self::Status, "reblog" | "quote" | "quoted_status") => Some(Self::Status),
            (Self::Status, "poll") => Some(Self::Poll),
            (Self::Status, "quote_approval") => Some(Self::QuoteApproval),
            _ => None,
        }
    }
}

fn split_object(object: &RawObject<'_>, part: Part, depth: usize) -> Option<Split> {
    let mut status = String::new();
    let mut viewer = String::new();
    for (name, key, value) in object.written() {
        let value = value.get();
        if part.is_of_viewer(name) {
            add(&mut viewer, key, value);
            continue;
        }
        let inner = part.inner(name).filter(|_| depth > 0);
        let inner = inner.and_then(|inner| {
            let object = RawObject::parse(value).ok()?;
            split_object(&object, inner, depth - 1)
        });
        match inner {
            Some(split) => {
                add(&mut status, key, &split.status);
                add(&mut viewer, key, &split.viewer);
            }
            None => add(&mut status, key, value),
        }
    }
    (!viewer.is_empty()).then(|| Split {
        status: closed(status),
        viewer: closed(viewer),
    })
}

fn add(object: &mut String, key: &str, value: &str) {
    object.push(if object.is_empty() { '{' } else { ',' });
    object.push_str(key);
    object.push(':');
    object.push_str(value);
}

fn closed(mut object: String) -> String {
    if object.is_empty() {
        object.push('{');
    }
    object.push('}');
    object
}

/// A poll of the quoted post of a boost is four objects deep. A hostile answer could nest without
/// end.
const MAX_DEPTH: usize = 5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_concerns_the_reader_is_taken() {
        let json = r#"{ "id":"1", "favourited" : true,"reblogged":false,"n":1e400,"muted":null,
            "bookmarked":true,"pinned":true,"filtered":[{"a":1}],"n":18446744073709551616,
            "poll":{"id":"2","voted":true,"own_votes":[0], "options":[ {"voted":1} ]},
            "quote_approval":{"automatic":[],"current_user":"denied"},
            "account":{"favourited":"kept"},"a\u0062":"\u0000" }"#;
        let split = split(json).expect("something to take");
        assert_eq!(
            split.status,
            r#"{"id":"1","n":1e400,"n":18446744073709551616,"poll":{"id":"2","options":[ {"voted":1} ]},"quote_approval":{"automatic":[]},"account":{"favourited":"kept"},"a\u0062":"\u0000"}"#
        );
        assert_eq!(
            split.viewer,
            r#"{"favourited":true,"reblogged":false,"muted":null,"bookmarked":true,"pinned":true,"filtered":[{"a":1}],"poll":{"voted":true,"own_votes":[0]},"quote_approval":{"current_user":"denied"}}"#
        );
    }

    #[test]
    fn boosted_and_quoted_posts_lose_it_too() {
        let inner = r#"{"favourited":true,"poll":{"voted":false}}"#;
        for json in [
            format!(r#"{{"reblog":{inner}}}"#),
            format!(r#"{{"quote":{inner}}}"#),
            format!(r#"{{"quoted_status":{inner}}}"#),
            format!(r#"{{"quote":{{"quoted_status":{inner}}}}}"#),
            format!(r#"{{"reblog":{{"quote":{{"quoted_status":{inner}}}}}}}"#),
        ] {
            let split = split(&json).expect("something to take");
            assert_eq!(split.status, json.replace(inner, r#"{"poll":{}}"#));
            assert_eq!(split.viewer, json);
        }
    }

    #[test]
    fn repeated_and_escaped_names_are_taken() {
        let without =
            without(r#"{"favourited":1,"\u0066avourited":2,"a":3,"favourited":4}"#.into());
        assert_eq!(without, r#"{"a":3}"#);
    }

    #[test]
    fn all_else_stays_as_it_is() {
        for json in [
            r#"{ "id" : "1", "poll": {"id":"2"}, "reblog":null, "quote":[{"favourited":true}] }"#,
            r#"[{"favourited":true}]"#,
            "{\"favourited\":tru",
            "",
        ] {
            assert_eq!(without(json.into()), json);
        }
    }

    #[test]
    fn nesting_without_end_breaks_nothing() {
        let depth = 100_000;
        let json = format!(
            "{}null{}",
            r#"{"favourited":true,"reblog":"#.repeat(depth),
            "}".repeat(depth)
        );
        assert!(split(&json).is_some());
    }

    proptest! {
        #[test]
        fn any_text_is_taken(json: String) {
            without(json);
        }
    }
}
