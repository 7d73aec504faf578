//! What is stored and exported of a post is what came: numbers digit by digit, escapes, unknown fields
//! and the order of keys; but for the reader's own fields, repeated keys and white space.

use driftline_mastodon::{RawObject, read_status};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::world::{World, on_both};

/// JSON as it is written, without white space.
#[derive(Clone, Debug)]
enum Json {
    Token(&'static str),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

const TOKENS: &[&str] = &[
    "0.9726443768996961",
    "18446744073709551616",
    "1E5",
    "1e400",
    "-1E-400",
    "-0",
    "-0.0",
    "1.10",
    "0.1000000000000000055511151231257827",
    "340282366920938463463374607431768211456",
    "true",
    "null",
    "{}",
    "[]",
    r#""""#,
    r#""<p>""#,
    r#""\u003cp\u003E""#,
    r#""\/\b\f\n\r\t\"\\""#,
    r#""\u0000""#,
    r#""\ud800""#,
    r#""\ud83d\uDE00 😀""#,
    r#""{\"a\":1,]  }""#,
    "\"\u{2028}\u{7f}\"",
];

/// `a`, `b` and the empty key each have several spellings; none of these is a name that is read.
const KEYS: &[&str] = &[
    r#""a""#,
    r#""\u0061""#,
    r#""b""#,
    r#""\u0062""#,
    r#""""#,
    r#""favourited\u0000""#,
    r#""\ud800""#,
    r#""{\"""#,
    r#""a,b:""#,
    r#""é""#,
];

fn json() -> impl Strategy<Value = Json> {
    let token = prop::sample::select(TOKENS).prop_map(Json::Token);
    token.prop_recursive(6, 40, 6, |inner| {
        let key = prop::sample::select(KEYS);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::List),
            prop::collection::vec((key, inner), 0..6).prop_map(Json::Object),
        ]
    })
}

/// The key that a spelling stands for, as another reader of JSON decodes it.
fn name(key: &str) -> String {
    serde_json::from_str(key).unwrap_or_else(|_| key.to_owned())
}

impl Json {
    /// As a server writes it, with `space` between tokens.
    fn write(&self, space: &str, out: &mut String) {
        let separate = |at: usize, out: &mut String| {
            if at > 0 {
                out.push(',');
            }
            out.push_str(space);
        };
        match self {
            Json::Token(token) => out.push_str(token),
            Json::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    separate(at, out);
                    item.write(space, out);
                }
                out.extend([space, "]"]);
            }
            Json::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    separate(at, out);
                    out.extend([key, space, ":", space]);
                    value.write(space, out);
                }
                out.extend([space, "}"]);
            }
        }
    }

    /// What is to be kept: of repeated keys the last.
    fn kept(&self) -> Json {
        match self {
            Json::Token(token) => Json::Token(token),
            Json::List(items) => Json::List(items.iter().map(Json::kept).collect()),
            Json::Object(members) => {
                let mut kept = Vec::new();
                for (at, (key, value)) in members.iter().enumerate() {
                    let is_repeated = |(later, _): &(&str, Json)| name(later) == name(key);
                    if !members[at + 1..].iter().any(is_repeated) {
                        kept.push((*key, value.kept()));
                    }
                }
                Json::Object(kept)
            }
        }
    }
}

/// JSON without the white space between its tokens.
fn compact(json: &str) -> String {
    let mut out = String::new();
    let mut in_string = false;
    let mut chars = json.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => in_string = !in_string,
            '\\' => {
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            ' ' | '\n' | '\r' | '\t' if !in_string => continue,
            _ => {}
        }
        out.push(c);
    }
    out
}

/// A status that came, and what is to be exported of it.
fn status(id: usize, extra: &Json, space: &str, is_viewed: bool) -> (String, String) {
    let text = |json: &Json, space| {
        let mut text = String::new();
        json.write(space, &mut text);
        text
    };
    let (came, kept) = (text(extra, space), text(&extra.kept(), ""));
    let viewer = match is_viewed {
        true => r#""favourited":true,"muted" : null,"#,
        false => "",
    };
    (
        format!(
            r#"{{{space}{viewer}"id":"{id}","content":"<p>","x-1":{came},"visibility":"public",{space}"x-2":{{"favourited":1e400}}}}"#
        ),
        format!(
            r#"{{"id":"{id}","content":"<p>","x-1":{kept},"visibility":"public","x-2":{{"favourited":1e400}}}}"#
        ),
    )
}

#[test]
fn what_is_exported_is_what_came() {
    let mut runner = TestRunner::deterministic();
    let drawn: Vec<(String, String)> = (1..=240)
        .map(|id| {
            let extra = json().new_tree(&mut runner).expect("a value").current();
            let space = ["", " ", "\n\t", " \r\n "][id % 4];
            status(id, &extra, space, id % 3 == 0)
        })
        .collect();
    on_both(|store| {
        let mut world = World::readable(store, "home");
        for page in drawn.chunks(40) {
            let posts = page.iter().rev().map(|(came, _)| {
                let read = |json| read_status(serde_json::from_str(json).expect(came)).expect(came);
                let post = read(came);
                assert_eq!(read(&post.raw).hashes, post.hashes, "{came}");
                post
            });
            world.poll(posts.collect());
        }
        let rows = world.export();
        assert_eq!(rows.len(), drawn.len());
        for (row, (came, kept)) in rows.iter().zip(&drawn) {
            let raw = row.post.raw.as_deref().expect("a post");
            assert_eq!(&compact(raw), kept, "{came}");
            assert!(RawObject::parse(raw).is_ok());
        }
    });
}
