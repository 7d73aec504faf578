use driftline_core::{answer::FailureKind, post::Visibility};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::{changed, check_kinds, check_reads_back, raw};

/// A page written after the reference of `GET /2/users/:id/tweets`: a tweet
/// with everything, a retweet, a long tweet that was edited.
fn recorded() -> Value {
    json!({
        "data": [
            {
                "id": "1980000000000000003",
                "author_id": "42",
                "created_at": "2025-10-19T12:00:00.000Z",
                "text": "Tea &amp; code with @bob #Rust https://t.co/aaaaaaaaaa https://t.co/mmmmmmmmmm",
                "lang": "en",
                "possibly_sensitive": true,
                "in_reply_to_user_id": "43",
                "edit_history_tweet_ids": ["1980000000000000003"],
                "edit_controls": {"edits_remaining": 5, "is_edit_eligible": true},
                "public_metrics": {"retweet_count": 2, "reply_count": 1, "like_count": 3, "quote_count": 4, "bookmark_count": 0, "impression_count": 500},
                "referenced_tweets": [{"type": "replied_to", "id": "1979999999999999999"}, {"type": "quoted", "id": "1"}],
                "attachments": {"media_keys": ["3_77", "7_78", "3_absent"]},
                "entities": {
                    "mentions": [{"start": 20, "end": 24, "username": "bob", "id": "43"}],
                    "hashtags": [{"start": 25, "end": 30, "tag": "Rust"}],
                    "urls": [
                        {"start": 31, "end": 54, "url": "https://t.co/aaaaaaaaaa", "expanded_url": "https://a.example/?b=1&c=2", "display_url": "a.example"},
                        {"start": 55, "end": 78, "url": "https://t.co/mmmmmmmmmm", "expanded_url": "https://x.com/ann/status/1980000000000000003/photo/1", "display_url": "pic.x.com/mmmmmmmmmm", "media_key": "3_77"}
                    ]
                }
            },
            {
                "id": "1980000000000000002",
                "author_id": "42",
                "created_at": "2025-10-19T11:00:00.000Z",
                "text": "RT @bob: cut of…",
                "referenced_tweets": [{"type": "retweeted", "id": "1970000000000000000"}]
            },
            {
                "id": "1980000000000000001",
                "author_id": "44",
                "text": "short https://t.co/bbbbbbbbbb",
                "entities": {"urls": [{"url": "https://t.co/bbbbbbbbbb", "expanded_url": "https://b.example/"}]},
                "note_tweet": {
                    "text": "the whole\n\nlong text https://t.co/cccccccccc",
                    "entities": {"urls": [{"start": 21, "end": 44, "url": "https://t.co/cccccccccc", "expanded_url": "https://c.example/"}]}
                },
                "edit_history_tweet_ids": ["1979500000000000000", "1980000000000000001"]
            }
        ],
        "includes": {
            "users": [
                {"id": "42", "name": "Ann <3", "username": "ann", "created_at": "2008-01-02T03:04:05.000Z", "description": "a &amp; b", "protected": false, "profile_image_url": "https://pbs.example/a.jpg", "public_metrics": {"followers_count": 10, "following_count": 20, "tweet_count": 30, "listed_count": 1}},
                {"id": "43", "name": "Bob", "username": "bob", "protected": true}
            ],
            "tweets": [
                {"id": "1970000000000000000", "author_id": "43", "created_at": "2025-09-22T00:00:00.000Z", "text": "cut off no more", "public_metrics": {"like_count": 9}}
            ],
            "media": [
                {"media_key": "3_77", "type": "photo", "url": "https://pbs.example/m.jpg", "alt_text": "a cup", "width": 640, "height": 480},
                {"media_key": "7_78", "type": "video", "preview_image_url": "https://pbs.example/v.jpg", "variants": [
                    {"content_type": "application/x-mpegURL", "url": "https://v.example/l.m3u8"},
                    {"bit_rate": 256000, "content_type": "video/mp4", "url": "https://v.example/s.mp4"},
                    {"bit_rate": 832000, "content_type": "video/mp4", "url": "https://v.example/b.mp4"}
                ]}
            ]
        },
        "errors": [
            {"resource_id": "1", "parameter": "referenced_tweets.id", "resource_type": "tweet", "title": "Authorization Error", "detail": "Sorry, you are not authorized to see the Tweet with referenced_tweets.id: [1].", "type": "https://api.twitter.com/2/problems/not-authorized-for-resource"}
        ],
        "meta": {"result_count": 3, "newest_id": "1980000000000000003", "oldest_id": "1980000000000000001", "next_token": "7140dibdnow9c7btw4232"}
    })
}

const LONG: &str = "<p>the whole</p><p>long text <a href=\"https://c.example/\" rel=\"nofollow noopener\" target=\"_blank\">https://c.example/</a></p>";

fn read(answer: &Value) -> Result<TweetPage, Failure> {
    page(answer.to_string().as_bytes())
}

#[test]
fn a_page_has_its_posts_and_a_token() {
    let TweetPage { items, next } = read(&recorded()).expect("a page");
    let posts = items.posts().expect("posts");
    assert_eq!(next.as_deref(), Some("7140dibdnow9c7btw4232"));
    assert_eq!(posts.len(), 3);
    assert_eq!(posts[0].counts.views, Some(500));
    check_reads_back(posts);
}

#[test]
fn the_json_is_a_mastodon_status_with_the_tweet_whole_inside() {
    let recorded = recorded();
    let posts = read(&recorded)
        .and_then(|page| page.items.posts())
        .expect("posts");
    let rest = "rel=\"nofollow noopener\" target=\"_blank\">";
    let url = "https://x.com/ann/status/1980000000000000003";
    let included = &recorded["includes"];
    let (photo, film) = (&included["media"][0], &included["media"][1]);
    let account = json!({
        "id": "42", "username": "ann", "acct": "ann", "display_name": "Ann <3",
        "locked": false, "bot": false, "created_at": "2008-01-02T03:04:05.000Z",
        "note": "<p>a &amp; b</p>", "uri": "https://x.com/ann", "url": "https://x.com/ann",
        "avatar": "https://pbs.example/a.jpg", "avatar_static": "https://pbs.example/a.jpg",
        "header": "", "header_static": "",
        "followers_count": 10, "following_count": 20, "statuses_count": 30,
        "emojis": [], "fields": [],
        "x": included["users"][0],
    });
    let status = json!({
        "id": "1980000000000000003", "uri": url, "url": url,
        "created_at": "2025-10-19T12:00:00.000Z", "edited_at": null,
        "in_reply_to_id": "1979999999999999999", "in_reply_to_account_id": "43",
        "sensitive": true, "spoiler_text": "", "visibility": "public", "language": "en",
        "replies_count": 1, "reblogs_count": 2, "favourites_count": 3, "quotes_count": 4,
        "content": format!(
            "<p>Tea &amp; code with <a href=\"https://x.com/bob\" {rest}@bob</a> <a href=\"https://x.com/hashtag/Rust\" {rest}#Rust</a> <a href=\"https://a.example/?b=1&amp;c=2\" {rest}a.example</a></p>"
        ),
        "reblog": null, "account": account, "emojis": [], "card": null, "poll": null,
        "mentions": [{"id": "43", "username": "bob", "acct": "bob", "url": "https://x.com/bob"}],
        "tags": [{"name": "Rust", "url": "https://x.com/hashtag/Rust"}],
        "media_attachments": [
            {
                "id": "3_77", "type": "image", "description": "a cup", "blurhash": null,
                "url": photo["url"], "preview_url": photo["url"], "remote_url": photo["url"],
                "meta": {"original": {"width": 640, "height": 480}}, "x": photo,
            },
            {
                "id": "7_78", "type": "video", "description": null, "blurhash": null,
                "url": "https://v.example/b.mp4", "preview_url": "https://pbs.example/v.jpg",
                "remote_url": "https://v.example/b.mp4", "meta": {}, "x": film,
            },
        ],
        "x": recorded["data"][0],
    });
    assert_eq!(raw(&posts[0]), status);
    let author: Value = serde_json::from_str(&posts[0].author.raw).expect("JSON");
    assert_eq!(author, account);
}

#[test]
fn a_retweet_holds_the_included_tweet() {
    let posts = read(&recorded())
        .and_then(|page| page.items.posts())
        .expect("posts");
    let boosted = posts[1].boost_of.as_deref().expect("a boost");
    assert_eq!(boosted.id, "1970000000000000000".into());
    assert_eq!(boosted.author.acct, "bob");
    assert_eq!(boosted.counts.favourites, Some(9));
    // Bob is protected: what he writes is not for everyone.
    assert_eq!(boosted.visibility, Visibility::Private);
    let status = raw(&posts[1]);
    assert_eq!(status["reblog"], raw(boosted));
    assert_eq!(status["content"], "<p>cut off no more</p>");
    assert_eq!(status["reblog"]["x"]["text"], "cut off no more");

    let mut alone = recorded();
    alone["includes"]["tweets"] = json!([]);
    let posts = read(&alone)
        .and_then(|page| page.items.posts())
        .expect("posts");
    assert_eq!(posts[1].boost_of, None);
    assert_eq!(raw(&posts[1])["content"], "<p>RT @bob: cut of…</p>");
}

#[test]
fn retweets_in_a_circle_end() {
    let mut circle = recorded();
    let id = "1980000000000000002";
    circle["data"][1]["referenced_tweets"][0]["id"] = json!(id);
    circle["includes"]["tweets"] = json!([circle["data"][1]]);
    let posts = read(&circle)
        .and_then(|page| page.items.posts())
        .expect("posts");
    let boosted = posts[1].boost_of.as_deref().expect("one level");
    assert_eq!((&boosted.id, &boosted.boost_of), (&id.into(), &None));
}

#[test]
fn a_long_text_is_whole_and_an_edit_has_its_time() {
    let posts = read(&recorded())
        .and_then(|page| page.items.posts())
        .expect("posts");
    let post = &posts[2];
    assert_eq!(raw(post)["content"], LONG);
    // (1980000000000000001 >> 22) + 1288834974657
    assert_eq!(post.edited_at_ms, Some(1_760_903_761_278));
    assert_eq!(raw(post)["edited_at"], "2025-10-19T19:56:01.278Z");
    // Its author is not included.
    assert_eq!(post.author.id, "".into());
    assert_eq!(raw(post)["account"], Value::Null);
    let url = "https://x.com/i/status/1980000000000000001";
    assert_eq!(post.url.as_deref(), Some(url));
}

#[test]
fn huge_included_things_are_not_copied_into_every_post() {
    let mut huge = recorded();
    huge["includes"]["users"][0]["description"] = json!("x".repeat(300_000));
    let posts = read(&huge)
        .and_then(|page| page.items.posts())
        .expect("posts");
    assert_eq!(posts[0].author.acct, "");
    assert!(posts[0].raw.len() < 10_000);
}

#[test]
fn empty_pages_and_what_is_no_page() {
    let empty = read(&json!({"meta": {"result_count": 0}}));
    let none = TweetPage {
        items: Items::default(),
        next: None,
    };
    assert_eq!(empty, Ok(none));
    let more = read(&json!({"meta": {"result_count": 0, "next_token": "t"}}));
    assert_eq!(more.expect("a page").next.as_deref(), Some("t"));
    let error = |kind: &str| json!({"errors": [{"title": "T", "detail": "Could not find user with id: [7].", "type": format!("https://api.twitter.com/2/problems/{kind}")}]});
    let many: Vec<_> = (1..=101).map(|id| json!({"id": id.to_string()})).collect();
    let refused = [
        (error("resource-not-found"), FailureKind::NotFound),
        (
            error("not-authorized-for-resource"),
            FailureKind::Unauthorized,
        ),
        (error("usage-capped"), FailureKind::Capped),
        (error("else"), FailureKind::ErrorBody),
        (json!({}), FailureKind::BadJson),
        (json!([]), FailureKind::BadJson),
        (json!({"meta": {"result_count": 3}}), FailureKind::BadJson),
        (json!({"data": {}}), FailureKind::BadJson),
        (json!({"data": [7]}), FailureKind::BadJson),
        (json!({"data": [{}]}), FailureKind::BadId),
        (json!({"data": [{"id": "x"}]}), FailureKind::BadId),
        (
            json!({"data": [{"id": "12345678901234567890"}]}),
            FailureKind::BadId,
        ),
        (json!({ "data": many }), FailureKind::BadJson),
    ];
    check_kinds(page, refused);
    let damaged = [
        ("", FailureKind::Truncated),
        ("{\"data\":[", FailureKind::Truncated),
        ("<html>", FailureKind::NotJson),
        ("ok", FailureKind::NotJson),
    ];
    check_kinds(page, damaged);
}

#[test]
fn a_tweet_that_cannot_be_read_costs_none_of_its_page() {
    let answer = json!({"data": [{"id": "9"}, {"id": "x"}, 7, {"id": "7"}]});
    let Items {
        listed,
        passed,
        unreadable,
    } = read(&answer).expect("a page").items;
    assert_eq!((listed.len(), passed.len(), unreadable.len()), (2, 0, 2));
    for item in &unreadable {
        assert_eq!(
            (&item.above, &item.below),
            (&Some("9".into()), &Some("7".into()))
        );
        assert!(read_item(&item.bytes).is_err());
    }
    assert!(read_item(br#"{"id":"8"}"#).is_ok());
    // Without what was included it would be stored cut down.
    for needs in [
        r#""author_id":"7""#,
        r#""attachments":{"media_keys":["3_1"]}"#,
        r#""referenced_tweets":[{"type":"retweeted","id":"6"}]"#,
    ] {
        let read = read_item(format!(r#"{{"id":"8",{needs}}}"#).as_bytes());
        assert!(read.is_err_and(|error| error.to_string().contains("are not kept")));
    }
}

#[test]
fn each_id_looked_up_has_its_finding() {
    let mut answer = recorded();
    let problem = |id: &str, kind: &str| json!({"value": id, "resource_id": id, "parameter": "ids", "resource_type": "tweet", "type": format!("https://api.twitter.com/2/problems/{kind}")});
    answer["errors"] = json!([
        problem("5", "resource-not-found"),
        problem("6", "not-authorized-for-resource"),
        problem("7", "not-authorized-for-field"),
        {"resource_id": "8", "resource_type": "user", "type": "https://api.twitter.com/2/problems/resource-not-found"},
        problem("1980000000000000002", "resource-not-found"),
    ]);
    let asked = [
        "5",
        "1980000000000000002",
        "6",
        "7",
        "8",
        "9",
        "1979500000000000000",
    ];
    let found = findings(
        answer.to_string().as_bytes(),
        asked.map(UpstreamId::from).to_vec(),
    )
    .expect("findings");
    assert_eq!(
        found.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
        asked
    );
    let of = |index: usize| &found[index].1;
    assert_eq!(*of(0), Finding::Gone);
    assert!(matches!(of(1), Finding::Found(post) if post.boost_of.is_some()));
    assert_eq!(*of(2), Finding::Hidden);
    for index in [3, 4, 5] {
        assert_eq!(*of(index), Finding::Missing, "{}", asked[index]);
    }
    // Superseded by an edit: the newer text, under the ID that was asked for.
    let Finding::Found(edited) = of(6) else {
        panic!("it is there");
    };
    assert_eq!(edited.id, "1979500000000000000".into());
    assert_eq!(edited.edited_at_ms, Some(1_760_903_761_278));
    assert_eq!(raw(edited)["id"], "1979500000000000000");
    assert_eq!(raw(edited)["content"], LONG);
    assert_eq!(raw(edited)["x"]["id"], "1980000000000000001");
}

#[test]
fn an_answer_about_none_of_the_ids_is_no_word_on_them() {
    let ask = |answer: Value| findings(answer.to_string().as_bytes(), vec!["5".into()]);
    let of = |id: &str| json!({"errors": [{"value": id, "detail": "d", "type": "https://api.twitter.com/2/problems/resource-not-found"}]});
    assert_eq!(ask(of("5")), Ok(vec![("5".into(), Finding::Gone)]));
    assert_eq!(
        ask(json!({"data": []})),
        Ok(vec![("5".into(), Finding::Missing)])
    );
    let refused = [
        (of("6"), FailureKind::NotFound),
        (json!({}), FailureKind::BadJson),
        (json!({"meta": {"result_count": 0}}), FailureKind::BadJson),
        (
            json!({"errors": [{"message": "overloaded"}]}),
            FailureKind::ErrorBody,
        ),
    ];
    check_kinds(|body| findings(body, vec!["5".into()]), refused);
}

#[test]
fn the_user_of_a_token() {
    let me = |answer: Value| me(answer.to_string().as_bytes());
    assert_eq!(
        me(json!({"data": {"id": "42", "name": "A", "username": "ann"}})),
        Ok(("42".into(), "ann".to_owned()))
    );
    for odd in [
        json!({"data": {"id": "../7"}}),
        json!({"data": {"id": 42}}),
        json!({}),
        json!([]),
    ] {
        assert!(me(odd.clone()).is_err(), "{odd}");
    }
}

proptest! {
    #[test]
    fn hostile_answers_never_panic(
        answer in changed(&recorded()),
        cut in 0_usize..4000,
        byte: u8,
    ) {
        let mut body = answer.to_string().into_bytes();
        let asked = || vec!["5".into(), "1980000000000000003".into()];
        let _ = (page(&body), findings(&body, asked()), me(&body));
        let place = cut.min(body.len() - 1);
        body[place] = byte;
        let _ = (page(&body), findings(&body, asked()));
        let _ = (page(&body[..place]), me(&body[..place]));
    }
}
