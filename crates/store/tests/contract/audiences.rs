//! Whose sources are, who may read them, and where readers find their posts.

use std::collections::{HashMap, HashSet};

use driftline_core::{
    answer::Event,
    feed::ChangeKind,
    names::audience::Audience,
    post::{Post, Visibility},
    timeline::Backfill,
};
use driftline_store::{
    LocalId, Owner, Store, change_feed,
    source::LastPosts,
    timeline::{self, HomeRule, Range, TimelinePost, Viewer},
    viewer::ReadableSources,
};
use rand::{RngExt as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

use crate::search;
use crate::world::{ANN, BOB, START_MS, World, names, on_both, page, post, with};

on_both!(
    what_is_shared_is_shared_at_once_and_hidden_at_once,
    an_author_is_known_to_those_who_may_read_a_post,
);

pub(crate) const ALL: Range = Range {
    since: None,
    min: None,
    max: None,
    limit: 1_000,
};

const OPERATOR: Owner = Owner::Operator;

/// The instance of all authors, and another one that shows copies of their posts.
pub(crate) const ORIGINS: [&str; 2] = ["https://sim.example", "https://other.example"];

fn add(store: &Store, name: &str, owner: Owner, audience: Audience) -> World {
    add_of(store, name, owner, audience, ORIGINS[0])
}

pub(crate) fn add_of(
    store: &Store,
    name: &str,
    owner: Owner,
    audience: Audience,
    origin: &str,
) -> World {
    let mut world = World::of_server(store, name, origin, owner, audience);
    world.settings.backfill = Backfill::Count(1_000);
    world
}

fn of(id: u64, visibility: Visibility) -> Post {
    with(visibility, post(id, "text"))
}

pub(crate) fn public(world: &World, viewer: Viewer) -> Vec<TimelinePost> {
    world.read(move |tx| timeline::public(tx, &ALL, viewer))
}

pub(crate) fn listed(world: &World, viewer: Viewer) -> Vec<TimelinePost> {
    let key = world.source;
    world.read(move |tx| timeline::source(tx, key, &ALL, viewer))
}

pub(crate) fn found(world: &World, id: LocalId, viewer: Viewer) -> bool {
    world
        .read(move |tx| timeline::status(tx, id, viewer))
        .is_some()
}

fn fill(world: &mut World, posts: Vec<Post>) {
    let request = world.fill();
    let answer = page(posts, world.now_ms);
    world.commit(&request, answer).expect("a commit");
}

#[test]
fn a_source_shows_each_reader_what_its_audience_says() {
    use Visibility::{Direct, Private, Public, Unlisted};
    let all = [Public, Unlisted, Private, Direct];
    let cases: [(Audience, [usize; 4]); 3] = [
        // How many of them are seen by the world, a member, the operator who does not own it, and its owner.
        (Audience::Private, [0, 0, 0, 4]),
        (Audience::Members, [0, 2, 2, 4]),
        (Audience::Public, [1, 2, 2, 4]),
    ];
    on_both(|store| {
        for (audience, seen) in cases {
            let owner = Owner::Account(ANN);
            let mut world = add(store, audience.name(), owner, audience);
            let first = 10 * audience as u64 + 1;
            let mut posts: Vec<Post> = (first..)
                .zip(all)
                .map(|(id, visibility)| of(id, visibility))
                .collect();
            posts.reverse();
            world.poll(posts);
            let viewers = [
                Viewer::Anonymous,
                Viewer::Account(BOB),
                Viewer::Operator,
                Viewer::Account(ANN),
            ];
            let ids: Vec<LocalId> = listed(&world, viewers[3])
                .iter()
                .map(|post| post.id)
                .collect();
            for (viewer, seen) in viewers.into_iter().zip(seen) {
                assert_eq!(
                    listed(&world, viewer).len(),
                    seen,
                    "{audience:?} {viewer:?}"
                );
                let by_id = ids.iter().filter(|id| found(&world, **id, viewer));
                assert_eq!(by_id.count(), seen, "{audience:?} {viewer:?}");
            }
        }
    });
}

fn what_is_shared_is_shared_at_once_and_hidden_at_once(store: &Store) {
    let mut home = add(store, "home", OPERATOR, Audience::Private);
    let mut other = add(store, "other", OPERATOR, Audience::Public);
    home.poll(vec![
        of(4, Visibility::Public),
        of(3, Visibility::Unlisted),
        of(2, Visibility::Public),
        of(1, Visibility::Public),
    ]);
    other.poll(vec![of(2, Visibility::Public)]);
    let before = public(&home, Viewer::Anonymous);
    assert_eq!(names(&before), ["2"]);
    home.set_audience(Audience::Public);
    let shared = public(&home, Viewer::Anonymous);
    let mut ids: Vec<_> = shared.iter().map(|post| &*post.upstream_id).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["1", "2", "4"]);
    // What the world had stays where it was.
    assert!(shared.contains(&before[0]));
    home.set_audience(Audience::Members);
    assert_eq!(public(&home, Viewer::Anonymous), before);
    let bobs = public(&home, Viewer::Account(BOB));
    assert_eq!(bobs.len(), 3);
    home.set_audience(Audience::Private);
    assert_eq!(public(&home, Viewer::Account(BOB)), before);
    assert_eq!(listed(&home, Viewer::Account(BOB)), []);
    // What comes while it is hidden is shown with the rest.
    home.poll(vec![of(5, Visibility::Public), of(4, Visibility::Public)]);
    assert_eq!(public(&home, Viewer::Anonymous), before);
    home.set_audience(Audience::Public);
    assert_eq!(public(&home, Viewer::Anonymous).len(), 4);
    home.remove(LastPosts::Remove);
    assert_eq!(public(&other, Viewer::Anonymous), before);
}

/// What a test's model knows of an entry: in the order in which they came.
struct Came {
    source: usize,
    post: u64,
}

struct Case {
    rng: ChaCha8Rng,
    worlds: Vec<World>,
    owners: Vec<Owner>,
    audiences: Vec<Audience>,
    came: Vec<Came>,
    visibilities: HashMap<u64, Visibility>,
    newest: u64,
    oldest: Vec<u64>,
    /// How many entries had come when a post was deleted at an instance.
    deleted: HashMap<(usize, u64), usize>,
    seen: HashMap<Viewer, HashMap<String, LocalId>>,
    clients: HashMap<Viewer, Client>,
    /// Up to which changes of each source are known.
    usns: Vec<i64>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    /// A page of a source, or a deletion, with the posts that came live.
    Page(usize, HashSet<String>),
    Audience,
}

/// A reader that knows a timeline by its pages alone.
#[derive(Default)]
struct Client {
    /// Asked for what is above it, and nothing else.
    newest: Option<LocalId>,
    known: HashSet<String>,
    /// How far down a pass through all pages has come, what it has shown, and what was there all the while.
    cursor: Option<LocalId>,
    passed: HashSet<LocalId>,
    there: HashSet<LocalId>,
}

impl Client {
    /// Of a timeline that it has seen as it is now.
    fn of(shown: &[TimelinePost]) -> Client {
        Client {
            newest: shown.first().map(|post| post.id),
            known: shown.iter().map(|post| post.upstream_id.clone()).collect(),
            there: shown.iter().map(|post| post.id).collect(),
            ..Client::default()
        }
    }

    /// Asks for what is new.
    fn poll(&mut self, read: impl Fn(Range) -> Vec<TimelinePost>) {
        let new = read(Range {
            since: self.newest,
            ..ALL
        });
        self.newest = new.first().map(|post| post.id).or(self.newest);
        self.known
            .extend(new.into_iter().map(|post| post.upstream_id));
    }

    /// Reads one more page downward.
    fn page(&mut self, now: &[LocalId], read: impl Fn(Range) -> Vec<TimelinePost>) {
        self.there.retain(|id| now.contains(id));
        let page = read(Range {
            max: self.cursor,
            limit: 3,
            ..ALL
        });
        for post in &page {
            assert!(self.passed.insert(post.id), "{} is shown twice", post.id);
        }
        self.cursor = page.last().map(|post| post.id);
        if page.is_empty() {
            assert!(self.there.is_subset(&self.passed), "a pass skips a post");
            (self.passed, self.there) = (HashSet::new(), now.iter().copied().collect());
        }
    }
}

const VIEWERS: [fn() -> Viewer; 4] = [
    || Viewer::Anonymous,
    || Viewer::Operator,
    || Viewer::Account(ANN),
    || Viewer::Account(BOB),
];

impl Case {
    fn new(store: &Store, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut worlds = Vec::new();
        let (mut owners, mut audiences) = (Vec::new(), Vec::new());
        for n in 0..5 {
            let all = [OPERATOR, Owner::Account(ANN), Owner::Account(BOB)];
            let owner = *all.choose(&mut rng).expect("one");
            let audience = any_audience(&mut rng);
            let (name, origin) = (format!("source{seed}-{n}"), ORIGINS[instance_of(n)]);
            worlds.push(add_of(store, &name, owner, audience, origin));
            owners.push(owner);
            audiences.push(audience);
        }
        let oldest = vec![0; worlds.len()];
        Self {
            rng,
            worlds,
            owners,
            audiences,
            came: Vec::new(),
            visibilities: HashMap::new(),
            newest: 500,
            oldest,
            deleted: HashMap::new(),
            seen: HashMap::new(),
            clients: HashMap::new(),
            usns: vec![0; 5],
        }
    }

    fn post(&mut self, at: usize, id: u64) -> Post {
        let all = [
            Visibility::Public,
            Visibility::Public,
            Visibility::Public,
            Visibility::Unlisted,
            Visibility::Private,
        ];
        let drawn = *all.choose(&mut self.rng).expect("one");
        let visibility = *self.visibilities.entry(id).or_insert(drawn);
        let mut shown = of(id, visibility);
        shown.author.acct = "ann@sim.example".to_owned();
        // Each is older than its neighbour above, and than all sources.
        shown.created_at_ms = Some(START_MS - 1_000_000 + id.cast_signed() * 1_000);
        shown.raw = post(id, ORIGINS[instance_of(at)]).raw;
        shown
    }

    fn step(&mut self) -> Step {
        let at = self.rng.random_range(0..self.worlds.len());
        let Some(at) = self.change(at) else {
            return Step::Audience;
        };
        let (source, usn) = (self.worlds[at].source, self.usns[at]);
        let page = self.worlds[at].read(move |tx| change_feed::after(tx, source, usn, 1_000));
        self.usns[at] = page.end;
        let new = page.changes.into_iter();
        let live = new.filter(|change| change.kind == ChangeKind::New && !change.is_history);
        Step::Page(at, live.map(|change| change.row.post.upstream_id).collect())
    }

    /// Changes a source; returns it, unless it is the audience that has changed.
    fn change(&mut self, at: usize) -> Option<usize> {
        let is_new = self.oldest[at] == 0;
        match self.rng.random_range(0..11) {
            10 if !self.came.is_empty() => {
                let Came { source, post } = *self.came.choose(&mut self.rng).expect("one");
                let instance = instance_of(source);
                self.worlds[source].stream(vec![Event::Deleted(post.to_string().as_str().into())]);
                let came = self.came.len();
                self.deleted.entry((instance, post)).or_insert(came);
                self.note(source, &[]);
                Some(source)
            }
            0 => {
                let audience = any_audience(&mut self.rng);
                self.worlds[at].set_audience(audience);
                self.audiences[at] = audience;
                None
            }
            1..=3 if !is_new && self.oldest[at] > 40 => {
                let ids = self.below(at);
                let posts = ids.iter().map(|id| self.post(at, *id)).collect();
                fill(&mut self.worlds[at], posts);
                self.note(at, &ids);
                Some(at)
            }
            // A source's first page is history, too.
            _ if is_new => {
                self.oldest[at] = self.newest + 1;
                let ids = self.below(at);
                let posts = ids.iter().map(|id| self.post(at, *id)).collect();
                self.worlds[at].poll(posts);
                self.note(at, &ids);
                Some(at)
            }
            _ => {
                self.newest += self.rng.random_range(0..4);
                let span = self.newest.saturating_sub(6)..=self.newest;
                let ids: Vec<u64> = span.filter(|_| self.rng.random_bool(0.7)).rev().collect();
                let ids: Vec<u64> = ids
                    .into_iter()
                    .filter(|id| self.is_alive(at, *id))
                    .collect();
                let posts = ids.iter().map(|id| self.post(at, *id)).collect();
                let new: Vec<u64> = ids
                    .iter()
                    .copied()
                    .filter(|id| !self.has(at, *id))
                    .collect();
                self.worlds[at].poll(posts);
                self.note(at, &new);
                Some(at)
            }
        }
    }

    /// Some posts below all that a source has, the newest first.
    fn below(&mut self, at: usize) -> Vec<u64> {
        let end = self.oldest[at];
        let span = end.saturating_sub(8).max(1)..end;
        let ids: Vec<u64> = span.filter(|_| self.rng.random_bool(0.7)).rev().collect();
        let new = ids.into_iter().filter(|id| !self.has(at, *id));
        new.filter(|id| self.is_alive(at, *id)).collect()
    }

    /// Whether a post is not deleted at the instance of a source.
    fn is_alive(&self, at: usize, id: u64) -> bool {
        !self.deleted.contains_key(&(instance_of(at), id))
    }

    fn has(&self, at: usize, id: u64) -> bool {
        self.came
            .iter()
            .any(|came| came.source == at && came.post == id)
    }

    fn note(&mut self, at: usize, ids: &[u64]) {
        for id in ids {
            self.oldest[at] = self.oldest[at].min(*id);
            let (source, post) = (at, *id);
            self.came.push(Came { source, post });
        }
        // Ends and arrivals are compared, so all processes have one clock here.
        let now_ms = self.worlds.iter().map(|world| world.now_ms).max();
        for world in &mut self.worlds {
            world.now_ms = now_ms.unwrap_or_default() + 1_000;
        }
    }

    fn shows(&self, source: usize, viewer: Viewer) -> Option<Visibility> {
        self.audiences[source].shows(viewer.reader(self.owners[source]))
    }

    /// Searches find what a timeline of all sources has, at its places and with its copies.
    fn check_searches(&self, store: &Store, index: u32) {
        search::index(store, index);
        for viewer in VIEWERS {
            let viewer = viewer();
            let all = self.worlds[0].read(move |tx| {
                let readable = ReadableSources::load(tx, viewer)?;
                let takes = HomeRule {
                    sources: readable.keys().iter().map(|source| source.id).collect(),
                    authors: Vec::new(),
                };
                timeline::home(tx, &ALL, &readable, &takes, None)
            });
            for word in ["sim.example", "example"] {
                let mut expected = all.posts.clone();
                expected.retain(|post| post.raw.contains(word));
                assert_eq!(
                    search::find(store, word, ALL, viewer),
                    expected,
                    "{viewer:?} {word}"
                );
            }
        }
    }

    /// What a viewer's public timeline has, and which instance's copy of each it shows.
    fn expected(&self, viewer: Viewer) -> HashMap<String, usize> {
        let mut expected = HashMap::new();
        for came in &self.came {
            let is_public = self.visibilities[&came.post] == Visibility::Public;
            let is_there = is_public && self.is_alive(came.source, came.post);
            if is_there && self.shows(came.source, viewer).is_some() {
                let instance = instance_of(came.source);
                let best = expected.entry(came.post.to_string()).or_insert(instance);
                *best = instance.min(*best);
            }
        }
        expected
    }

    fn check(&mut self, step: &Step) {
        let mut of_sources: HashMap<(usize, LocalId), (u64, Visibility)> = HashMap::new();
        for (at, world) in self.worlds.iter().enumerate() {
            let owner = match self.owners[at] {
                Owner::Operator => Viewer::Operator,
                Owner::Account(id) => Viewer::Account(id),
            };
            for post in listed(world, owner) {
                let id: u64 = post.upstream_id.parse().expect("a number");
                of_sources.insert((at, post.id), (id, post.visibility));
            }
        }
        for viewer in VIEWERS {
            let viewer = viewer();
            let shown = public(&self.worlds[0], viewer);
            let ids: Vec<LocalId> = shown.iter().map(|post| post.id).collect();
            assert!(ids.is_sorted_by(|newer, older| newer > older), "{ids:?}");
            let now: HashMap<String, LocalId> = shown
                .iter()
                .map(|post| (post.upstream_id.clone(), post.id))
                .collect();
            let expected = self.expected(viewer);
            let copies = shown.iter().map(|post| {
                let instance = ORIGINS.iter().position(|origin| post.raw.contains(origin));
                (post.upstream_id.clone(), instance.expect("an instance"))
            });
            assert_eq!(copies.collect::<HashMap<_, _>>(), expected, "{viewer:?}");
            let before = self.seen.insert(viewer, now.clone()).unwrap_or_default();
            let mut client = self.clients.remove(&viewer).unwrap_or_default();
            if let Step::Page(at, live) = step {
                let high = before.values().max();
                for (post, id) in now
                    .iter()
                    .filter(|(post, id)| before.get(*post) != Some(*id))
                {
                    // Live posts stand above all that readers have passed, also if they were there as history.
                    let (is_live, was) = (live.contains(post), before.get(post));
                    assert!(
                        is_live || was.is_none(),
                        "{viewer:?}: {post} moved from {was:?} to {id}"
                    );
                    let is_above = high.is_none_or(|high| id > high);
                    assert!(!is_live || is_above, "{viewer:?}: {post} came between");
                }
                let read =
                    |range| self.worlds[0].read(move |tx| timeline::public(tx, &range, viewer));
                client.poll(read);
                client.page(&ids, read);
                if self.shows(*at, viewer).is_some() {
                    for post in live.iter().filter(|post| now.contains_key(*post)) {
                        assert!(
                            client.known.contains(post),
                            "{viewer:?} was not told of {post}"
                        );
                    }
                }
            } else {
                client = Client::of(&shown);
            }
            self.clients.insert(viewer, client);
            // What a viewer may not read is not there, whoever names it.
            let readable: HashSet<LocalId> = of_sources
                .iter()
                .filter(|((at, _), (_, visibility))| {
                    let shows = self.shows(*at, viewer);
                    shows.is_some_and(|shows| visibility.narrowness() <= shows.narrowness())
                })
                .map(|((_, id), _)| *id)
                .chain(ids.iter().copied())
                .collect();
            for (_, id) in of_sources.keys() {
                let is_readable = readable.contains(id);
                assert_eq!(
                    found(&self.worlds[0], *id, viewer),
                    is_readable,
                    "{viewer:?} {id}"
                );
            }
        }
    }
}

/// Every other source is of the instance that shows copies.
fn instance_of(source: usize) -> usize {
    source % ORIGINS.len()
}

fn any_audience(rng: &mut impl rand::Rng) -> Audience {
    let all = [Audience::Private, Audience::Members, Audience::Public];
    *all.choose(rng).expect("one")
}

#[test]
fn places_last_and_hidden_posts_stay_hidden() {
    let seeds = match std::env::var("DRIFTLINE_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => vec![1, 2],
    };
    on_both(|store| {
        for seed in &seeds {
            eprintln!("DRIFTLINE_SEED={seed}");
            let mut case = Case::new(store, *seed);
            for step in 0..25 {
                // The index is now behind the commits, now level with them.
                let index = 3 * (step % 5);
                let step = case.step();
                case.check(&step);
                case.check_searches(store, index);
            }
            for world in &case.worlds {
                world.remove(LastPosts::Remove);
            }
            assert_eq!(public(&case.worlds[0], Viewer::Operator), []);
        }
    });
}

fn an_author_is_known_to_those_who_may_read_a_post(store: &Store) {
    let mut hidden = add(store, "hidden", Owner::Account(ANN), Audience::Private);
    hidden.poll(vec![of(1, Visibility::Public)]);
    let post = &listed(&hidden, Viewer::Account(ANN))[0];
    let (author, post_id) = (post.account.expect("an author"), post.post_id);
    let is_known = |viewer| {
        let known = hidden.read(move |tx| timeline::known_authors(tx, &[author], viewer));
        known.contains(&author)
    };
    let place = |viewer| {
        let found = hidden.read(move |tx| timeline::at_its_place(tx, post_id, viewer));
        found.map(|found| found.id)
    };
    let all = [Viewer::Anonymous, Viewer::Operator, Viewer::Account(BOB)];
    assert!(is_known(Viewer::Account(ANN)));
    assert_eq!(place(Viewer::Account(ANN)), Some(post.id));
    assert!(
        all.iter()
            .all(|viewer| !is_known(*viewer) && place(*viewer).is_none())
    );
    hidden.set_audience(Audience::Members);
    assert!(is_known(Viewer::Account(BOB)) && !is_known(Viewer::Anonymous));
    assert_eq!(place(Viewer::Account(BOB)), Some(post.id));
    hidden.set_audience(Audience::Public);
    assert!(
        all.iter()
            .all(|viewer| is_known(*viewer) && place(*viewer).is_some())
    );
}
