//! No ID of an upstream's post or account is shown, wherever a status has it.

use std::collections::BTreeSet;

use driftline_core::{api::Api, post::Visibility};
use driftline_mastodon::{
    Copier, RawObject, Referent, StatusHead, Template, read_status, references,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json, value::to_raw_value};

/// What every upstream ID of a post or an account holds, and nothing else.
const MARK: &str = "upstream";

fn post_id() -> impl Strategy<Value = Value> {
    (0..40_u8).prop_map(|n| json!(format!("p-{MARK}-{n}")))
}

fn account_id() -> impl Strategy<Value = Value> {
    (0..40_u8).prop_map(|n| json!(format!("a-{MARK}-{n}")))
}

/// A value that names nobody.
fn plain() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({ "id": "77", "options": [{ "title": "a" }] })),
    ]
}

/// A member that names somebody, or may.
fn member() -> impl Strategy<Value = (String, Value)> {
    let posts = "in_reply_to_id quote_id quoted_status_id reblog_of_id status_id root_id parent_id";
    let accounts = "in_reply_to_account_id account_id profile_id user_id author_id";
    let one = |names: &'static str| proptest::sample::select(names.split(' ').collect::<Vec<_>>());
    let names = |names, ids: BoxedStrategy<Value>| {
        (one(names), ids).prop_map(|(name, id)| (name.to_owned(), id))
    };
    let list = |ids: BoxedStrategy<Value>| prop::collection::vec(ids, 0..3).prop_map(Value::from);
    let other = "content text card unknown \\u{e9}t\\u{e9} id_of_nothing interaction_policy x";
    prop_oneof![
        names(posts, post_id().boxed()),
        names(accounts, account_id().boxed()),
        names(
            "status_reference_ids status_ids",
            list(post_id().boxed()).boxed()
        ),
        names("account_ids", list(account_id().boxed()).boxed()),
        names(other, plain().boxed()),
    ]
}

fn account() -> impl Strategy<Value = Value> {
    (account_id(), prop::collection::vec(member(), 0..3)).prop_map(|(id, more)| {
        let own = [
            ("id", id),
            ("acct", json!("ann")),
            ("username", json!("ann")),
        ];
        object(own.map(|(name, value)| (name.to_owned(), value)), more)
    })
}

fn object(own: impl IntoIterator<Item = (String, Value)>, more: Vec<(String, Value)>) -> Value {
    let mut object: Map<String, Value> = more.into_iter().collect();
    object.extend(own);
    Value::Object(object)
}

/// A status, with others in it.
fn status() -> impl Strategy<Value = Value> {
    let leaf = of_members(prop::collection::vec(member(), 0..6).boxed());
    leaf.prop_recursive(4, 40, 4, |inner| {
        let places = "reblog quote quoted_status in_reply_to_status parent unknown pleroma links \
            media_attachments emojis tags fields roles x twitter";
        let place = proptest::sample::select(places.split(' ').collect::<Vec<_>>());
        let wrapped = (inner, 0..4_u8).prop_map(|(status, how)| match how {
            0 => json!({ "state": "accepted", "quoted_status": status }),
            1 => json!([status, { "deep": [[status]] }]),
            2 => json!({ "quote": status, "conversation_id": 4 }),
            _ => status,
        });
        let nested = (place, wrapped).prop_map(|(name, value)| (name.to_owned(), value));
        let people = prop::collection::vec(account(), 0..3);
        let mentions = people.prop_map(|people| ("mentions".to_owned(), Value::from(people)));
        let more = prop_oneof![3 => member(), 2 => nested, 1 => mentions];
        of_members(prop::collection::vec(more, 0..8).boxed())
    })
}

fn of_members(more: BoxedStrategy<Vec<(String, Value)>>) -> BoxedStrategy<Value> {
    let visibility = proptest::sample::select(vec!["public", "unlisted", "private"]);
    let drawn = (post_id(), account(), visibility, more);
    drawn
        .prop_map(|(id, account, visibility, more)| {
            let own = [
                ("id", id),
                ("account", account),
                ("visibility", json!(visibility)),
                ("uri", json!("https://a.example/1")),
            ];
            object(own.map(|(name, value)| (name.to_owned(), value)), more)
        })
        .boxed()
}

fn template(status: &RawObject<'_>) -> Template {
    let head = StatusHead {
        id: 1,
        public_id: 1,
        account: Some(1),
        created_at_ms: 0,
        edited_at_ms: None,
        visibility: Visibility::Public,
        upstream_id: "1",
        uri: Some("https://a.example/1"),
        url: None,
    };
    let copier = Copier {
        origin: "https://a.example",
        api: Api::Mastodon,
        own_host: None,
    };
    let mut template = Template::default();
    copier.status(&mut template, status, &head);
    copier.status_edit(&mut template, status, 0, Some(1));
    template
}

#[test]
fn nesting_without_end_breaks_nothing() {
    let depth = 20_000;
    for (open, close) in [
        (
            r#"{"account":{},"visibility":"public","uri":"u","id":"upstream","reblog":"#,
            "}",
        ),
        (
            r#"{"account":{},"visibility":"public","uri":"u","id":"upstream","mentions":[{"id":"1","x":"#,
            "}]}",
        ),
        (r#"{"account":{"id":"upstream","moved":"#, "}}"),
        (r#"{"x_id":[["#, "]]}"),
    ] {
        let json = format!("{}null{}", open.repeat(depth), close.repeat(depth));
        let status = RawObject::parse(&json).expect("an object");
        let mut out = Vec::new();
        template(&status).fill(&mut out, |_, _| Some(7), |_| None, |_, _| None);
        let out = String::from_utf8(out).expect("UTF-8");
        let leak = out
            .find(MARK)
            .map(|at| &out[at.saturating_sub(200)..at + 10]);
        assert_eq!(leak, None, "{open}");
        references(&status, Api::Mastodon);
    }
}

/// As posts that were stored by earlier versions have them.
#[test]
fn the_readers_part_in_policies_is_not_shown() {
    let json = r#"{"id":"1","interaction_policy":{"can_reply":{"always":["me","public"]}}}"#;
    let (template, mut out) = (template(&RawObject::parse(json).expect("JSON")), Vec::new());
    template.fill(&mut out, |_, _| None, |_| None, |_, _| None);
    let out = String::from_utf8(out).expect("UTF-8");
    let policy = r#""interaction_policy":{"can_reply":{"always":["public"]}}"#;
    assert!(out.contains(policy), "{out}");
}

#[test]
fn what_is_too_long_for_an_id_is_none() {
    let (long, longest) = ("9".repeat(256), "8".repeat(255));
    let json = json!({
        "id": "1", "account": { "id": "2", "acct": "a" }, "in_reply_to_id": long,
        "status_ids": [long, longest], "mentions": [{ "id": long, "acct": "b" }],
        "reblog": { "id": long, "uri": "u", "visibility": "public", "account": { "id": long, "acct": "c" } },
        "quote": { "quoted_status_id": long },
    });
    let json = json.to_string();
    let status = RawObject::parse(&json).expect("an object");
    let known = references(&status, Api::Mastodon);
    assert_eq!(known.posts, [longest.as_str().into()]);
    assert_eq!(known.accounts, []);
    let (template, mut out) = (template(&status), Vec::new());
    let named: BTreeSet<_> = template.references().map(|(_, id)| id).collect();
    assert_eq!(named, BTreeSet::from([longest.as_str()]));
    template.fill(&mut out, |_, _| Some(7), |_| None, |_, _| None);
    let out = String::from_utf8(out).expect("UTF-8");
    assert!(!out.contains(&long), "{out}");
    assert!(out.contains(r#""in_reply_to_id":null"#), "{out}");
    assert!(out.contains(r#""status_ids":[null,"7"]"#), "{out}");
}

/// Minutes, if each member is compared with each other one.
#[test]
fn many_members_are_copied_at_once() {
    let members: Vec<String> = (0..100_000)
        .map(|n| format!(r#""k{n:06}":{n},"k":{n}"#))
        .collect();
    let json = format!(r#"{{"a_id":"1","x":{{{}}}}}"#, members.join(","));
    let json = json.replace("k000001", "\\u006b000000");
    let status = RawObject::parse(&json).expect("an object");
    let mut out = Vec::new();
    template(&status).fill(&mut out, |_, _| Some(7), |_| None, |_, _| None);
    let out = String::from_utf8(out).expect("UTF-8");
    assert!(
        out.contains(r#""x":{"\u006b000000":1,"k000002":2,"#),
        "{}",
        &out[..200]
    );
    assert!(out.contains(r#""k099999":99999,"k":99999}"#));
}

proptest! {
    #[test]
    fn no_id_of_an_upstream_is_shown(status in status()) {
        let json = status.to_string();
        // One that boosts what has no ID is refused.
        let post = read_status(&to_raw_value(&status).expect("JSON"));
        let stored = post.ok().map(|post| post.raw);
        let escaped = json.replace("_id\":", "_\\u0069d\":").replace("ids\":", "i\\u0064s\":");
        for json in [json, escaped].into_iter().chain(stored) {
            let status = RawObject::parse(&json).expect("an object");
            let template = template(&status);
            let mut out = Vec::new();
            template.fill(&mut out, |_, id| Some(if id.contains(MARK) { 7 } else { 8 }), |_| None, |_, _| None);
            let out = String::from_utf8(out).expect("UTF-8");
            prop_assert!(!out.contains(MARK), "{json}\n{out}");
            let mut both = serde_json::Deserializer::from_str(&out).into_iter::<Value>();
            prop_assert!(both.all(|value| value.is_ok()), "{out}");
            // All of it is known when the post is read, so that none is mapped later.
            let known = references(&status, Api::Mastodon);
            let known: BTreeSet<_> = known
                .posts
                .iter()
                .map(|id| (false, id.as_str()))
                .chain(known.accounts.iter().map(|id| (true, id.as_str())))
                .collect();
            for (referent, id) in template.references() {
                prop_assert!(known.contains(&(referent == Referent::Account, id)), "{id}: {json}");
            }
        }
    }
}
