//! Posts that an account's source shows of other servers: nobody but these servers can say that they are not made up.

use driftline_core::audience::Audience;
use driftline_store::{
    LocalAccountId, Owner, Store, local_ids, source, testing::new_source, timeline::Viewer,
};

use crate::world::{START_MS, World, on_both, post};

const ANN: LocalAccountId = LocalAccountId::new(1 << 50);
const BOB: LocalAccountId = LocalAccountId::new(2 << 50);

fn add(store: &Store, owner: Owner, origin: &str, audience: Audience) -> World {
    let new = source::NewSource {
        owner,
        audience,
        origin: origin.to_owned(),
        ..match owner {
            Owner::Operator => new_source("public"),
            Owner::Account(account) => new_source(&format!("account{account}/own")),
        }
    };
    let added = store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, START_MS));
    World::of(store, added.expect("a write").expect("a free name"))
}

fn set_audience(world: &World, audience: Audience) {
    let key = world.source;
    let set = world.store.write_blocking(source::root(key), move |tx| {
        source::set_audience(tx, key, audience)
    });
    set.expect("a write");
}

fn shown(world: &World, viewer: Viewer) -> Vec<String> {
    let posts = world.timeline_for(viewer).into_iter();
    posts.map(|post| post.upstream_id).collect()
}

#[test]
fn the_world_is_shown_posts_of_other_servers_only_by_these_servers() {
    on_both(|store| {
        for audience in [Audience::Public, Audience::Private] {
            let owner = Owner::Account(match audience {
                Audience::Public => ANN,
                _ => BOB,
            });
            let mut own = add(store, owner, "https://own.example", audience);
            let mut of_own = post(1, "mine");
            of_own.uri = Some("https://own.example/statuses/1".to_owned());
            // Made up: its server is another one.
            own.poll(vec![post(2, "made up"), of_own]);
            set_audience(&own, Audience::Public);
            assert_eq!(shown(&own, Viewer::Anonymous), ["1"]);
            assert_eq!(shown(&own, Viewer::Account(BOB)), ["2", "1"]);
            set_audience(&own, Audience::Private);
            assert!(shown(&own, Viewer::Anonymous).is_empty());
            set_audience(&own, Audience::Public);
        }
        let world = |world: &World| -> Vec<String> {
            world.public().into_iter().map(|post| post.raw).collect()
        };
        let mut theirs = add(
            store,
            Owner::Operator,
            "https://sim.example",
            Audience::Public,
        );
        assert_eq!(world(&theirs).len(), 1, "both copies of post 1 are one");
        theirs.poll(vec![post(2, "theirs")]);
        let shown = world(&theirs);
        assert_eq!(shown.len(), 2);
        assert!(shown[0].contains("theirs"), "{shown:?}");
    });
}

#[test]
fn the_operators_sources_show_the_world_what_they_have() {
    on_both(|store| {
        let mut world = add(
            store,
            Owner::Operator,
            "https://own.example",
            Audience::Public,
        );
        world.poll(vec![post(2, "of another server")]);
        assert_eq!(shown(&world, Viewer::Anonymous), ["2"]);
    });
}
