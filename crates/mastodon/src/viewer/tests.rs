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

/// Puts members into an entity, and the entity into a status.
fn nested(places: [&str; 2], members: &str) -> String {
    let [entity, status] = places;
    status.replace('*', &entity.replace('+', members))
}

#[test]
fn nothing_of_the_reader_is_left_in_nested_entities() {
    // The members of an entity with and without the reader's.
    let of_account = [
        (r#","source":{"note":"n"}"#, ""),
        (r#","role":{"id":"3","permissions":"1"}"#, ""),
        (r#","relationship":{"id":"2","following":true}"#, ""),
        (r#","mute_expires_at":null"#, ""),
        (
            r#","feature_approval":{"automatic":[],"current_user":"denied"}"#,
            r#","feature_approval":{"automatic":[]}"#,
        ),
        (
            r#","pleroma":{"relationship":{"following":true},"tags":[]}"#,
            r#","pleroma":{"tags":[]}"#,
        ),
    ];
    let of_status = [
        (r#","favourited":true"#, ""),
        (r#","reblogged":false"#, ""),
        (r#","muted":true"#, ""),
        (r#","bookmarked":true"#, ""),
        (r#","pinned":true"#, ""),
        (r#","filtered":[{"filter":{"id":"9"}}]"#, ""),
        (
            r#","quote_approval":{"automatic":[],"current_user":"manual"}"#,
            r#","quote_approval":{"automatic":[]}"#,
        ),
        (
            r#","poll":{"id":"8","voted":true,"own_votes":[0]}"#,
            r#","poll":{"id":"8"}"#,
        ),
        (
            r#","tags":[{"name":"t"},{"name":"u","following":true}]"#,
            r#","tags":[{"name":"t"},{"name":"u"}]"#,
        ),
        (
            r#","quote":{"state":"muted_account","quoted_status":null}"#,
            r#","quote":{"state":"accepted","quoted_status":null}"#,
        ),
    ];
    let statuses = [
        "*",
        r#"{"reblog":*}"#,
        r#"{"quote":{"state":"accepted","quoted_status":*}}"#,
        r#"{"reblog":{"quote":{"state":"accepted","quoted_status":*}}}"#,
        r#"{"unknown":[{"status":*}]}"#,
        r#"{"account":{"id":"7","acct":"b","last":*}}"#,
    ];
    let accounts = [
        r#"{"id":"1","visibility":"public","account":@}"#,
        r#"{"id":"1","visibility":"public","account":{"id":"7","acct":"b","moved":@}}"#,
        r#"{"id":"1","visibility":"public","mentions":[{"id":"7","acct":"b"},@]}"#,
        r#"{"id":"1","visibility":"public","card":{"url":"u","authors":[{"name":"n","account":@}]}}"#,
        r#"{"id":"1","visibility":"public","unknown":{"people":[@]}}"#,
    ];
    let account = r#"{"id":"2","acct":"a"+}"#;
    let mut entities: Vec<(String, &str, &str)> = Vec::new();
    for (whole, kept) in of_status {
        let status = r#"{"id":"1","visibility":"public","account":{"id":"7","acct":"b"}+}"#;
        entities.push((status.to_owned(), whole, kept));
    }
    for place in accounts {
        for (whole, kept) in of_account {
            entities.push((place.replace('@', account), whole, kept));
        }
    }
    for status in statuses {
        for (entity, whole, kept) in &entities {
            let json = nested([entity, status], whole);
            let split = split(&json).unwrap_or_else(|| panic!("nothing was taken: {json}"));
            assert_eq!(split.status, nested([entity, status], kept), "{json}");
            assert_eq!(super::split(&split.status), None, "{json}");
        }
    }
}

#[test]
fn an_account_alone_is_kept_without_its_readers_parts() {
    let json = r#"{"id":"2","acct":"a","source":{"note":"n"},"moved":{"id":"3","acct":"b","feature_approval":{"current_user":"denied"}},"roles":[]}"#;
    let account = RawObject::parse(json).expect("an object");
    assert_eq!(
        without_in_account(&account, json),
        r#"{"id":"2","acct":"a","moved":{"id":"3","acct":"b","feature_approval":{}},"roles":[]}"#
    );
    let plain = r#"{ "id":"2", "acct":"a" }"#;
    let account = RawObject::parse(plain).expect("an object");
    assert_eq!(without_in_account(&account, plain), plain);
}

#[test]
fn reactions_do_not_reveal_the_readers_own() {
    let reactions = r#"[ {"name":"\ud83c\udf89","count":2,"me":true},7,{"me":false,"name":"x"}]"#;
    let kept = r#"[{"name":"\ud83c\udf89","count":2},7,{"name":"x"}]"#;
    let taken = r#"[{"me":true},{},{"me":false}]"#;
    for path in [
        r#"{"reactions":*}"#,
        r#"{"emoji_reactions":*}"#,
        r#"{"pleroma":{"emoji_reactions":*}}"#,
        r#"{"reblog":{"quote":{"quoted_status":{"pleroma":{"reactions":*}}}}}"#,
    ] {
        let split = split(&path.replace('*', reactions)).expect("something to take");
        assert_eq!(split.status, path.replace('*', kept));
        assert_eq!(split.viewer, path.replace('*', taken));
    }
    let others = r#"{"reactions":[ {"name":"x"}],"pleroma":{"emoji_reactions":{"me":true}}}"#;
    assert_eq!(without(others.into()), others);
}

#[test]
fn pleromas_folder_and_muted_thread_are_taken() {
    let json = r#"{"pleroma":{"local":true,"thread_muted":true,"bookmark_folder":"f"}}"#;
    assert_eq!(without(json.into()), r#"{"pleroma":{"local":true}}"#);
}

#[test]
fn what_an_account_alone_sees_of_itself_is_taken() {
    let json = r#"{"account":{"acct":"a","follow_requests_count":2,"pleroma":{"email":"a@b.example","tags":[],"is_admin":true,"is_moderator":false,"privileges":["x"],"deactivated":false}}}"#;
    let kept = r#"{"account":{"acct":"a","pleroma":{"tags":[]}}}"#;
    assert_eq!(without(json.into()), kept);
    let json = r#"{"account":{"acct":"a","follow_requests_count":2},"emoji_reactioned":true,"circle_id":"7"}"#;
    assert_eq!(without(json.into()), r#"{"account":{"acct":"a"}}"#);
}

#[test]
fn policies_do_not_reveal_what_the_reader_may_do() {
    let json = r#"{"interaction_policy":{"can_reply":{"always":["me", "public" ],"with_approval":["\u006de"],"note":["me"]},"can_quote":{"automatic_approval":["followers","me"],"manual_approval":[]}}}"#;
    let split = split(json).expect("something to take");
    assert_eq!(
        split.status,
        r#"{"interaction_policy":{"can_reply":{"always":["public"],"with_approval":[],"note":["me"]},"can_quote":{"automatic_approval":["followers"],"manual_approval":[]}}}"#
    );
    assert_eq!(
        split.viewer,
        r#"{"interaction_policy":{"can_reply":{"always":["me"],"with_approval":["\u006de"]},"can_quote":{"automatic_approval":["me"]}}}"#
    );
    let others =
        r#"{"interaction_policy":{"can_reply":{"always":["public", 7],"with_approval":"me"}}}"#;
    assert_eq!(without(others.into()), others);
}

#[test]
fn tweets_of_version_1_1_lose_it_at_every_level() {
    let user = r#"{"id_str":"1","following":true,"notifications":null,"protected":false}"#;
    let user_kept = r#"{"id_str":"1","protected":false}"#;
    let tweet = |user: &str, own: &str| {
        let quoted = format!(r#"{{"id_str":"3","user":{user}{own}}}"#);
        let retweeted = format!(r#"{{"id_str":"2","user":{user},"quoted_status":{quoted}{own}}}"#);
        let tweet =
            format!(r#"{{"id_str":"1","user":{user},"retweeted_status":{retweeted}{own}}}"#);
        format!(
            r#"{{"account":{{"twitter":{user}}},"reblog":{{"twitter":{retweeted}}},"twitter":{tweet}}}"#
        )
    };
    let json = tweet(user, r#","favorited":true,"retweeted":false"#);
    assert_eq!(without(json), tweet(user_kept, ""));
    // Elsewhere, members of the same names do not concern the reader.
    for json in [r#"{"favorited":true}"#, r#"{"x":{"retweeted":true}}"#] {
        assert_eq!(without(json.into()), json);
    }
}

#[test]
fn repeated_and_escaped_names_are_taken() {
    let without = without(r#"{"favourited":1,"\u0066avourited":2,"a":3,"favourited":4}"#.into());
    assert_eq!(without, r#"{"a":3}"#);
}

#[test]
fn posts_in_unknown_containers_are_recognised_by_their_names() {
    for name in ["status", "reblog", "quote", "quoted_status", "parent"] {
        let nested = |members: &str| format!(r#"{{"unknown":{{"{name}":{{"id":"1"{members}}}}}}}"#);
        let json = nested(r#","muted":true,"pinned":true"#);
        assert_eq!(without(json), nested(""), "{name}");
    }
}

#[test]
fn escaped_names_are_recognised_in_nested_values() {
    for (json, kept) in [
        (
            r#"{"account":{"id":"2","acct":"a","\u0072ole":{"id":"3"}}}"#,
            r#"{"account":{"id":"2","acct":"a"}}"#,
        ),
        (
            r#"{"account":{"id":"2","acct":"a","mute\u005Fexpires\u005Fat":null}}"#,
            r#"{"account":{"id":"2","acct":"a"}}"#,
        ),
        (
            r#"{"unknown":{"\u0073tatus":{"id":"1","muted":true}}}"#,
            r#"{"unknown":{"\u0073tatus":{"id":"1"}}}"#,
        ),
        (
            r#"{"unknown":[{"people":[{"id":"2","acct":"a","r\u006fle":{"id":"3"}}]}]}"#,
            r#"{"unknown":[{"people":[{"id":"2","acct":"a"}]}]}"#,
        ),
        (
            r#"{"tags":[{"name":"t","f\u006Fllowing":true}]}"#,
            r#"{"tags":[{"name":"t"}]}"#,
        ),
    ] {
        assert_eq!(without(json.into()), kept, "{json}");
    }
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
