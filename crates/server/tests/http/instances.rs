//! What is told of servers: of this one, and of those that the caller may know of.

use driftline_api::{ConfiguredInstance, OwnInstance};
use driftline_core::{
    names::{
        audience::Audience,
        host::{HostKey, MIN_INSTANCE_ID},
    },
    social::InstanceSelfDescription,
};
use driftline_store::{
    InstanceId, Owner, instance,
    instance_info::{self, StoredInstanceInfo},
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    people::{Person, people_world},
    threads_fetched::{MANY, Scene},
    world::{START_MS, World, client, parsed, status},
};

const PEERS: &str = "/api/v1/instance/peers";
const INSTANCES: &str = "/api/driftline/v1/instances";

fn hosts(peers: &[Value]) -> Vec<&str> {
    peers.iter().map(|host| host.as_str().unwrap()).collect()
}

async fn says(world: &World, instance: InstanceId, name: &str) {
    let said = InstanceSelfDescription {
        name: name.to_owned(),
        software_name: "sim".to_owned(),
        ..InstanceSelfDescription::default()
    };
    let said = StoredInstanceInfo {
        info: said.into(),
        fetched_at_ms: START_MS,
    };
    let root = instance::root(instance);
    let claim = move |tx: &mut driftline_store::Tx<'_>| {
        instance_info::claim(tx, instance, 2, 1)?;
        instance_info::store(tx, instance, Some(&said), 2)
    };
    world.store.write(root, claim).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_says_what_the_server_is() {
    let configured = ConfiguredInstance {
        name: Some("Drift <Club>".to_owned()),
        description: Some("For <us> & them".to_owned()),
        maintainer: Some("Ann".to_owned()),
        maintainer_mail: Some("ann@drift.example".to_owned()),
    };
    let own = OwnInstance::new(configured);
    let (world, _) = people_world(|app| app.own = own).await;
    let v1 = world.json("/api/v1/instance").await;
    assert_eq!(v1["title"], "Drift <Club>");
    assert_eq!(v1["short_description"], "For <us> & them");
    assert_eq!(v1["description"], "For &lt;us&gt; &amp; them", "HTML");
    assert_eq!(v1["email"], "ann@drift.example");
    let v2 = world.json("/api/v2/instance").await;
    assert_eq!(v2["title"], "Drift <Club>");
    assert_eq!(v2["description"], "For <us> & them");
    assert_eq!(v2["contact"]["email"], "ann@drift.example");
    let info = world.json("/nodeinfo/2.1").await;
    let metadata = json!({
        "nodeName": "Drift <Club>", "nodeDescription": "For <us> & them",
        "features": ["mastodon_api"],
        "maintainer": { "name": "Ann", "email": "ann@drift.example" },
    });
    assert_eq!(info["metadata"], metadata);
    let records = world.page(INSTANCES).await;
    assert_eq!(records[0]["kind"], "own");
    assert_eq!(records[0]["maintainer_name"], "Ann");
    assert_eq!(records[0]["origin"], world.base);
    let id = records[0]["id"].as_str().unwrap();
    assert_eq!(world.json(&format!("{INSTANCES}/{id}")).await, records[0]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_says_what_the_servers_origin_is() {
    let world = World::new().await;
    let url = format!("{}{INSTANCES}", world.base);
    let request = world.client.get(url).header("host", "evil.example");
    let records = parsed(request.send().await.unwrap()).await;
    assert_eq!(records[0]["origin"], world.base);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_told_of_to_those_who_may_know_of_them() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    // A server that Bob alone reads, and which has said what it is.
    let owner = Owner::Account(bob.id);
    let hidden = scene.source(owner, Audience::Private, None).await;
    scene.feed_of(hidden).poll(&[status(1)]).await;
    says(&scene, hidden.instance, "Bob's").await;
    let own = scene.origin.strip_prefix("http://").unwrap().to_owned();
    let of_bob = bob.page(PEERS).await;
    assert!(hosts(&of_bob).contains(&&*own), "{of_bob:?}");
    assert!(hosts(&of_bob).contains(&"far.example"), "{of_bob:?}");
    let record = |records: Vec<Value>| {
        let mut found = records.into_iter();
        found.find(|record| record["origin"] == json!(scene.origin))
    };
    let known = record(bob.page(INSTANCES).await).unwrap();
    assert_eq!(
        (&known["name"], &known["kind"]),
        (&json!("Bob's"), &json!("upstream"))
    );
    assert!(known["fetched_at"].is_string());
    let id = HostKey::new(&scene.origin).unwrap().instance_id();
    assert_eq!(
        known["id"],
        json!(id.to_string()),
        "numbers would tell of others"
    );
    let path = format!("{INSTANCES}/{id}");
    assert_eq!(bob.get(&path).await, known);
    let far = HostKey::new("far.example").unwrap().instance_id();
    let far = bob.get(&format!("{INSTANCES}/{far}")).await;
    assert_eq!(
        (&far["origin"], &far["kind"]),
        (&json!("https://far.example"), &json!("author_host"))
    );
    // Others get the answer for an instance that no source reads.
    let unknown = format!("{INSTANCES}/{}", MIN_INSTANCE_ID + 1);
    for path in [&path, &unknown] {
        let of_ann = scene.get_with(path, &ann.token).await;
        assert_eq!(of_ann.status(), StatusCode::NOT_FOUND);
        let of_strangers = scene.answer(path).await;
        assert_eq!(of_strangers.status(), StatusCode::NOT_FOUND);
        assert_eq!(
            of_ann.text().await.unwrap(),
            of_strangers.text().await.unwrap()
        );
    }
    for (peers, instances) in [
        (ann.page(PEERS).await, ann.page(INSTANCES).await),
        (scene.page(PEERS).await, scene.page(INSTANCES).await),
    ] {
        assert_eq!(hosts(&peers), [""; 0]);
        assert_eq!(instances.len(), 1, "this server alone: {instances:?}");
    }
    let v1 = scene.json("/api/v1/instance").await;
    assert_eq!(v1["stats"]["domain_count"], 0);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_others_read_is_an_authors_host_to_those_who_know_its_authors() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    // The public source is of the server of the test's posts, some of whose authors are of far.example.
    let mut public = scene.feed("public").await;
    public.poll(&(1..=10).map(status).collect::<Vec<_>>()).await;
    let home = driftline_store::source::NewSource {
        owner: Owner::Account(bob.id),
        audience: Audience::Private,
        upstream: "https://far.example".to_owned(),
        origin: "https://far.example".to_owned(),
        ..driftline_store::testing::new_source(&format!("account{}/far", bob.id))
    };
    let add =
        move |tx: &mut driftline_store::Tx<'_>| driftline_store::source::add(tx, &home, START_MS);
    let root = driftline_store::local_ids::root();
    let far = scene.store.write(root, add).await.unwrap().unwrap();
    says(&scene, far.instance, "Far").await;
    let kind = |records: Vec<Value>| {
        let mut found = records.into_iter();
        let far = found.find(|record| record["origin"] == "https://far.example");
        let far = far.unwrap();
        let id = HostKey::new("far.example").unwrap().instance_id();
        assert_eq!(far["id"], json!(id.to_string()));
        (far["kind"].clone(), far["name"].clone())
    };
    let of_bob = kind(bob.page(INSTANCES).await);
    assert_eq!(of_bob, (json!("upstream"), json!("Far")));
    for records in [ann.page(INSTANCES).await, scene.page(INSTANCES).await] {
        assert_eq!(kind(records), (json!("author_host"), json!("")));
    }
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn host_meta_leads_to_web_finger_which_knows_people_for_people_alone() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let answer = scene.answer("/.well-known/host-meta").await;
    let kind = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(kind.starts_with("application/xrd+xml"), "{kind}");
    let vary = answer.headers()["vary"].to_str().unwrap();
    assert!(vary.contains("accept"), "{vary}");
    let xml = answer.text().await.unwrap();
    let template = format!("{}/.well-known/webfinger?resource={{uri}}", scene.base);
    assert!(xml.contains(&format!("template=\"{template}\"")), "{xml}");
    let request = scene
        .client
        .get(format!("{}/.well-known/host-meta", scene.base));
    let json = parsed(
        request
            .header("accept", "application/json")
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(json["links"][0]["template"], json!(template));
    let other = scene.answer("/.well-known/host-meta.json").await;
    assert_eq!(json, parsed(other).await);

    let domain = scene.base.strip_prefix("http://").unwrap();
    let web_finger = |resource: &str| format!("/.well-known/webfinger?resource={resource}");
    let named = web_finger(&format!("acct:Ann@{domain}"));
    let found = ann.get(&named).await;
    assert_eq!(found["subject"], json!(format!("acct:ann@{domain}")));
    let page = format!("{}/@ann", scene.base);
    assert_eq!(found["links"][0]["href"], json!(page));
    assert_eq!(ann.get(&web_finger(&page)).await, found);
    // Strangers know nobody: whether there is such an account changes nothing.
    let nobody = web_finger(&format!("acct:nobody@{domain}"));
    let mut answers = Vec::new();
    for path in [&named, &nobody] {
        let answer = scene.answer(path).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
        answers.push(answer.text().await.unwrap());
    }
    assert_eq!(answers[0], answers[1]);
    for resource in [
        "acct:ann@far.example",
        "acct:ann",
        "https://far.example/@ann",
        "",
    ] {
        let answer = scene.get_with(&web_finger(resource), &ann.token).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{resource}");
    }
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_has_nothing_of_is_an_empty_answer() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    for path in [
        "/api/v1/instance/rules",
        "/api/v1/instance/domain_blocks",
        "/api/v1/trends/tags",
        "/api/v1/trends/statuses",
        "/api/v1/trends/links",
    ] {
        assert!(world.page(path).await.is_empty(), "{path}");
    }
    for path in ["/api/v1/announcements", "/api/v1/followed_tags"] {
        assert!(ann.page(path).await.is_empty(), "{path}");
        let url = format!("{}{path}", world.base);
        let strangers = client().get(url).send().await.unwrap();
        assert_eq!(strangers.status(), StatusCode::UNAUTHORIZED);
    }
    let languages = world.json("/api/v1/instance/translation_languages").await;
    assert_eq!(languages, json!({}));
    let long = world.json("/api/v1/instance/extended_description").await;
    assert_eq!(long, json!({ "updated_at": null, "content": "" }));
    world.close().await;
}
