//! Random searches in small corpora of many scripts find what a reader without an index finds: before the index has
//! read the posts, when it has read half of them, and after it has read all.

mod draw;
mod evaluator;
mod known;

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use driftline_core::predicate::{Folding, Matcher, NameContext, PostFacts, Predicate};
use driftline_db::testing::Fresh;
use driftline_mastodon::{StatedFacts, text_of_json};
use driftline_store::{
    LocalId, SourceId, StoreError, Tx, instance, search,
    testing::check_post_texts,
    timeline::{self, HomeRule, TimelinePost, Viewer},
    viewer::ReadableSources,
};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use self::{
    draw::{ALPHABETS, Draw},
    evaluator::{Fact, Query},
    known::Known,
};
use crate::{
    audiences::ALL,
    search::index,
    world::{ANN, names, open, read},
};

const VIEWERS: [Viewer; 3] = [Viewer::Operator, Viewer::Account(ANN), Viewer::Anonymous];
const QUERIES: usize = 100;

#[test]
fn naive_reader_agrees_with_searches_in_sqlite() {
    compare(&Fresh::sqlite());
}

#[test]
fn naive_reader_agrees_with_searches_in_postgres() {
    compare(&Fresh::postgres());
}

fn compare(fresh: &Fresh) {
    let seed: u64 =
        std::env::var("DRIFTLINE_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let store = open(fresh);
    let mut totals = Totals::default();
    for corpus in 0..ALPHABETS.len() {
        let label = format!("DRIFTLINE_SEED={seed}, corpus {corpus} in {}", fresh.name);
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(1_000 * seed + corpus as u64));
        let known = Known::add(&store, &mut draw, corpus);
        let sources = known.sources;
        let views =
            VIEWERS.map(|viewer| Arc::new(read(&store, move |tx| View::load(tx, sources, viewer))));
        let searches = searches(&mut draw, &known, corpus, &views);
        let searches: Arc<[Search]> = searches.into();
        for (phase, name, limit) in [(0, "not", 0), (1, "half", 20), (2, "wholly", 1_000)] {
            index(&store, limit);
            let searches = Arc::clone(&searches);
            // Over the three phases each query is made for each viewer.
            let (faults, checked) = read(&store, move |tx| check(tx, &searches, phase));
            assert!(
                faults.is_empty(),
                "{label}, {name} indexed:\n{}",
                faults.join("\n")
            );
            if phase == 2 {
                totals.add(&checked);
            }
        }
    }
    // The index leaves out many posts, and the queries match many others.
    let Totals {
        shown,
        candidates,
        matches,
    } = totals;
    assert!(
        candidates < shown * 3 / 4 && matches > shown / 5,
        "{candidates}, {matches} of {shown}"
    );
    check_post_texts(&store, text_of_json);
    store.close_blocking();
}

/// The numbers of posts in several searches.
#[derive(Default)]
struct Totals {
    /// All that the viewers are shown.
    shown: usize,
    /// The posts that the index finds.
    candidates: usize,
    matches: usize,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        self.shown += other.shown;
        self.candidates += other.candidates;
        self.matches += other.matches;
    }
}

/// A viewer's timeline of the sources of a corpus, with what the store says about its posts.
struct View {
    viewer: Viewer,
    readable: ReadableSources,
    shown: Vec<TimelinePost>,
    facts: HashMap<LocalId, Facts>,
}

struct Facts {
    stated: StatedFacts,
    via: String,
    nicknames: Vec<String>,
    sources: Vec<String>,
}

impl View {
    fn load(tx: &mut Tx<'_>, sources: [SourceId; 2], viewer: Viewer) -> Result<View, StoreError> {
        let readable = ReadableSources::load(tx, viewer)?;
        let takes = HomeRule {
            sources: sources.to_vec(),
            authors: Vec::new(),
        };
        let shown = timeline::home(tx, &ALL, &readable, &takes, None)?.posts;
        let origins: HashMap<_, _> = instance::all(tx)?
            .into_iter()
            .map(|of| (of.id, of.origin))
            .collect();
        let authors: Vec<_> = shown.iter().filter_map(|post| post.account).collect();
        let nicknames = search::nicknames(tx, &authors, &readable)?;
        let mut sources = search::sources(tx, &shown, &readable)?;
        let facts = shown.iter().map(|post| {
            let nicknames = post.account.and_then(|author| nicknames.get(&author));
            let origin = &origins[&post.instance];
            let facts = Facts {
                stated: StatedFacts::read(&post.raw, origin),
                via: origin.replace("https://", ""),
                nicknames: nicknames.cloned().unwrap_or_default(),
                sources: sources.remove(&post.id).unwrap_or_default(),
            };
            (post.id, facts)
        });
        let facts = facts.collect();
        Ok(View {
            viewer,
            readable,
            shown,
            facts,
        })
    }

    /// The decision of the matcher about a post, from the facts that searches read.
    fn matches(&self, matcher: &Matcher, post: &TimelinePost) -> bool {
        let Facts {
            stated,
            via,
            nicknames,
            sources,
        } = &self.facts[&post.id];
        matcher.matches(&PostFacts {
            entries: &[borrowed(&stated.entries), borrowed(nicknames)].concat(),
            sources: &borrowed(sources),
            attachments: &stated.attachments,
            traits: &stated.traits,
            language: stated.language.as_deref(),
            tags: &borrowed(&stated.tags),
            via: &[via],
            mentions: &borrowed(&stated.mentions),
            visibility: post.visibility,
            created_at_ms: post.created_at_ms,
            ..PostFacts::bare(post.id.raw(), &stated.author)
        })
    }
}

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// A search, and what the reader without an index finds for it.
struct Search {
    text: String,
    /// The phase in which it is made.
    turn: usize,
    predicate: Predicate,
    view: Arc<View>,
    expected: Vec<TimelinePost>,
}

fn searches(draw: &mut Draw, known: &Known, corpus: usize, views: &[Arc<View>]) -> Vec<Search> {
    let context = NameContext {
        origin: "",
        viewer: None,
    };
    let texts = known.texts();
    let mut values = known.values();
    for sign in ["", "<", "<=", ">", ">="] {
        let view = draw.one(views);
        let id = draw.one(&view.shown).id;
        values.push(Fact::new("id", &format!("{sign}{id}")));
    }
    let sources = values.iter().filter(|Fact(field, _)| *field == "source");
    let sources = sources.map(|Fact(field, name)| Query::Term(field, name.clone()));
    let of_corpus = Query::Joined("OR", sources.collect());
    let posts = views.iter().map(|view| {
        let posts = view
            .shown
            .iter()
            .map(|post| known.as_shown(post, view.viewer));
        posts.collect::<Vec<_>>()
    });
    let posts: Vec<_> = posts.collect();
    let mut all = Vec::new();
    for number in 0..QUERIES {
        let depth = number as u32 % 6;
        let query = Query::Joined(
            "",
            vec![
                draw.query(depth, corpus, &texts, &values),
                of_corpus.clone(),
            ],
        );
        let (folding, version) = if draw.is(20) {
            (Folding::Case, 1)
        } else {
            (Folding::Kana, 2)
        };
        let text = query.to_string();
        let predicate =
            Predicate::parse(&text, &context).unwrap_or_else(|error| panic!("{text}: {error}"));
        let predicate = Predicate::new(predicate.tree().clone(), folding).expect("a predicate");
        for (viewer, (view, posts)) in views.iter().zip(&posts).enumerate() {
            let matching = view
                .shown
                .iter()
                .zip(posts)
                .filter(|(_, post)| post.matches(&query, version));
            all.push(Search {
                text: format!("{:?}, folding {version}: {text}", view.viewer),
                turn: (number + viewer) % 3,
                predicate: predicate.clone(),
                view: Arc::clone(view),
                expected: matching.map(|(post, _)| post.clone()).collect(),
            });
        }
    }
    all
}

/// Compares a third of the searches with what the reader without an index finds. Returns the
/// differences.
fn check(
    tx: &mut Tx<'_>,
    searches: &[Search],
    turn: usize,
) -> Result<(Vec<String>, Totals), StoreError> {
    let (mut faults, mut totals) = (Vec::new(), Totals::default());
    for search in searches.iter().filter(|search| search.turn == turn) {
        let view = &search.view;
        let matcher = Matcher::new(&search.predicate);
        let candidates = RefCell::new(HashSet::new());
        let picks = |post: &TimelinePost| {
            candidates.borrow_mut().insert(post.id);
            view.matches(&matcher, post)
        };
        let lookup = search::lookup(tx, &view.readable, &search.predicate)?;
        let found = search::find(tx, &ALL, &view.readable, &lookup, &picks)?;
        let candidates = candidates.into_inner();
        if found.posts != search.expected || found.rest.is_some() {
            let mut left_out = search.expected.clone();
            left_out.retain(|post| !candidates.contains(&post.id));
            faults.push(format!(
                "{}\nfound {:?}, expected {:?}, left out of the candidates {:?}",
                search.text,
                names(&found.posts),
                names(&search.expected),
                names(&left_out),
            ));
        }
        totals.shown += view.shown.len();
        totals.candidates += candidates.len();
        totals.matches += found.posts.len();
    }
    Ok((faults, totals))
}
