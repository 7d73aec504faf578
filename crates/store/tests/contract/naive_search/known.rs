//! The posts that a test sends to a store, and what each viewer may know about them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
};

use driftline_core::{
    answer::Event,
    names::audience::Audience,
    post::{Author, Post, Visibility},
};
use driftline_mastodon::parse_time_ms;
use driftline_store::{
    Owner, SourceId, Store,
    timeline::{TimelinePost, Viewer},
};
use rand::RngExt as _;
use serde_json::json;

use super::{
    draw::{ALPHABETS, Draft, Draw},
    evaluator::{Fact, Forms, NaivePost},
};
use crate::{
    audiences::ORIGINS,
    world::{ANN, START_MS, World, hashed, owned_name, post},
};

/// The posts of one corpus.
pub(crate) struct Known {
    /// By their IDs at their instances.
    posts: HashMap<String, KnownPost>,
    /// The sources that have a post or a copy of it, by its URI: [`PUBLIC`] and [`PRIVATE`].
    holders: HashMap<String, BTreeSet<usize>>,
    /// The nicknames that each source shows of the authors now.
    current_names: [Vec<String>; 2],
    /// The nickname that a source has shown last of each author.
    nicknames: BTreeMap<(usize, usize), String>,
    corpus: usize,
    pub(crate) sources: [SourceId; 2],
}

struct KnownPost {
    draft: Draft,
    uri: String,
    /// The host of the server that shows it.
    via: &'static str,
    is_boost: bool,
}

/// The operator's source, which is public, and Ann's, which is not.
const PUBLIC: usize = 0;
const PRIVATE: usize = 1;
const POSTS: u64 = 30;
/// The author that is a bot.
const BOT: usize = 3;

impl Known {
    /// Adds the two sources of a corpus with their posts, and changes some of these.
    pub(crate) fn add(store: &Store, draw: &mut Draw, corpus: usize) -> Known {
        let owners = [
            (Owner::Operator, Audience::Public),
            (Owner::Account(ANN), Audience::Private),
        ];
        let mut worlds = [PUBLIC, PRIVATE].map(|source| {
            let (name, (owner, audience)) = (name(corpus, source), owners[source]);
            let mut world = World::of_server(
                store,
                &name,
                ORIGINS[instance(corpus, source)],
                owner,
                audience,
            );
            world.poll(Vec::new());
            world
        });
        let mut known = Known {
            posts: HashMap::new(),
            holders: HashMap::new(),
            current_names: Default::default(),
            nicknames: BTreeMap::new(),
            corpus,
            sources: worlds.each_ref().map(|world| world.source.id),
        };
        let drafts: Vec<Draft> = (0..POSTS).map(|_| draw.draft(corpus)).collect();
        let shares: Vec<u32> = drafts.iter().map(|_| draw.0.random_range(0..10)).collect();
        let mut polls: [(usize, Range<u64>, Range<u32>); 3] = [
            (PUBLIC, 0..POSTS / 2, 0..7),
            (PRIVATE, 0..POSTS, 5..10),
            (PUBLIC, POSTS / 2..POSTS, 0..7),
        ];
        for (time, (source, ids, shared)) in (1..).zip(&mut polls) {
            let names = (0..4).map(|_| draw.text(ALPHABETS[corpus], 4));
            known.current_names[*source] = names.collect();
            let ids = ids
                .rev()
                .filter(|id| shared.contains(&shares[*id as usize]));
            let posts = ids.map(|id| known.post(*source, id, &drafts[id as usize]));
            let posts = posts.collect();
            worlds[*source].now_ms = START_MS + 100_000 * corpus as i64 + 1_000 * time;
            worlds[*source].poll(posts);
        }
        for (source, world) in worlds.iter_mut().enumerate() {
            world.now_ms = START_MS + 100_000 * corpus as i64 + 5_000 + 1_000 * source as i64;
            for (id, draft) in (0..POSTS).zip(&drafts) {
                let is_there = known
                    .holders
                    .get(&known.uri(id, draft))
                    .is_some_and(|all| all.contains(&source));
                if is_there && !is_boost(id) && draw.is(25) {
                    let event = known.event(source, id, draft, draw, world.now_ms);
                    world.stream(vec![event]);
                }
            }
        }
        known
    }

    /// The deletion of a post, or an edit by its author.
    fn event(
        &mut self,
        source: usize,
        id: u64,
        draft: &Draft,
        draw: &mut Draw,
        now_ms: i64,
    ) -> Event {
        let upstream_id = self.upstream_id(source, id);
        if draw.is(20) {
            self.posts.remove(&upstream_id);
            let holders = self.holders.entry(self.uri(id, draft)).or_default();
            holders.retain(|other| instance(self.corpus, *other) != instance(self.corpus, source));
            return Event::Deleted(upstream_id.as_str().into());
        }
        let edited = draw.edited(self.corpus, draft);
        let edited_at_ms = Some(now_ms);
        let post = self.post(source, id, &edited);
        Event::Edited(Box::new(Post {
            edited_at_ms,
            ..post
        }))
    }

    /// The post as a source shows it.
    fn post(&mut self, source: usize, id: u64, draft: &Draft) -> Post {
        let (upstream_id, uri) = (self.upstream_id(source, id), self.uri(id, draft));
        let author = acct(self.corpus, draft.author);
        let nickname = self.current_names[source][draft.author].clone();
        // A server omits the host of its own accounts.
        let own_host = ORIGINS[instance(self.corpus, source)].replace("https://", "@");
        let shown_acct = author.trim_end_matches(&own_host).replace('n', "N");
        let account_id = format!("{}{}", self.corpus, draft.author);
        let account = json!({ "id": account_id, "acct": shown_acct, "bot": draft.author == BOT });
        let mut raw = draft.json(&upstream_id, &account);
        let mut boost_of = None;
        if is_boost(id) {
            let boosted = self.post(source, id + POSTS, &draft.by((draft.author + 1) % 4));
            let json: serde_json::Value = serde_json::from_str(&boosted.raw).expect("JSON");
            raw = json!({ "id": upstream_id, "account": account, "reblog": json });
            boost_of = Some(Box::new(boosted));
        }
        // A boosted post is in no source.
        if id < POSTS {
            self.nicknames
                .insert((source, draft.author), nickname.clone());
            self.holders.entry(uri.clone()).or_default().insert(source);
            let (draft, uri, is_boost) = (draft.clone(), uri.clone(), boost_of.is_some());
            let origin = ORIGINS[instance(self.corpus, source)];
            let known = KnownPost {
                draft,
                uri,
                via: origin.split_once("://").expect("an origin").1,
                is_boost,
            };
            self.posts.insert(upstream_id.clone(), known);
        }
        let author = Author {
            id: account_id.as_str().into(),
            acct: shown_acct,
            display_name: nickname,
            raw: account.to_string(),
            ..post(1, "").author
        };
        hashed(Post {
            uri: Some(uri),
            author,
            raw: raw.to_string(),
            visibility: draft.visibility,
            created_at_ms: draft.created.as_deref().and_then(parse_time_ms),
            boost_of,
            ..post(upstream_id, "")
        })
    }

    /// A post as a viewer may know it.
    pub(crate) fn as_shown(&self, post: &TimelinePost, viewer: Viewer) -> NaivePost {
        let KnownPost {
            draft,
            uri,
            via,
            is_boost,
        } = &self.posts[&post.upstream_id];
        let author = acct(self.corpus, draft.author);
        let host = author.split_once('@').expect("a host").1;
        let own = [
            (*is_boost, ("is", "boost")),
            (draft.author == BOT, ("is", "bot")),
            (true, ("author", &*author)),
            (true, ("instance", host)),
        ];
        let own = own.into_iter().filter(|(is_met, _)| *is_met);
        let own = own.map(|(_, (field, value))| Fact::new(field, value));
        let holders = self.holders[uri].iter();
        let holders = holders.filter(|source| shows(**source, viewer, draft.visibility));
        let sources = holders.flat_map(|source| source_names(self.corpus, *source, viewer));
        let sources = sources.map(|name| Fact::new("source", &name));
        let nicknames = self.nicknames.iter().filter(|((source, author), _)| {
            *author == draft.author && shows(*source, viewer, Visibility::Public)
        });
        let nicknames = nicknames.map(|(_, nickname)| nickname.clone());
        let entries = draft.entries().into_iter().chain(nicknames);
        NaivePost {
            id: post.id.raw(),
            created: draft.created.clone(),
            entries: entries.map(|entry| Forms::new(&entry)).collect(),
            facts: own.chain(sources).chain(draft.facts(via)).collect(),
        }
    }

    /// The texts of the corpus, of which queries have parts.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self
            .posts
            .values()
            .flat_map(|post| post.draft.entries())
            .collect();
        texts.extend(self.nicknames.values().cloned());
        // The posts have no order.
        texts.sort_unstable();
        texts
    }

    /// The authors and sources that queries name.
    pub(crate) fn values(&self) -> Vec<Fact> {
        let authors = (0..4).map(|author| Fact::new("author", &acct(self.corpus, author)));
        let sources =
            [PUBLIC, PRIVATE].map(|source| source_names(self.corpus, source, Viewer::Account(ANN)));
        authors
            .chain(
                sources
                    .concat()
                    .iter()
                    .map(|name| Fact::new("source", name)),
            )
            .collect()
    }

    fn upstream_id(&self, source: usize, id: u64) -> String {
        let id = 1_000_000 * instance(self.corpus, source) as u64
            + 1_000 * (self.corpus as u64 + 1)
            + id;
        id.to_string()
    }

    fn uri(&self, id: u64, draft: &Draft) -> String {
        let acct = acct(self.corpus, draft.author);
        let host = acct.split_once('@').expect("a host").1;
        format!("https://{host}/statuses/{}-{id}", self.corpus)
    }
}

/// The number of the instance that a source reads: another one for Ann's in every other corpus.
fn instance(corpus: usize, source: usize) -> usize {
    source * (corpus % 2)
}

fn is_boost(id: u64) -> bool {
    id < POSTS && id % 10 == 3
}

/// The name of an author, in lower case.
fn acct(corpus: usize, author: usize) -> String {
    let host = ["sim.example", "remote.example"][author / 2];
    format!("n{corpus}x{author}@{host}")
}

/// The name that the owner of a source has given it.
fn name(corpus: usize, source: usize) -> String {
    format!("{}{corpus}", ["public", "private"][source])
}

/// The names by which a viewer may find a source.
pub(crate) fn source_names(corpus: usize, source: usize, viewer: Viewer) -> Vec<String> {
    let own = name(corpus, source);
    match source {
        PUBLIC => vec![own],
        _ if viewer == Viewer::Account(ANN) => vec![owned_name(Owner::Account(ANN), &own), own],
        _ => Vec::new(),
    }
}

/// True if a source shows a viewer posts of this visibility.
fn shows(source: usize, viewer: Viewer, visibility: Visibility) -> bool {
    match viewer {
        _ if source == PRIVATE => viewer == Viewer::Account(ANN),
        Viewer::Operator => true,
        Viewer::Account(_) => visibility != Visibility::Private,
        Viewer::Anonymous => visibility == Visibility::Public,
    }
}
