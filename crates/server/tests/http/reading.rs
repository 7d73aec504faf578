//! Home timelines, accounts and what they wrote, relations, notifications and search.

use driftline_core::{names::audience::Audience, social::AccountName};
use driftline_server::admin::{ChangeAccountHome, Host, Request as _};
use driftline_sim::Status;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{Person, people_world},
    world::{World, author, id, link, numbers, parsed, post_of, show, status},
};

const HOME: &str = "/api/v1/timelines/home";

fn boost(id: u64, boosted: u64) -> Status {
    Status {
        boost_of: Some(Box::new(status(boosted))),
        ..status(id)
    }
}

#[tokio::test]
async fn home_has_those_who_are_followed_and_the_chosen_sources() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut public = world.feed("public").await;
    public.poll(&(1..=10).map(status).collect::<Vec<_>>()).await;
    assert!(ann.page(HOME).await.is_empty());
    // Authors of other servers, as this instance names them, and of the instance itself.
    let far = ann.look_up("drifter1@far.example").await;
    let own = ann.look_up("Drifter2@SIM.example").await;
    let followed = ann.post(&format!("/api/v1/accounts/{far}/follow")).await;
    assert_eq!(followed["following"], true);
    assert_eq!(followed["requested"], false);
    assert_eq!(numbers(&ann.page(HOME).await), [6, 1]);
    ann.post(&format!("/api/v1/accounts/{own}/follow")).await;
    assert_eq!(numbers(&ann.page(HOME).await), [7, 6, 2, 1]);
    // What comes later comes above.
    public.poll(&[status(11), status(12), status(13)]).await;
    assert_eq!(numbers(&ann.page(HOME).await), [12, 11, 7, 6, 2, 1]);
    let unfollowed = ann.post(&format!("/api/v1/accounts/{far}/unfollow")).await;
    assert_eq!(unfollowed["following"], false);
    assert_eq!(numbers(&ann.page(HOME).await), [12, 7, 2]);
    // A source as a whole, which others do not see.
    let host = Host::of(&world.store);
    let change = |add: &[&str], remove: &[&str]| ChangeAccountHome {
        name: AccountName::new("Ann").unwrap(),
        add: add.iter().copied().map(str::to_owned).collect(),
        remove: remove.iter().copied().map(str::to_owned).collect(),
    };
    let chosen = change(&["public"], &[]).execute(&host).await.unwrap();
    assert!(chosen.sources[0].is_readable);
    assert_eq!(ann.page(HOME).await.len(), 13);
    let refused = change(&["nothing"], &["public"]).execute(&host).await;
    assert!(refused.unwrap_err().to_string().contains("nothing"));
    assert_eq!(ann.page(HOME).await.len(), 13);
    let bob = Person::new(&world, "bob").await;
    assert!(bob.page(HOME).await.is_empty());
    show(&world, &public, Audience::Private).await;
    assert!(ann.page(HOME).await.is_empty());
    let listed = change(&[], &[]).execute(&host).await.unwrap();
    assert!(!listed.sources[0].is_readable);
    show(&world, &public, Audience::Members).await;
    assert_eq!(ann.page(HOME).await.len(), 13);
    let left = change(&[], &["public"]).execute(&host).await.unwrap();
    assert!(left.sources.is_empty());
    assert_eq!(numbers(&ann.page(HOME).await), [12, 7, 2]);
}

#[tokio::test]
async fn home_pages_by_links() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut public = world.feed("public").await;
    public.poll(&(1..=40).map(status).collect::<Vec<_>>()).await;
    let own = ann.look_up("drifter0@sim.example").await;
    ann.post(&format!("/api/v1/accounts/{own}/follow")).await;
    let mut next = Some(format!("{}{HOME}?limit=3", world.base));
    let mut seen = Vec::new();
    while let Some(url) = next {
        let request = world.client.get(url).bearer_auth(&ann.token);
        let answer = request.send().await.unwrap();
        next = link(&answer, "next");
        seen.extend(numbers(parsed(answer).await.as_array().unwrap()));
    }
    assert_eq!(seen, [40, 35, 30, 25, 20, 15, 10, 5]);
}

#[tokio::test]
async fn the_muted_and_the_blocked_are_not_seen_nor_boosted() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut public = world.feed("public").await;
    public
        .poll(&[status(1), status(2), boost(6, 2), boost(7, 1), status(8)])
        .await;
    for name in [
        "drifter1@far.example",
        "drifter2@sim.example",
        "drifter3@far.example",
    ] {
        let other = ann.look_up(name).await;
        ann.post(&format!("/api/v1/accounts/{other}/follow")).await;
    }
    let all = "/api/v1/timelines/public";
    assert_eq!(ann.page(HOME).await.len(), 5);
    assert_eq!(ann.page(all).await.len(), 5);
    let second = ann.look_up("drifter2@sim.example").await;
    let muted = ann
        .post(&format!("/api/v1/accounts/{second}/mute?duration=60"))
        .await;
    assert_eq!(muted["muting"], true);
    assert!(muted["muting_expires_at"].is_string(), "{muted}");
    // Neither theirs, nor a boost of theirs, nor their boosts.
    for path in [HOME, all] {
        let left = ann.page(path).await;
        let uris: Vec<&str> = left.iter().map(|of| of["uri"].as_str().unwrap()).collect();
        assert_eq!(left.len(), 2, "{path}: {uris:?}");
    }
    let mutes = ann.page("/api/v1/mutes").await;
    assert_eq!(mutes.len(), 1);
    assert!(mutes[0]["mute_expires_at"].is_string());
    ann.post(&format!("/api/v1/accounts/{second}/unmute")).await;
    assert_eq!(ann.page(HOME).await.len(), 5);
    // Somebody's posts without their boosts.
    let first = ann.look_up("drifter1@far.example").await;
    ann.post(&format!("/api/v1/accounts/{first}/follow?reblogs=false"))
        .await;
    assert_eq!(ann.page(HOME).await.len(), 4);
    assert_eq!(ann.page(all).await.len(), 5);
    let blocked = ann.post(&format!("/api/v1/accounts/{first}/block")).await;
    assert_eq!(
        (&blocked["blocking"], &blocked["following"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(ann.page(all).await.len(), 2);
    assert_eq!(ann.page("/api/v1/blocks").await.len(), 1);
    let (refused, _) = ann
        .send(
            Method::POST,
            &format!("/api/v1/accounts/{first}/follow"),
            &Value::Null,
        )
        .await;
    assert_eq!(refused, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn accounts_are_known_by_what_one_may_read() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut secret = world.feed("secret").await;
    show(&world, &secret, Audience::Private).await;
    secret.poll(&[status(1)]).await;
    let mut public = world.feed("public").await;
    public.poll(&[status(2), status(7), boost(12, 1)]).await;
    let known = ann.look_up("drifter2@sim.example").await;
    let account = ann.get(&format!("/api/v1/accounts/{known}")).await;
    assert_eq!(account["acct"], "drifter2@sim.example");
    assert_eq!(account["id"], known.to_string());
    let posts = format!("/api/v1/accounts/{known}/statuses");
    assert_eq!(numbers(&ann.page(&posts).await), [12, 7, 2]);
    let original = format!("{posts}?exclude_reblogs=true");
    assert_eq!(numbers(&ann.page(&original).await), [7, 2]);
    assert!(ann.page(&format!("{posts}?pinned=true")).await.is_empty());
    // Of the author of a hidden post nobody is told, and nothing can be done to them.
    let hidden = driftline_core::names::acct::AcctKey::new("drifter1@far.example", "").unwrap();
    let hidden = hidden.account_id();
    for (method, path) in [
        (
            Method::GET,
            "/api/v1/accounts/lookup?acct=drifter1@far.example".to_owned(),
        ),
        (Method::GET, format!("/api/v1/accounts/{hidden}")),
        (Method::GET, format!("/api/v1/accounts/{hidden}/statuses")),
        (Method::GET, format!("/api/v1/accounts/{hidden}/followers")),
        (Method::POST, format!("/api/v1/accounts/{hidden}/follow")),
        (Method::POST, format!("/api/v1/accounts/{hidden}/mute")),
        (Method::POST, format!("/api/v1/accounts/{hidden}/block")),
    ] {
        let (status, body) = ann.send(method, &path, &Value::Null).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {body}");
    }
    let search = "/api/v1/accounts/search?q=drifter";
    let found = ann.page(search).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["acct"], "drifter2@sim.example");
    // Whoever reads the post knows its author.
    show(&world, &secret, Audience::Members).await;
    assert_eq!(ann.page(search).await.len(), 2);
    assert_eq!(ann.look_up("drifter1@far.example").await, hidden);
}

#[tokio::test]
async fn follows_that_one_may_not_know_of_are_neither_counted_nor_paged() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let bob = Person::new(&world, "bob").await;
    Person::new(&world, "carl").await;
    let mut secret = world.feed("secret").await;
    secret.poll(&[status(1), status(3)]).await;
    let mut public = world.feed("public").await;
    public.poll(&[status(2)]).await;
    let hidden = ["drifter1@far.example", "drifter3@far.example"];
    for acct in [hidden[0], "carl", "drifter2@sim.example", hidden[1]] {
        let id = bob.look_up(acct).await;
        bob.post(&format!("/api/v1/accounts/{id}/follow")).await;
    }
    show(&world, &secret, Audience::Private).await;
    let path = format!("/api/v1/accounts/{}", bob.id);
    assert_eq!(ann.get(&path).await["following_count"], 1);
    let own = "/api/v1/accounts/verify_credentials";
    assert_eq!(bob.get(own).await["following_count"], 4);
    let own = bob.page(&format!("{path}/following")).await;
    assert_eq!(own.len(), 4);

    let upward = format!("{path}/following?limit=1&min_id=1");
    let lowest = ann.page(&upward).await;
    assert_eq!(lowest[0]["acct"], "carl");
    let mut next = Some(format!("{path}/following?limit=1"));
    let mut pages = Vec::new();
    while let Some(path) = next {
        let answer = world.get_with(&path, &ann.token).await;
        let ends = ["next", "prev"].map(|relation| {
            let link = link(&answer, relation)?;
            link.rsplit_once('=').map(|(_, id)| id.to_owned())
        });
        next = link(&answer, "next").map(|link| link.replace(&world.base, ""));
        let page = parsed(answer).await;
        let Some(only) = page.as_array().unwrap().first() else {
            assert_eq!(ends, [None, None], "beyond the last that ann knows");
            continue;
        };
        assert_eq!(ends[0], ends[1], "a page of one begins and ends there");
        pages.push(only["acct"].as_str().unwrap().to_owned());
    }
    assert_eq!(pages, ["drifter2@sim.example", "carl"]);
    world.close().await;
}

#[tokio::test]
async fn people_follow_each_other() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let bob = Person::new(&world, "bob").await;
    let follow = format!("/api/v1/accounts/{}/follow", bob.id);
    assert_eq!(ann.post(&follow).await["following"], true);
    let told = bob.page("/api/v1/notifications").await;
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&told[0]["type"], &told[0]["account"]["acct"]),
        (&json!("follow"), &json!("ann"))
    );
    // Following again tells nothing new.
    ann.post(&follow).await;
    assert_eq!(bob.page("/api/v1/notifications").await.len(), 1);
    let followers = format!("/api/v1/accounts/{}/followers", bob.id);
    assert_eq!(ann.page(&followers).await[0]["acct"], "ann");
    let own = bob.get("/api/v1/accounts/verify_credentials").await;
    assert_eq!(
        (&own["followers_count"], &own["following_count"]),
        (&json!(1), &json!(0))
    );
    // What is told goes with what it tells of.
    ann.post(&format!("/api/v1/accounts/{}/unfollow", bob.id))
        .await;
    assert!(bob.page("/api/v1/notifications").await.is_empty());
    // A locked account decides.
    let (status, body) = bob
        .send(
            Method::PATCH,
            "/api/v1/accounts/update_credentials?locked=true&display_name=Bob%20B&note=hello",
            &Value::Null,
        )
        .await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!(
        (&body["locked"], &body["display_name"]),
        (&json!(true), &json!("Bob B"))
    );
    let asked = ann.post(&follow).await;
    assert_eq!(
        (&asked["following"], &asked["requested"]),
        (&json!(false), &json!(true))
    );
    let requests = bob.page("/api/v1/follow_requests").await;
    assert_eq!(requests[0]["acct"], "ann");
    let told = bob.page("/api/v1/notifications").await;
    assert_eq!(told[0]["type"], "follow_request");
    let of_follows = bob.page("/api/v1/notifications?types[]=follow").await;
    assert!(of_follows.is_empty());
    let accepted = bob
        .post(&format!("/api/v1/follow_requests/{}/authorize", ann.id))
        .await;
    assert_eq!(accepted["followed_by"], true);
    let told = bob.page("/api/v1/notifications").await;
    assert_eq!((told.len(), &told[0]["type"]), (1, &json!("follow")));
    let query = format!("/api/v1/accounts/relationships?id[]={}&id[]=77", bob.id);
    let relations = ann.page(&query).await;
    assert_eq!(
        (relations.len(), &relations[0]["following"]),
        (2, &json!(true))
    );
    assert_eq!(relations[1]["following"], false);
    // Another one's notifications are nobody's to dismiss.
    let dismiss = format!("/api/v1/notifications/{}/dismiss", id(&told[0]));
    let (status, _) = ann.send(Method::POST, &dismiss, &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    bob.post(&dismiss).await;
    assert!(bob.page("/api/v1/notifications").await.is_empty());
    // A block ends it, and is not told.
    bob.post(&format!("/api/v1/accounts/{}/block", ann.id))
        .await;
    let relations = ann.page(&query).await;
    assert_eq!(
        (&relations[0]["following"], &relations[0]["blocked_by"]),
        (&json!(false), &json!(false))
    );
    let (refused, _) = ann.send(Method::POST, &follow, &Value::Null).await;
    assert_eq!(refused, StatusCode::FORBIDDEN);
    let (refused, _) = ann
        .send(
            Method::POST,
            &format!("/api/v1/accounts/{}/follow", ann.id),
            &Value::Null,
        )
        .await;
    assert_eq!(refused, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn search_finds_accounts_and_posts_that_one_may_read() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut public = world.feed("public").await;
    public.poll(&[status(2)]).await;
    let mut secret = world.feed("secret").await;
    show(&world, &secret, Audience::Private).await;
    secret.poll(&[status(3)]).await;
    let found = ann.get("/api/v2/search?q=drifter2").await;
    assert_eq!(found["accounts"][0]["acct"], "drifter2@sim.example");
    assert_eq!(found["hashtags"], json!([]));
    let found = ann.get("/api/v2/search?q=@ann&type=accounts").await;
    assert_eq!(found["accounts"][0]["id"], ann.id.to_string());
    assert_eq!(found["hashtags"], json!([]));
    for (post, is_found) in [(2, true), (3, false)] {
        let url = status(post).to_post().url.unwrap();
        let found = ann.get(&format!("/api/v2/search?q={url}")).await;
        let found = found["statuses"].as_array().unwrap();
        assert_eq!(found.len(), usize::from(is_found), "{post}");
    }
}

#[tokio::test]
async fn strangers_see_no_people() {
    let world = World::of_strangers().await;
    let ann = world.account("ann").await;
    let mut public = world.feed("public").await;
    public.poll(&[status(2)]).await;
    let of = |path: &str| format!("/api/v1/accounts/{path}");
    for path in [of(&ann.to_string()), of("lookup?acct=ann")] {
        assert_eq!(
            world.answer(&path).await.status(),
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    let author = author(2).acct();
    let path = of(&format!("lookup?acct={author}@sim.example"));
    assert_eq!(world.answer(&path).await.status(), StatusCode::OK);
    for path in [
        HOME,
        "/api/v1/notifications",
        "/api/v1/blocks",
        "/api/v1/mutes",
    ] {
        assert_eq!(
            world.answer(path).await.status(),
            StatusCode::UNAUTHORIZED,
            "{path}"
        );
    }
    let found = world.json("/api/v2/search?q=ann").await;
    assert_eq!(found["accounts"], json!([]));
}

#[tokio::test]
async fn tags_have_timelines() {
    let world = World::of_strangers().await;
    let mut public = world.feed("public").await;
    let tagged = |id: u64, tags: &[&str]| {
        let mut json: Value = serde_json::from_str(&status(id).to_post().raw).unwrap();
        let tags = tags
            .iter()
            .map(|tag| json!({ "name": tag, "url": "https://sim.example/tags" }));
        json["tags"] = tags.collect();
        post_of(id, &json)
    };
    let posts = vec![
        tagged(1, &["Rust"]),
        tagged(2, &["rust", "Caf\u{e9}"]),
        tagged(3, &["rustic"]),
        tagged(4, &[]),
        tagged(5, &["CAF\u{c9}"]),
    ];
    public.poll_posts(posts).await;
    for (query, found) in [
        ("rust", &[2, 1][..]),
        ("RUST?limit=1", &[2]),
        ("caf%C3%A9", &[5, 2]),
        ("rust?any[]=caf%C3%A9", &[5, 2, 1]),
        ("rust?all[]=caf%C3%A9", &[2]),
        ("rust?none[]=caf%C3%A9", &[1]),
        ("nothing", &[]),
    ] {
        let page = world.page(&format!("/api/v1/timelines/tag/{query}")).await;
        assert_eq!(numbers(&page), found, "{query}");
    }
    show(&world, &public, Audience::Private).await;
    assert!(world.page("/api/v1/timelines/tag/rust").await.is_empty());
}
