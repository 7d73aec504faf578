//! Sources of one server, of which two are read with tokens. Servers show a token other posts than the world, and other
//! content. A replica of each source ends with what that source was shown, whatever the other ones were shown, and when.

use std::collections::BTreeMap;

use driftline_core::{
    answer::LookUp,
    names::audience::Audience,
    post::{Post, Visibility},
    rng::Rng,
};
use driftline_store::{Owner, Store, Viewer, refresh::LookupAnswer, sync::SourceLimits, timeline};

use super::{
    ALL, home, key, poll,
    replica::{MEMBER, OWNER, Replica, SourceReader, WORLD},
};
use crate::{
    audiences::ORIGINS,
    refresh::{HOUR_MS, MINUTE_MS, Workers},
    world::{ANN, BOB, EVERYTHING, World, edited, on_both, post, posts, relay, with},
};

on_both!(
    a_post_that_a_token_is_shown_narrowed_leaves_the_members,
    a_visibility_changes_with_the_content_of_its_source,
    an_edit_that_another_source_was_shown_comes_after_it_was_relayed,
    content_that_another_source_was_shown_does_not_come,
    a_source_that_goes_leaves_its_last_content,
    a_source_that_goes_leaves_the_last_edit,
    an_audience_that_changes_is_told_to_the_other_sources,
    the_tokens_of_one_scope_do_not_take_turns,
    a_token_that_is_behind_an_edit_stays_behind,
    a_post_that_returns_for_one_token_has_ended_for_the_world,
    members_are_shown_narrowed_content_nowhere,
);

/// A source of the same server, read with a token of its own.
fn with_token(store: &Store, name: &str, audience: Audience) -> World {
    World::with_token(store, name, ORIGINS[0], Owner::Account(ANN), audience)
}

/// The world's source, and one with a token. Both were shown the same two posts.
fn world_and(store: &Store, name: &str, audience: Audience) -> (World, World) {
    let mut world = home(store);
    let mut other = with_token(store, name, audience);
    world.poll(posts([2, 1]));
    poll_also(&mut other, &world, posts([2, 1]));
    (world, other)
}

/// Polls another source at the time of the first one.
fn poll_also(world: &mut World, of: &World, listed: Vec<Post>) {
    world.now_ms = of.now_ms;
    poll(world, listed);
}

/// Two lists of lines: of the posts that a replica has, and of those that its reader is shown, by what a device is told of them.
fn difference(replica: &Replica, world: &World) -> (Vec<String>, Vec<String>) {
    let own = replica.posts.iter();
    let shown = replica.by.shown(world);
    let line = |(key, post): (&String, &driftline_store::timeline::TimelinePost)| {
        format!(
            "{key} at {} {:?} {:?} {}",
            post.id, post.visibility, post.edited_at_ms, post.raw
        )
    };
    (own.map(line).collect(), shown.iter().map(line).collect())
}

fn assert_same(replica: &Replica, world: &World) {
    let (own, shown) = difference(replica, world);
    assert_eq!(own, shown, "{:?}", replica.by);
}

fn unlisted(id: u64) -> Post {
    with(Visibility::Unlisted, post(id, "text"))
}

fn a_post_that_a_token_is_shown_narrowed_leaves_the_members(store: &Store) {
    let (world, mut members) = world_and(store, "members", Audience::Members);
    let mut replicas = [OWNER, MEMBER].map(|by| Replica::complete(&members, by));
    let mut worlds = Replica::complete(&world, MEMBER);
    poll_also(
        &mut members,
        &world,
        vec![super::private(2, "text"), post(1, "text")],
    );
    let gone = replicas.each_mut().map(|replica| {
        let chunks = replica.catch_up(&members, ALL);
        assert_same(replica, &members);
        assert_eq!(replica.by.count(&members), replica.posts.len() as u64);
        chunks.iter().map(|chunk| chunk.gone.len()).sum::<usize>()
    });
    assert_eq!(gone, [0, 1]);
    assert_eq!(replicas[0].posts[&key(2)].visibility, Visibility::Private);
    // The world is shown it still.
    relay(&[&world, &members]);
    worlds.catch_up(&world, ALL);
    assert_same(&worlds, &world);
    assert_eq!((worlds.posts.len(), MEMBER.count(&world)), (2, 2));
}

fn a_visibility_changes_with_the_content_of_its_source(store: &Store) {
    let (mut world, mut friends) = world_and(store, "friends", Audience::Private);
    let mut replica = Replica::complete(&friends, OWNER);
    let mut worlds = Replica::complete(&world, OWNER);
    let mut check = |friends: &World, world: &World| {
        for (replica, world) in [(&mut replica, friends), (&mut worlds, world)] {
            replica.catch_up(world, ALL);
            assert_same(replica, world);
        }
        [&replica, &worlds].map(|of| of.posts[&key(2)].visibility)
    };
    use Visibility::{Public, Unlisted};
    poll_also(&mut friends, &world, vec![unlisted(2), post(1, "text")]);
    assert_eq!(check(&friends, &world), [Unlisted, Public]);
    poll_also(&mut world, &friends, vec![unlisted(2), post(1, "text")]);
    assert_eq!(check(&friends, &world), [Unlisted, Unlisted]);
    poll_also(&mut friends, &world, posts([2, 1]));
    assert_eq!(check(&friends, &world), [Public, Unlisted]);
    poll_also(&mut world, &friends, posts([2, 1]));
    assert_eq!(check(&friends, &world), [Public, Public]);
}

fn an_edit_that_another_source_was_shown_comes_after_it_was_relayed(store: &Store) {
    let (mut world, members) = world_and(store, "members", Audience::Members);
    let mut replica = Replica::complete(&members, MEMBER);
    poll_also(
        &mut world,
        &members,
        vec![edited(2, "edited", 5), post(1, "text")],
    );
    relay(&[&world, &members]);
    let chunks = replica.catch_up(&members, ALL);
    assert_eq!(chunks[0].entries.len(), 1);
    assert_same(&replica, &members);
    assert!(replica.posts[&key(2)].raw.contains("edited"));
    // Each has it once.
    relay(&[&world, &members]);
    assert!(!replica.has_news(&members));
}

fn content_that_another_source_was_shown_does_not_come(store: &Store) {
    let mut world = home(store);
    world.poll(posts([2, 1]));
    let mut replicas = [OWNER, WORLD].map(|by| Replica::complete(&world, by));
    let mut friends = with_token(store, "friends", Audience::Private);
    poll_also(
        &mut friends,
        &world,
        vec![post(2, "text"), post(1, "to friends")],
    );
    relay(&[&world, &friends]);
    for replica in &mut replicas {
        assert!(!replica.has_news(&world));
        replica.catch_up(&world, ALL);
        assert_same(replica, &world);
        assert!(!replica.posts[&key(1)].raw.contains("friends"));
    }
    let friends_replica = Replica::complete(&friends, OWNER);
    assert!(friends_replica.posts[&key(1)].raw.contains("friends"));
}

/// The content of the world's source is that of the store's post, until that source is removed.
fn a_source_that_goes_leaves_its_last_content(store: &Store) {
    let (world, mut members) = world_and(store, "members", Audience::Members);
    poll_also(
        &mut members,
        &world,
        vec![super::private(2, "text"), unlisted(1)],
    );
    let mut replicas = [OWNER, MEMBER].map(|by| Replica::complete(&members, by));
    world.remove(driftline_store::source::LastPosts::Remove);
    for replica in &mut replicas {
        assert!(!replica.has_news(&members));
        assert_same(replica, &members);
    }
    let listed = members.public();
    assert_eq!(listed, Vec::new());
}

/// The source with a token has content from before an edit that the world was shown.
fn a_source_that_goes_leaves_the_last_edit(store: &Store) {
    let (mut world, mut members) = world_and(store, "members", Audience::Members);
    poll_also(
        &mut members,
        &world,
        vec![post(2, "for members"), post(1, "text")],
    );
    poll_also(
        &mut world,
        &members,
        vec![edited(2, "edited", 5), post(1, "text")],
    );
    relay(&[&world, &members]);
    let mut replica = Replica::complete(&members, MEMBER);
    assert!(replica.posts[&key(2)].raw.contains("edited"));
    world.remove(driftline_store::source::LastPosts::Remove);
    relay(&[&members]);
    replica.catch_up(&members, ALL);
    assert_same(&replica, &members);
    assert!(replica.posts[&key(2)].raw.contains("edited"));
}

fn an_audience_that_changes_is_told_to_the_other_sources(store: &Store) {
    let mut friends = with_token(store, "friends", Audience::Private);
    let mut members = with_token(store, "members", Audience::Members);
    friends.poll(vec![post(2, "to friends"), post(1, "text")]);
    poll_also(
        &mut members,
        &friends,
        vec![post(2, "for members"), post(1, "text")],
    );
    let mut replica = Replica::complete(&members, MEMBER);
    let follow = |replica: &mut Replica, members: &World| {
        relay(&[&friends, members]);
        replica.catch_up(members, ALL);
        assert_same(replica, members);
    };
    friends.set_audience(Audience::Members);
    follow(&mut replica, &members);
    members.set_audience(Audience::Private);
    let mut owners = Replica::complete(&members, OWNER);
    members.now_ms += MINUTE_MS;
    poll(&mut members, vec![post(2, "for members"), post(1, "text")]);
    follow(&mut owners, &members);
    assert!(owners.posts[&key(2)].raw.contains("for members"));
}

/// Two accounts share the sources that their tokens read. One server shows each token its own content.
fn the_tokens_of_one_scope_do_not_take_turns(store: &Store) {
    let mut sources = [ANN, BOB].map(|owner| {
        let owner = Owner::Account(owner);
        World::with_token(store, "members", ORIGINS[0], owner, Audience::Members)
    });
    let mut usns = Vec::new();
    for turn in 0..4 {
        for (at, source) in sources.iter_mut().enumerate() {
            source.now_ms += MINUTE_MS;
            source.poll(vec![
                edited(2, &format!("edited, for token {at}"), 5),
                post(1, &format!("for token {at}")),
            ]);
        }
        relay(&sources.each_ref());
        if turn > 0 {
            usns.push(sources.each_ref().map(|source| source.usns()));
        }
    }
    assert_eq!(usns[0], usns[1]);
    assert_eq!(usns[1], usns[2]);
}

fn a_token_that_is_behind_an_edit_stays_behind(store: &Store) {
    let mut members = with_token(store, "members", Audience::Members);
    let mut friends = with_token(store, "friends", Audience::Private);
    members.poll(vec![edited(1, "the first edit", 5)]);
    poll_also(&mut friends, &members, vec![edited(1, "to friends", 5)]);
    poll_also(&mut members, &friends, vec![edited(1, "the last edit", 10)]);
    relay(&[&members, &friends]);
    let before = friends.usns();
    for _ in 0..2 {
        poll_also(&mut friends, &members, vec![edited(1, "to friends", 5)]);
        relay(&[&members, &friends]);
        assert_eq!(friends.usns(), before);
    }
    let replica = Replica::complete(&friends, OWNER);
    assert!(replica.posts[&key(1)].raw.contains("the last edit"));
}

fn a_post_that_returns_for_one_token_has_ended_for_the_world(store: &Store) {
    let (world, mut friends) = world_and(store, "friends", Audience::Private);
    let mut replicas = [MEMBER, WORLD].map(|by| Replica::complete(&world, by));
    let mut owners = Replica::complete(&friends, OWNER);
    let workers = Workers::of(&world);
    friends.now_ms += HOUR_MS;
    workers.refresh(&[(2, LookupAnswer::Gone)], friends.now_ms);
    poll(&mut friends, posts([2, 1]));
    relay(&[&world, &friends]);
    for replica in &mut replicas {
        replica.catch_up(&world, ALL);
        assert_same(replica, &world);
        assert_eq!(replica.posts.len(), 1);
    }
    owners.catch_up(&friends, ALL);
    assert_same(&owners, &friends);
    assert_eq!(owners.posts.len(), 2);
}

fn members_are_shown_narrowed_content_nowhere(store: &Store) {
    let (world, mut members) = world_and(store, "members", Audience::Members);
    poll_also(
        &mut members,
        &world,
        vec![super::private(2, "secret"), post(1, "text")],
    );
    let post_id = MEMBER.shown(&world)[&key(2)].post_id;
    for viewer in [Viewer::Account(BOB), Viewer::Anonymous] {
        let public = world.read(move |tx| timeline::public(tx, &EVERYTHING, viewer));
        let status = world.read(move |tx| timeline::status(tx, post_id, viewer));
        let shown: Vec<String> = public
            .into_iter()
            .chain(status)
            .map(|post| post.raw)
            .collect();
        assert_eq!(shown.len(), 3, "{viewer:?}");
        assert!(!shown.concat().contains("secret"), "{viewer:?}");
    }
    assert!(OWNER.shown(&members)[&key(2)].raw.contains("secret"));
}

/// A server that shows the world, and each of two tokens, its posts.
struct Server {
    rng: Rng,
    turn: u64,
    posts: BTreeMap<u64, Post>,
}

impl Server {
    fn below(&mut self, bound: usize) -> usize {
        (self.rng.share() * bound as f64) as usize
    }

    fn step(&mut self, now_ms: i64) {
        self.turn += 1;
        let at = self.below(1 + self.posts.len());
        let id = self.posts.keys().nth(at).copied();
        let all = [
            Visibility::Public,
            Visibility::Public,
            Visibility::Unlisted,
            Visibility::Private,
        ];
        let visibility = all[self.below(all.len())];
        let text = format!("turn {}", self.turn);
        match (self.below(8), id) {
            (0..=2, _) | (_, None) => {
                let new = with(visibility, post(self.turn, &text));
                self.posts.insert(self.turn, new);
            }
            (3 | 4, Some(id)) => {
                if let Some(post) = self.posts.get_mut(&id) {
                    post.visibility = visibility;
                }
            }
            (5, Some(id)) => {
                self.posts.remove(&id);
            }
            (edit, Some(id)) => {
                if let Some(old) = self.posts.get_mut(&id) {
                    let edited_at_ms = match edit {
                        6 => Some(now_ms),
                        _ => old.edited_at_ms,
                    };
                    *old = Post {
                        edited_at_ms,
                        ..with(old.visibility, post(id, &text))
                    };
                }
            }
        }
    }

    /// The posts that the world is shown, or one of the tokens, the newest first.
    fn page(&self, token: usize) -> Vec<Post> {
        let posts = self.posts.iter().rev();
        let shown = posts.filter(|(_, post)| {
            token > 0 || post.visibility.narrowness() <= Visibility::Unlisted.narrowness()
        });
        let version = |(id, found): (&u64, &Post)| {
            let mut found = found.clone();
            if token > 0 && (id + token as u64).is_multiple_of(4) {
                found.raw = found.raw.replace("turn", &format!("for {token}: turn"));
            }
            found
        };
        shown.map(version).collect()
    }
}

/// Looks up what a source has and its server does not list any more, and polls.
fn follow(world: &mut World, server: &Server, token: usize, now_ms: i64) {
    world.now_ms = now_ms;
    let page = server.page(token);
    for id in OWNER
        .shown(world)
        .into_values()
        .map(|post| post.upstream_id)
    {
        if !page.iter().any(|post| post.id.as_str() == id) {
            let is_there = server.posts.contains_key(&id.parse().expect("a number"));
            let answer = match is_there {
                true => LookUp::Hidden,
                false => LookUp::Gone,
            };
            world.look_up(&id, answer);
        }
    }
    poll(world, page);
}

#[test]
fn replicas_end_with_what_their_source_was_shown() {
    let seeds = match std::env::var("DRIFTLINE_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (1..=6).collect(),
    };
    for seed in seeds {
        eprintln!("DRIFTLINE_SEED={seed}");
        on_both(|store| replicas_of_three(store, seed));
    }
}

fn replicas_of_three(store: &Store, seed: u64) {
    let mut server = Server {
        rng: Rng::new(seed),
        turn: 0,
        posts: BTreeMap::new(),
    };
    let mut worlds = [
        home(store),
        with_token(store, "members", Audience::Members),
        with_token(store, "friends", Audience::Private),
    ];
    for world in &mut worlds[1..] {
        world.poll(Vec::new());
    }
    let readers: [(usize, SourceReader); 6] = [
        (0, OWNER),
        (0, MEMBER),
        (0, WORLD),
        (1, OWNER),
        (1, MEMBER),
        (2, OWNER),
    ];
    let mut replicas: Vec<(usize, Replica)> = Vec::new();
    replicas.extend(readers.map(|(at, by)| (at, Replica::from_start(by))));
    let mut now_ms = worlds[0].now_ms;
    let relay_all = |worlds: &[World; 3]| relay(&worlds.each_ref());
    for _ in 0..50 {
        now_ms += 5 * MINUTE_MS;
        server.step(now_ms);
        let at = server.below(4);
        if let Some(world) = worlds.get_mut(at) {
            follow(world, &server, at, now_ms);
        }
        if server.below(3) == 0 {
            relay_all(&worlds);
        }
        if server.below(8) == 0 {
            let (at, by) = readers[server.below(readers.len())];
            replicas.push((at, Replica::begin_full(&worlds[at], by)));
        }
        for (at, replica) in &mut replicas {
            if server.below(2) == 0 {
                let limits = SourceLimits::new(1 + server.below(4) as u32);
                replica.pull(&worlds[*at], limits);
            }
        }
    }
    for (at, world) in worlds.iter_mut().enumerate() {
        now_ms += 5 * MINUTE_MS;
        follow(world, &server, at, now_ms);
    }
    relay_all(&worlds);
    for (at, replica) in &mut replicas {
        let world = &worlds[*at];
        replica.catch_up(world, SourceLimits::new(3));
        let (own, shown) = difference(replica, world);
        assert_eq!(own, shown, "seed {seed}, source {at}: {:?}", replica.by);
        assert_eq!(replica.by.count(world), replica.posts.len() as u64);
        assert!(!replica.has_news(world), "seed {seed}");
        for post in server.page(*at) {
            let own = replica
                .posts
                .get(&key(post.id.as_str().parse().expect("a number")));
            match own {
                Some(own) => assert_eq!((own.visibility, &own.raw), (post.visibility, &post.raw)),
                // A post that was narrowed stays hidden at its place.
                None => assert!(replica.by != OWNER, "seed {seed}: {}", post.id),
            }
        }
        assert!(!replica.posts.is_empty(), "seed {seed}");
    }
}
