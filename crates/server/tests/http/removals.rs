//! What is left of an account, or of a server, that is deleted: nothing, in any table, also of what was fetched for
//! threads. What others have stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{names::audience::Audience, social::AccountName};
use driftline_db::testing::dump;
use driftline_server::admin::{DeleteAccount, ForgetInstance, Host, Request as _};
use driftline_sim::{SimAuthor, Status};
use driftline_store::{Owner, search};
use serde_json::{Value, json};

use crate::{
    people::{PASSPHRASE, Person},
    threads::{context_of, reply, shape},
    threads_fetched::{MANY, Scene, json_of, private, thread},
    world::{id, number, status},
};

type Rows = BTreeMap<String, BTreeSet<String>>;

/// Has the search index read all that waits for it, as a server does.
async fn index(scene: &Scene) {
    let indexed = scene
        .store
        .write(search::root(), |tx| search::index_pending(tx, 10_000));
    indexed.await.unwrap();
}

/// Every row of every table.
fn rows(scene: &Scene) -> Rows {
    let mut rows = Rows::new();
    for line in dump(&scene.fresh.target).split(");\n") {
        let Some((_, row)) = line.split_once("insert into ") else {
            continue;
        };
        let (table, row) = row.split_once(" values(").unwrap();
        // Numbers of terms stay until the segments of the index are merged.
        if table.contains("place_terms_") {
            continue;
        }
        rows.entry(table.to_owned())
            .or_default()
            .insert(row.to_owned());
    }
    rows
}

/// The tables that have other rows, each with what is gone and what is new.
fn changed(before: &Rows, after: &Rows) -> BTreeMap<String, (Vec<String>, Vec<String>)> {
    let nothing = BTreeSet::new();
    let tables: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differences = tables.into_iter().map(|table| {
        let [before, after] = [before, after].map(|rows| rows.get(table).unwrap_or(&nothing));
        let gone: Vec<String> = before.difference(after).cloned().collect();
        let new: Vec<String> = after.difference(before).cloned().collect();
        (table.clone(), (gone, new))
    });
    differences
        .filter(|(_, (gone, new))| !gone.is_empty() || !new.is_empty())
        .collect()
}

/// Takes away what keeps IDs from being given again, which says nothing of what had them, and counts of changes.
fn only_ids_are_left(changed: &mut BTreeMap<String, (Vec<String>, Vec<String>)>) {
    for table in ["local_clock", "sharing"] {
        let rows = changed.remove(table).unwrap_or_default();
        assert!(rows.0.len() <= 1 && rows.1.len() <= 1, "{rows:?}");
    }
    for table in ["entry_alias", "upstream_post"] {
        let (gone, new) = changed.remove(table).unwrap_or_default();
        assert!(gone.is_empty(), "{table}: {gone:?}");
        // The names of posts that others replied to, and IDs; no text.
        let is_bare = |row: &String| !row.contains("hidden") && !row.contains('{');
        assert!(new.iter().all(is_bare), "{table}: {new:?}");
    }
}

/// The tables of what people keep and say.
const KEPT: [&str; 12] = [
    "filter",
    "filter_keyword",
    "filter_post",
    "library",
    "library_object",
    "library_opening",
    "list",
    "list_member",
    "marked_post",
    "marker",
    "opening",
    "relation",
];

/// A post of an author whom nobody else shows.
fn hidden(n: u64, to: Option<u64>) -> Status {
    Status {
        author: SimAuthor {
            id: 5_000 + n,
            name: format!("hidden{n}"),
            host: Some("away.example".to_owned()),
        },
        content: format!("<p>hidden{n} to {to:?}</p>"),
        ..status(n)
    }
}

fn answered(n: u64, to: Option<u64>) -> Value {
    let mut json: Value = serde_json::from_str(&hidden(n, to).to_json()).unwrap();
    json["in_reply_to_id"] = json!(to.map(|to| to.to_string()));
    private(json)
}

/// A source of an account's own, with a post that only it shows, and a thread of that whose other posts came with the
/// account's token.
async fn reads_alone(scene: &Scene, person: &Person, n: u64) {
    let token = format!("token-{}", person.id);
    let owner = Owner::Account(person.id);
    let key = scene.source(owner, Audience::Private, Some(&token)).await;
    let mut feed = scene.feed_of(key);
    feed.poll(&[]).await;
    feed.poll(&[hidden(n, None)]).await;
    let below = [answered(n + 1, Some(n)), answered(n + 2, Some(n + 1))];
    scene.answers(Some(&token), n, thread(&[], &below));
    let page = person.page("/api/v1/timelines/public?limit=40").await;
    let found = page.iter().find(|status| number(status) == n);
    let found = id(found.expect("a post"));
    let context = person.get(&context_of(found)).await;
    assert_eq!(shape(&context), (vec![], vec![n + 1, n + 2]));
    // What it keeps of them.
    let last = id(&context["descendants"][1]);
    for post in [found, last] {
        person
            .post(&format!("/api/v1/statuses/{post}/bookmark"))
            .await;
    }
    let filter = json!({
        "title": "t", "context": ["home"], "keywords_attributes": [{ "keyword": "word" }],
    });
    let filter = person.post_json("/api/v2/filters", &filter).await;
    let path = format!(
        "/api/v2/filters/{}/statuses",
        filter["id"].as_str().unwrap()
    );
    person
        .post_json(&path, &json!({ "status_id": last.to_string() }))
        .await;
    let author = page_author(&context);
    person
        .post(&format!("/api/v1/accounts/{author}/follow"))
        .await;
    let list = person
        .post_json("/api/v1/lists", &json!({ "title": "L" }))
        .await;
    let path = format!("/api/v1/lists/{}/accounts", list["id"].as_str().unwrap());
    person
        .post_json(&path, &json!({ "account_ids": [author] }))
        .await;
    let marker = json!({ "home": { "last_read_id": found.to_string() } });
    person.post_json("/api/v1/markers", &marker).await;
}

fn page_author(context: &Value) -> String {
    let author = &context["descendants"][0]["account"]["id"];
    author.as_str().unwrap().to_owned()
}

async fn delete(scene: &Scene, name: &str) {
    let name = AccountName::new(name).unwrap();
    let host = Host::of(&scene.store);
    DeleteAccount { name }.execute(&host).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_an_account_that_is_deleted() {
    let scene = Scene::new(MANY).await;
    let mut feed = scene.public().await;
    feed.poll_posts(vec![status(1).to_post(), reply(2, 1)])
        .await;
    let local_id = scene.local_id(2).await;
    scene.answers(None, 2, thread(&[], &[json_of(3, Some(2))]));
    assert_eq!(scene.shape(local_id).await, (vec![1], vec![3]));
    let bens = Person::new(&scene, "ben").await;
    reads_alone(&scene, &bens, 100).await;

    index(&scene).await;
    let before = rows(&scene);
    let anns = Person::new(&scene, "ann").await;
    reads_alone(&scene, &anns, 200).await;
    let with_ben = format!("/api/v1/accounts/{}/follow", bens.id);
    anns.post(&with_ben).await;
    bens.post(&format!("/api/v1/accounts/{}/follow", anns.id))
        .await;
    let mut browser = scene.browser();
    browser.log_in("ann", PASSPHRASE).await;
    let body = json!({ "who": "ann", "passphrase": PASSPHRASE });
    let native = scene.post("/api/driftline/v1/log-in", &body).await;
    assert!(native.status().is_success());
    let during = rows(&scene);
    let marks = ["hidden200", "hidden201", "hidden202", "token-", "ann"];
    let has = |rows: &Rows, mark: &str| rows.values().flatten().any(|row| row.contains(mark));
    for mark in marks {
        assert!(has(&during, mark), "{mark}");
    }

    delete(&scene, "ann").await;
    index(&scene).await;
    let after = rows(&scene);
    for mark in [
        "hidden200 to",
        "hidden201 to",
        "hidden202 to",
        &format!("token-{}", anns.id),
        "'ann'",
    ] {
        assert!(!has(&after, mark), "{mark}");
    }
    let mut changed = changed(&before, &after);
    only_ids_are_left(&mut changed);
    // Copies of authors whom only it read: nobody knows of them.
    let authors = changed.remove("account").unwrap();
    assert_eq!((authors.0.len(), authors.1.len()), (0, 3), "{authors:?}");
    assert!(authors.1.iter().all(|author| author.contains("hidden20")));
    let names = changed.remove("object_uri").unwrap();
    assert!(
        names.0.is_empty() && names.1.iter().all(|name| name.contains("'account'")),
        "{names:?}"
    );
    // Of the app that it logged in with, which is nobody's.
    let apps = changed.remove("app").unwrap();
    assert_eq!((apps.0.len(), apps.1.len()), (0, 1), "{apps:?}");
    // The follower's devices have to learn that the follow has ended.
    let objects = changed.remove("library_object").unwrap();
    let is_tombstone = |row: &String| row.contains("'follow:ann@local','follow',9,10,1");
    assert!(
        objects.0.is_empty() && objects.1.len() == 1 && objects.1.iter().all(is_tombstone),
        "{objects:?}"
    );
    let libraries = changed.remove("library").unwrap();
    assert_eq!((libraries.0.len(), libraries.1.len()), (1, 1));
    assert!(changed.is_empty(), "{changed:#?}");
    // What is another's is as it was, thread included.
    let page = bens.page("/api/v1/bookmarks").await;
    assert_eq!(page.len(), 2);
    let context = bens.get(&context_of(id(&page[1]))).await;
    assert_eq!(shape(&context), (vec![], vec![101, 102]));
    assert_eq!(scene.shape(local_id).await, (vec![1], vec![3]));
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_server_that_is_forgotten() {
    let scene = Scene::new(MANY).await;
    let anns = Person::new(&scene, "ann").await;
    let bens = Person::new(&scene, "ben").await;
    index(&scene).await;
    let before = rows(&scene);
    let mut feed = scene.public().await;
    feed.poll_posts(vec![status(1).to_post(), reply(2, 1)])
        .await;
    let local_id = scene.local_id(2).await;
    scene.answers(None, 2, thread(&[], &[json_of(3, Some(2))]));
    assert_eq!(scene.shape(local_id).await, (vec![1], vec![3]));
    reads_alone(&scene, &anns, 100).await;
    reads_alone(&scene, &bens, 200).await;

    let address = scene.origin.clone();
    let host = Host::of(&scene.store);
    ForgetInstance { address }.execute(&host).await.unwrap();
    index(&scene).await;
    let after = rows(&scene);
    let mut changed = changed(&before, &after);
    only_ids_are_left(&mut changed);
    // What people keep names posts and authors that are gone by their IDs alone, but for the keys of its objects,
    // which have their addresses and names.
    for table in KEPT {
        let new = changed.remove(table).into_iter().flat_map(|(_, new)| new);
        let kept: String = new.collect();
        assert!(!kept.contains("<p>") && !kept.contains("token"), "{kept}");
        let names_any = kept.contains("hidden");
        assert!(table == "library_object" || !names_any, "{table}: {kept}");
    }
    assert!(changed.is_empty(), "{changed:#?}");
    // They go on: with the server read again, and without what is gone.
    for person in [&anns, &bens] {
        assert_eq!(person.get("/api/v1/bookmarks").await, json!([]));
        assert_eq!(person.page("/api/v2/filters").await.len(), 1);
        assert_eq!(person.get("/api/driftline/v1/sources").await, json!([]));
    }
    let mut feed = scene.public().await;
    feed.poll(&[status(1), hidden(101, None)]).await;
    assert_eq!(anns.page("/api/v1/timelines/home").await.len(), 1);
    scene.close().await;
}
