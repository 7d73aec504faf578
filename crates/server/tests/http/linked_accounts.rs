//! Accounts of this server that other servers show.

use driftline_api::transport::Address;
use driftline_core::{
    feed::ChangeKinds,
    names::{acct::AcctKey, audience::Audience},
    post::Post,
    social::{AccountName, Relation, RelationMove},
};
use driftline_mastodon::read_status;
use driftline_server::{
    admin::{FindPosts, Host, ReadFeed, Request},
    bells::Bells,
};
use driftline_store::{
    AccountId, LocalAccountId, StoreError, Tx,
    social::{
        account_note, mute,
        relation::{self, FollowOptions},
    },
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json, value::to_raw_value};

use crate::{
    people::{Person, people_world},
    world::{START_MS, World, id, show, status, with_token},
};

/// An account as another server shows it.
fn lie(acct: &str) -> Value {
    let username = acct.split('@').next().unwrap();
    json!({
        "id": "5", "username": username, "acct": acct, "display_name": "LIE", "note": "<p>LIE</p>",
        "url": "https://sim.example/LIE", "avatar": "https://sim.example/LIE.png", "statuses_count": 99,
    })
}

fn by(n: u64, account: Value, more: Value) -> Post {
    let mut json: Value = serde_json::from_str(&status(n).to_json()).unwrap();
    json["account"] = account;
    let Value::Object(more) = more else {
        panic!("{more} is no object");
    };
    json.as_object_mut().unwrap().extend(more);
    read_status(&to_raw_value(&json).unwrap()).unwrap()
}

/// A server called own.example, which strangers may read.
async fn own_world() -> World {
    let (world, _) = people_world(|app| {
        with_token(app);
        app.public_base = Some("https://own.example".parse().unwrap());
    })
    .await;
    world
}

async fn ann(world: &World) -> Person {
    let ann = Person::new(world, "ann").await;
    let profile = json!({ "display_name": "Ann", "note": "Hello" });
    let path = "/api/v1/accounts/update_credentials";
    ann.ok(Method::PATCH, path, &profile).await;
    ann
}

const PUBLIC: &str = "/api/v1/timelines/public";

fn copy_id(name: &str) -> u64 {
    let key = AcctKey::new(name, "https://own.example").unwrap();
    key.account_id()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_an_own_account_is_linked_to_it_and_says_nothing_of_it() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let bob = Person::new(&world, "bob").await;
    let mut feed = world.feed("news").await;
    let reply = json!({
        "in_reply_to_id": "1", "in_reply_to_account_id": "5", "mentions": [lie("ann@own.example")],
    });
    let mut boosted: Value = serde_json::from_str(&status(1).to_json()).unwrap();
    boosted["account"] = lie("ann@own.example");
    feed.poll_posts(vec![
        by(1, lie("Ann@own.example"), json!({})),
        by(
            2,
            json!({ "id": "6", "username": "eve", "acct": "eve" }),
            reply,
        ),
        by(
            3,
            json!({ "id": "6", "username": "eve", "acct": "eve" }),
            json!({ "reblog": boosted }),
        ),
    ])
    .await;
    let own = bob.get(&format!("/api/v1/accounts/{}", ann.id)).await;
    assert_eq!(
        (&own["display_name"], &own["note"], &own["statuses_count"]),
        (&json!("Ann"), &json!("<p>Hello</p>"), &json!(0))
    );
    for person in [&ann, &bob] {
        let page = person.page(PUBLIC).await;
        let [boost, reply, post] = &page[..] else {
            panic!("{page:?}")
        };
        assert_eq!(post["account"], own);
        assert_eq!(boost["reblog"]["account"], own);
        assert_eq!(reply["in_reply_to_account_id"], own["id"]);
        let mention = json!({
            "id": own["id"], "username": "ann", "acct": "ann", "url": "https://own.example/@ann",
        });
        assert_eq!(reply["mentions"], json!([mention]));
        assert_eq!(
            person.get(&format!("/api/v1/statuses/{}", id(post))).await,
            *post
        );
        let edits = format!("/api/v1/statuses/{}/history", id(post));
        assert_eq!(person.page(&edits).await[0]["account"], own);
    }
    // The copy's ID finds the account, and neither has the post.
    let copy = format!("/api/v1/accounts/{}", copy_id("ann"));
    assert_eq!(bob.get(&copy).await, own);
    let found = bob.page("/api/v1/accounts/search?q=ann").await;
    assert_eq!(found, [own]);
    for path in [
        format!("/api/v1/accounts/{}/statuses", ann.id),
        format!("{copy}/statuses"),
    ] {
        assert_eq!(bob.page(&path).await, [""; 0]);
    }
    let kept = ann.get("/api/v1/accounts/verify_credentials").await;
    assert_eq!(
        (&kept["display_name"], &kept["source"]["note"]),
        (&json!("Ann"), &json!("Hello"))
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_cannot_tell_whether_there_is_an_account_of_that_name() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let mut feed = world.feed("news").await;
    feed.poll_posts(vec![
        by(1, lie("ann@own.example"), json!({})),
        by(
            2,
            {
                let mut of = lie("bob@own.example");
                of["id"] = json!("7");
                of
            },
            json!({}),
        ),
    ])
    .await;
    let page = world.page(PUBLIC).await;
    for (post, name) in [(&page[1], "ann"), (&page[0], "bob")] {
        let account = &post["account"];
        assert_eq!(account["id"], json!(copy_id(name).to_string()));
        assert_eq!(account["acct"], json!(format!("{name}@own.example")));
        assert_eq!(account["display_name"], json!(name));
        assert!(!account.to_string().contains("LIE"), "{account}");
        let path = format!("/api/v1/accounts/{}", copy_id(name));
        assert_eq!(world.json(&path).await, *account);
        assert_eq!(world.page(&format!("{path}/statuses")).await, [""; 0]);
    }
    let named = |account: &Value, name: &str| {
        let text = account
            .to_string()
            .replace(&copy_id(name).to_string(), "ID");
        text.replace(name, "NAME")
    };
    assert_eq!(
        named(&page[1]["account"], "ann"),
        named(&page[0]["account"], "bob")
    );
    let of_ann = world.answer(&format!("/api/v1/accounts/{}", ann.id)).await;
    assert_eq!(of_ann.status(), StatusCode::NOT_FOUND);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_mutes_an_own_account_is_not_shown_its_copies() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let bob = Person::new(&world, "bob").await;
    let mut feed = world.feed("news").await;
    let post = by(
        1,
        lie("ann@own.example"),
        json!({ "tags": [{ "name": "cats" }] }),
    );
    feed.poll_posts(vec![post]).await;
    let pages = [
        PUBLIC,
        "/api/v1/timelines/tag/cats",
        "/api/driftline/v1/find?q=post",
    ];
    for path in pages {
        assert_eq!(bob.page(path).await.len(), 1, "{path}");
    }
    bob.post(&format!("/api/v1/accounts/{}/mute", ann.id)).await;
    for path in pages {
        assert_eq!(bob.page(path).await, [""; 0], "{path}");
        assert_eq!(ann.page(path).await.len(), 1, "{path}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_lists_that_notify_hide_copies_as_pages_do() {
    const NOTIFICATIONS: &str = "/api/v1/notifications";
    let world = own_world().await;
    let ann = ann(&world).await;
    let mut feed = world.feed("news").await;
    feed.poll(&[status(1)]).await;
    let people = [
        (Person::new(&world, "ben").await, "ben", Some("mute")),
        (Person::new(&world, "cat").await, "cat", Some("block")),
        (Person::new(&world, "dan").await, "dan", None),
    ];
    for (person, _, action) in &people {
        let list = json!({ "title": "Posts", "predicate": "post", "notify": true });
        person.post_json("/api/v1/lists", &list).await;
        if let Some(action) = action {
            let path = format!("/api/v1/accounts/{}/{action}", ann.id);
            person.post(&path).await;
        }
    }
    let address = Address::public(&"https://own.example".parse().unwrap());
    let host = Host {
        address: address.clone(),
        ..Host::of(&world.store)
    };
    let changes = |after: Option<String>| ReadFeed {
        sources: Vec::new(),
        after,
        events: ChangeKinds::NEW,
        history: false,
        tombstones: false,
        matching: Some("post".to_owned()),
        limit: 9,
        wait_ms: 0,
    };
    let before = changes(None).execute(&host).await.unwrap().position;
    feed.poll_posts(vec![by(2, lie("ann@own.example"), json!({}))])
        .await;
    let mut bells = Bells::new(world.store.clone(), address);
    bells.ring_all().await.unwrap();
    for (person, name, action) in people {
        let is_shown = action.is_none();
        let found = person.page("/api/driftline/v1/find?q=post").await;
        assert_eq!(found.len(), 1 + usize::from(is_shown), "{name}");
        let name = AccountName::new(name).unwrap();
        let host = host.clone().acting_as(Some(&name)).await.unwrap();
        let find = FindPosts {
            query: "post".to_owned(),
            source: None,
            below: None,
            above: None,
            limit: 9,
            only_count: false,
        };
        let found = find.execute(&host).await.unwrap();
        assert_eq!(found.posts.len(), 1 + usize::from(is_shown), "{name}");
        let page = changes(Some(before.clone())).execute(&host).await.unwrap();
        let matches: Vec<bool> = page.events.iter().map(|line| line.is_match).collect();
        assert_eq!(matches, [is_shown], "{name}");
        // A notification that was written would be shown at the latest after this.
        if let Some(action) = action {
            let path = format!("/api/v1/accounts/{}/un{action}", ann.id);
            person.post(&path).await;
        }
        let notified = person.page(NOTIFICATIONS).await;
        assert_eq!(notified.len(), usize::from(is_shown), "{name}");
    }
    world.close().await;
}

/// Adds a post by a copy of Ann's account. Returns the IDs of the account and the copy.
async fn add_copy(world: &World, ann: &Person) -> [String; 2] {
    let mut feed = world.feed("news").await;
    feed.poll_posts(vec![by(1, lie("ann@own.example"), json!({}))])
        .await;
    [ann.id.to_string(), copy_id("ann").to_string()]
}

/// The relationships of a person to two accounts, without the IDs.
async fn relationships(person: &Person, ids: [&str; 2]) -> [Value; 2] {
    let [first, second] = ids;
    let path = format!("/api/v1/accounts/relationships?id[]={first}&id[]={second}");
    let found: [Value; 2] = person.page(&path).await.try_into().unwrap();
    let mut named = ids.into_iter();
    found.map(|mut relationship| {
        assert_eq!(relationship["id"].take(), json!(named.next()));
        relationship
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_to_a_copy_is_done_to_the_account() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let bob = Person::new(&world, "bob").await;
    let [own, copy] = add_copy(&world, &ann).await;
    for (action, member, is_set) in [
        ("follow", "following", true),
        ("unfollow", "following", false),
        ("mute", "muting", true),
        ("unmute", "muting", false),
        ("block", "blocking", true),
        ("unblock", "blocking", false),
    ] {
        let path = format!("/api/v1/accounts/{copy}/{action}");
        let mut answer = bob.post(&path).await;
        assert_eq!(answer["id"].take(), json!(copy), "{action}");
        assert_eq!(answer[member], json!(is_set), "{action}");
        let [of_own, of_copy] = relationships(&bob, [&own, &copy]).await;
        assert_eq!(of_own, answer, "{action}");
        assert_eq!(of_copy, answer, "{action}");
    }
    bob.post(&format!("/api/v1/accounts/{copy}/follow")).await;
    let list = bob
        .post_json("/api/v1/lists", &json!({ "title": "L" }))
        .await;
    let path = format!("/api/v1/lists/{}/accounts", list["id"].as_str().unwrap());
    let members = json!({ "account_ids": [copy] });
    bob.post_json(&path, &members).await;
    for named in [&own, &copy] {
        let path = format!("/api/v1/accounts/{named}");
        let followers = ann.page(&format!("{path}/followers")).await;
        let names: Vec<&Value> = followers.iter().map(|person| &person["acct"]).collect();
        assert_eq!(names, ["bob"]);
        assert_eq!(bob.page(&format!("{path}/lists")).await.len(), 1);
    }
    bob.ok(Method::DELETE, &path, &members).await;
    assert_eq!(bob.page(&path).await, [""; 0]);
    // The copy of one's own account is oneself.
    let path = format!("/api/v1/accounts/{copy}/mute");
    let (status, _) = ann.send(Method::POST, &path, &Value::Null).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_relation_to_a_copy_ends_with_the_one_to_the_account() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let bob = Person::new(&world, "bob").await;
    let [own, copy] = add_copy(&world, &ann).await;
    act_earlier(&world, &bob, follow_copy).await;
    act_earlier(&world, &bob, mute_copy).await;
    for (action, member) in [("unfollow", "following"), ("unmute", "muting")] {
        for relationship in relationships(&bob, [&own, &copy]).await {
            assert_eq!(relationship[member], json!(true), "{action}");
        }
        let path = format!("/api/v1/accounts/{own}/{action}");
        assert_eq!(bob.post(&path).await[member], json!(false), "{action}");
        for relationship in relationships(&bob, [&own, &copy]).await {
            assert_eq!(relationship[member], json!(false), "{action}");
        }
    }
    world.close().await;
}

/// An action towards a copy of an account, as before the server had a public URL.
type Earlier = fn(&mut Tx<'_>, LocalAccountId, AccountId) -> Result<(), StoreError>;

fn follow_copy(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    copy: AccountId,
) -> Result<(), StoreError> {
    let options = FollowOptions {
        show_boosts: Some(false),
        notify: None,
    };
    relation::follow(tx, account, copy, options, START_MS)?.unwrap();
    Ok(())
}

fn block_copy(tx: &mut Tx<'_>, account: LocalAccountId, copy: AccountId) -> Result<(), StoreError> {
    relation::change(tx, account, copy, RelationMove::Block, START_MS)?.unwrap();
    Ok(())
}

fn mute_copy(tx: &mut Tx<'_>, account: LocalAccountId, copy: AccountId) -> Result<(), StoreError> {
    assert!(mute::set(tx, account, copy, true, None, START_MS)?);
    Ok(())
}

fn note_copy(tx: &mut Tx<'_>, account: LocalAccountId, copy: AccountId) -> Result<(), StoreError> {
    account_note::set(tx, account, copy, "earlier", START_MS)?.unwrap();
    Ok(())
}

/// Performs an earlier action of a person towards the copy of Ann's account.
async fn act_earlier(world: &World, person: &Person, action: Earlier) {
    let (account, copy) = (person.id, AccountId::new(copy_id("ann")));
    let root = relation::root(account, copy);
    let write = move |tx: &mut Tx<'_>| action(tx, account, copy);
    world.store.write(root, write).await.unwrap();
}

/// The stored relations of a person to Ann's account and to its copy.
async fn stored_relations(world: &World, person: &Person, ann: &Person) -> [Relation; 2] {
    let (account, own) = (person.id, AccountId::new(ann.id.raw()));
    let ids = [own, AccountId::new(copy_id("ann"))];
    let read = move |tx: &mut Tx<'_>| relation::to(tx, account, &ids);
    let rows = world.store.read(read).await.unwrap();
    ids.map(|id| {
        let row = rows.iter().find(|row| row.other == id);
        row.map(|row| row.pair.outgoing).unwrap_or_default()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_relation_to_ones_own_copy_can_be_ended() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let [own, copy] = add_copy(&world, &ann).await;
    let cases: [(Earlier, &str, &str); 3] = [
        (follow_copy, "unfollow", "following"),
        (block_copy, "unblock", "blocking"),
        (mute_copy, "unmute", "muting"),
    ];
    for (earlier, action, member) in cases {
        for named in [&copy, &own] {
            act_earlier(&world, &ann, earlier).await;
            for relationship in relationships(&ann, [&own, &copy]).await {
                assert_eq!(relationship[member], json!(true), "{action}");
            }
            let path = format!("/api/v1/accounts/{named}/{action}");
            for time in ["first", "second"] {
                let answer = ann.post(&path).await;
                assert_eq!(answer[member], json!(false), "{action}, {time}");
            }
            for relationship in relationships(&ann, [&own, &copy]).await {
                assert_eq!(relationship[member], json!(false), "{action}");
            }
        }
    }
    for action in ["follow", "block", "mute"] {
        let path = format!("/api/v1/accounts/{copy}/{action}");
        let (status, _) = ann.send(Method::POST, &path, &Value::Null).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{action}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_relation_to_an_account_replaces_an_earlier_one_to_its_copy() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let bob = Person::new(&world, "bob").await;
    let [own, copy] = add_copy(&world, &ann).await;
    let path = |action: &str| format!("/api/v1/accounts/{own}/{action}");

    act_earlier(&world, &bob, follow_copy).await;
    let blocked = bob.post(&path("block")).await;
    assert_eq!(
        (&blocked["following"], &blocked["blocking"]),
        (&json!(false), &json!(true))
    );
    let stored = stored_relations(&world, &bob, &ann).await;
    assert_eq!(stored, [Relation::Blocking, Relation::None]);
    bob.post(&path("unblock")).await;
    for relationship in relationships(&bob, [&own, &copy]).await {
        assert_eq!(relationship["following"], json!(false));
        assert_eq!(relationship["blocking"], json!(false));
    }

    act_earlier(&world, &bob, block_copy).await;
    let (status, _) = bob.send(Method::POST, &path("follow"), &Value::Null).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let stored = stored_relations(&world, &bob, &ann).await;
    assert_eq!(stored, [Relation::None, Relation::Blocking]);
    bob.post(&path("block")).await;
    bob.post(&path("unblock")).await;
    assert_eq!(bob.page(PUBLIC).await.len(), 1);

    act_earlier(&world, &bob, follow_copy).await;
    let followed = bob.post(&path("follow")).await;
    assert_eq!(
        (&followed["following"], &followed["showing_reblogs"]),
        (&json!(true), &json!(false))
    );
    let stored = stored_relations(&world, &bob, &ann).await;
    assert_eq!(stored, [Relation::Following, Relation::None]);

    act_earlier(&world, &bob, mute_copy).await;
    bob.post(&path("mute")).await;
    assert_eq!(bob.page("/api/v1/mutes").await.len(), 1);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_on_an_account_replaces_and_removes_one_on_its_copy() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let bob = Person::new(&world, "bob").await;
    let [own, copy] = add_copy(&world, &ann).await;
    let path = format!("/api/v1/accounts/{own}/note");
    for text in ["", "new"] {
        act_earlier(&world, &bob, note_copy).await;
        for relationship in relationships(&bob, [&own, &copy]).await {
            assert_eq!(relationship["note"], json!("earlier"));
        }
        let set = bob.post_json(&path, &json!({ "comment": text })).await;
        assert_eq!(set["note"], json!(text));
        let (account, id) = (bob.id, AccountId::new(copy_id("ann")));
        let read = move |tx: &mut Tx<'_>| account_note::to(tx, account, &[id]);
        let left = world.store.read(read).await.unwrap();
        assert!(left.is_empty(), "{text:?}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_an_account_once_under_either_id() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let bob = Person::new(&world, "bob").await;
    let [own, copy] = add_copy(&world, &ann).await;
    let list = bob
        .post_json("/api/v1/lists", &json!({ "title": "L" }))
        .await;
    let path = format!("/api/v1/lists/{}/accounts", list["id"].as_str().unwrap());
    let both = json!({ "account_ids": [own, copy] });
    let (status, _) = bob.send(Method::POST, &path, &both).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "not followed");
    act_earlier(&world, &bob, follow_copy).await;
    bob.post_json(&path, &both).await;
    // The follow of the account replaces that of the copy, in lists too.
    for is_replaced in [false, true] {
        if is_replaced {
            bob.post(&format!("/api/v1/accounts/{own}/follow")).await;
        }
        let members = bob.page(&path).await;
        let ids: Vec<&Value> = members.iter().map(|member| &member["id"]).collect();
        assert_eq!(ids, [&json!(own)], "{is_replaced}");
        for named in [&own, &copy] {
            let one = json!({ "account_ids": [named] });
            let (status, _) = bob.send(Method::POST, &path, &one).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{is_replaced}");
            let lists = bob.page(&format!("/api/v1/accounts/{named}/lists")).await;
            assert_eq!(lists.len(), 1, "{is_replaced}");
        }
    }
    bob.ok(Method::DELETE, &path, &json!({ "account_ids": [copy] }))
        .await;
    assert_eq!(bob.page(&path).await, [""; 0]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_learns_by_relations_of_a_copy_that_others_read() {
    let world = own_world().await;
    let ann = ann(&world).await;
    let bob = Person::new(&world, "bob").await;
    let mut feed = world.feed("news").await;
    show(&world, &feed, Audience::Private).await;
    feed.poll_posts(vec![by(1, lie("ann@own.example"), json!({}))])
        .await;
    let (own, copy) = (ann.id.to_string(), copy_id("ann").to_string());
    bob.post(&format!("/api/v1/accounts/{own}/follow")).await;
    let [of_own, of_copy] = relationships(&bob, [&own, &copy]).await;
    assert_eq!(of_own["following"], json!(true));
    assert_eq!(of_copy["following"], json!(false));
    let path = format!("/api/v1/accounts/{copy}/unfollow");
    let (status, _) = bob.send(Method::POST, &path, &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_an_address_has_no_copies() {
    let (world, _) = people_world(|_| {}).await;
    let ann = ann(&world).await;
    let mut feed = world.feed("news").await;
    feed.poll_posts(vec![by(1, lie("ann@own.example"), json!({}))])
        .await;
    let post = ann.page(PUBLIC).await.remove(0);
    assert_eq!(post["account"]["display_name"], "LIE");
    assert_eq!(post["account"]["id"], json!(copy_id("ann").to_string()));
    // A client that names the server so changes nothing.
    let url = format!("{}{PUBLIC}", world.base);
    let request = world.client.get(url).bearer_auth(&ann.token);
    let answer = request.header("host", "own.example").send().await.unwrap();
    assert!(answer.text().await.unwrap().contains("LIE"));
    world.close().await;
}
