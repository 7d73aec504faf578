//! Searches find what a viewer may read and nothing else, at the viewer's places, whether the index has read it or
//! not. `audiences.rs` checks that for random sources, audiences, copies and deletions.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use driftline_core::{
    answer::LookUp,
    names::audience::Audience,
    post::{Post, Visibility},
    predicate::{Matcher, NameContext, PostFacts, Predicate},
    upstream_id::UpstreamId,
};
use driftline_mastodon::{StatedFacts, TEXT_EXTRACTION, parse_time_ms, text_of_json};
use driftline_store::{
    LocalId, Owner, Root, Store, instance, search,
    source::LastPosts,
    text_rebuild,
    timeline::{Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};
use rand::{RngExt as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::{
    audiences::ALL,
    world::{ANN, BOB, World, names, post, read, write},
};

on_both!(
    words_of_all_scripts_are_found,
    changes_are_found_before_and_after_the_index_reads_them,
    hidden_posts_change_no_answer_and_no_cursor,
    an_author_is_found_by_the_nickname_that_the_viewer_may_read,
    a_nickname_from_one_instance_finds_the_posts_from_all,
    pages_up_and_down_lose_and_repeat_nothing,
    labels_and_sources_are_looked_up,
    what_older_documents_may_lack_is_not_looked_up,
    owners_are_not_looked_up_in_older_documents,
    posts_of_many_authors_are_found_below_many_others,
    pages_of_many_authors_lose_and_repeat_nothing,
    large_predicates_find_the_same_with_and_without_the_index,
);

/// Reads at most `limit` of the posts that wait for the index.
pub(crate) fn index(store: &Store, limit: u32) -> u32 {
    write(store, search::root(), move |tx| {
        search::index_pending(tx, limit)
    })
}

/// The posts that a query finds for a viewer.
pub(crate) fn find(store: &Store, query: &str, range: Range, viewer: Viewer) -> Vec<TimelinePost> {
    let part = stretch(store, query, range, viewer);
    assert_eq!(part.rest, None, "{query}");
    part.posts
}

fn stretch(store: &Store, query: &str, range: Range, viewer: Viewer) -> Stretch {
    let names = NameContext {
        origin: "",
        viewer: None,
    };
    let predicate = Predicate::parse(query, &names).expect("a predicate");
    let matcher = Matcher::new(&predicate);
    read(store, move |tx| {
        let readable = ReadableSources::load(tx, viewer)?;
        let picks = |post: &TimelinePost| {
            let stated = StatedFacts::read(&post.raw, "https://sim.example");
            let entries: Vec<&str> = stated.entries.iter().map(String::as_str).collect();
            matcher.matches(&PostFacts {
                // The caller reads nicknames. One author has one here.
                nickname: post
                    .account
                    .and(NICKNAME.filter(|_| post.raw.contains(BY_ANN))),
                entries: &entries,
                tags: &stated.tags.iter().map(String::as_str).collect::<Vec<_>>(),
                language: stated.language.as_deref(),
                attachments: &stated.attachments,
                traits: &stated.traits,
                mentions: &stated
                    .mentions
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
                via: &["sim.example"],
                visibility: post.visibility,
                created_at_ms: post.created_at_ms,
                ..PostFacts::bare(post.id.raw(), "ann@sim.example")
            })
        };
        let lookup = search::lookup(tx, &readable, &predicate)?;
        search::find(tx, &range, &readable, &lookup, &picks)
    })
}

/// The posts that the index finds for the operator, without the exact check.
fn candidates(store: &Store, query: &str) -> Vec<String> {
    let posts = candidate_part(store, query, ALL, Viewer::Operator).posts;
    let posts = posts.into_iter();
    posts.map(|post| post.upstream_id).collect()
}

/// A part of the posts that the index finds for a viewer, without the exact check.
fn candidate_part(store: &Store, query: &str, range: Range, viewer: Viewer) -> Stretch {
    let names = NameContext {
        origin: "",
        viewer: None,
    };
    let predicate = Predicate::parse(query, &names).expect("a predicate");
    read(store, move |tx| {
        let readable = ReadableSources::load(tx, viewer)?;
        let lookup = search::lookup(tx, &readable, &predicate)?;
        search::find(tx, &range, &readable, &lookup, &|_: &TimelinePost| true)
    })
}

/// The numbers of the candidates on all pages of a range, in the direction of the pages.
fn all_pages(store: &Store, query: &str, mut range: Range) -> Vec<u64> {
    let (is_upward, limit) = (range.min.is_some(), range.limit);
    let mut all = Vec::new();
    loop {
        let mut part = candidate_part(store, query, range, Viewer::Operator);
        if is_upward {
            part.posts.reverse();
        }
        all.extend(part.posts.iter().map(number));
        let is_full = part.posts.len() >= usize::from(limit);
        range = match (part.rest, part.posts.last()) {
            (Some(rest), _) => Range { limit, ..rest },
            (None, Some(last)) if is_full && is_upward => Range {
                min: Some(last.id),
                ..range
            },
            (None, Some(last)) if is_full => Range {
                max: Some(last.id),
                ..range
            },
            (None, _) => return all,
        };
    }
}

fn number(post: &TimelinePost) -> u64 {
    post.upstream_id.parse().expect("a number")
}

fn found(store: &Store, query: &str) -> Vec<String> {
    let posts = find(store, query, ALL, Viewer::Operator).into_iter();
    posts.map(|post| post.upstream_id).collect()
}

fn text(id: u64, html: &str) -> Post {
    let mut shown = post(id, "");
    shown.raw = json!({ "id": id.to_string(), "content": html }).to_string();
    shown
}

/// A reader of texts that shares no code with the index: its own folding of Latin letters and kana is enough for the
/// words below.
fn contains(text: &str, word: &str) -> bool {
    let fold = |text: &str| -> String {
        let lower = text.to_lowercase().chars().collect::<Vec<_>>();
        let is_katakana = |c: &char| ('ァ'..='ヶ').contains(c);
        let kana = |c: char| match is_katakana(&c) {
            true => char::from_u32(c as u32 - 0x60).expect("hiragana"),
            false => c,
        };
        lower.into_iter().map(kana).collect()
    };
    fold(text).contains(&fold(word))
}

const NICKNAME: Option<&str> = Some("Ann of the cats");
const BY_ANN: &str = "by the one with a nickname";

const TEXTS: [&str; 16] = [
    "地震が起きた",
    "昨日の地震と津波",
    "津波の心配はありません",
    "ネコとねこ",
    "子猫",
    "เมื่อวานแผ่นดินไหว",
    "地震 earthquake 100%",
    "100_000 under_score",
    "it's \"quoted\" 'text'",
    "🐈‍⬛ and 👩‍👩‍👧",
    "Straße STRASSE",
    "中文新闻地震",
    "a",
    "ab",
    "aba bab",
    "%_%",
];

fn words_of_all_scripts_are_found(store: &Store) {
    let mut world = World::readable(store, "home");
    let posts = TEXTS.iter().enumerate().rev();
    world.poll(
        posts
            .map(|(at, words)| text(at as u64 + 1, words))
            .collect(),
    );
    let words = [
        "地震",
        "津波",
        "ねこ",
        "ネコ",
        "猫",
        "แผ่นดินไหว",
        "100%",
        "under_",
        "\"quoted",
        "'text'",
        "🐈‍⬛",
        "👩",
        "aba",
        "a",
        "ab",
        "%_",
        "_",
        "新闻",
        "震",
        "earthquake",
        "missing",
    ];
    for limit in [0, 5, 100] {
        index(store, limit);
        for word in words {
            let expected = (1..).zip(TEXTS).filter(|(_, text)| contains(text, word));
            let mut expected: Vec<String> = expected.map(|(id, _)| id.to_string()).collect();
            expected.reverse();
            let query = format!("\"{}\"", word.replace('"', "\\\""));
            assert_eq!(found(store, &query), expected, "{word} after {limit}");
        }
    }
    assert_eq!(
        found(store, "(地震 OR 津波) -earthquake"),
        ["12", "3", "2", "1"]
    );
    assert_eq!(found(store, "地震 津波"), ["2"]);
    assert_eq!(found(store, "strasse"), ["11"]);
    assert_eq!(found(store, "-a -地震"), found(store, "-(a OR 地震)"));
}

fn changes_are_found_before_and_after_the_index_reads_them(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![text(2, "a dog"), text(1, "a cat")]);
    for is_read in [false, true] {
        if is_read {
            assert_eq!(index(store, 100), 2);
            assert_eq!(index(store, 100), 0);
        }
        assert_eq!(found(store, "cat"), ["1"]);
    }
    world.now_ms += 1_000;
    let edited = Post {
        edited_at_ms: Some(world.now_ms),
        ..text(1, "a horse")
    };
    world.poll(vec![text(2, "a dog"), edited]);
    for is_read in [false, true] {
        if is_read {
            index(store, 100);
        }
        assert_eq!(found(store, "cat"), [""; 0]);
        assert_eq!(found(store, "horse"), ["1"]);
    }
    world.look_up("2", LookUp::Gone);
    for is_read in [false, true] {
        if is_read {
            index(store, 100);
        }
        assert_eq!(found(store, "dog"), [""; 0]);
    }
    world.remove(LastPosts::Remove);
    index(store, 100);
    let left = read(store, |tx| {
        Ok(tx.query("select place from indexed_place", &[], |row| {
            row.i64("place")
        })?)
    });
    assert!(left.is_empty(), "{left:?}");
}

/// The same searches with no hidden hits and with many.
fn hidden_posts_change_no_answer_and_no_cursor(store: &Store) {
    let mut home = World::owned(store, "home", Owner::Operator, Audience::Public);
    home.poll((1..=9).rev().map(|id| text(id * 1_000, "a cat")).collect());
    index(store, 1_000);
    let few = Range { limit: 4, ..ALL };
    let viewers = [Viewer::Anonymous, Viewer::Account(BOB), Viewer::Operator];
    let all = || {
        viewers.map(|viewer| {
            let down = stretch(store, "cat", few, viewer);
            let up = Range {
                min: Some(LocalId::new(0)),
                ..few
            };
            (down, stretch(store, "cat", up, viewer))
        })
    };
    let before = all();
    let hidden = World::owned(store, "hidden", Owner::Account(ANN), Audience::Private);
    let mut hidden = hidden;
    for page in 0..110 {
        let ids = (20_000 + page * 40..20_000 + page * 40 + 40).rev();
        hidden.poll(ids.map(|id| text(id, "a cat")).collect());
    }
    assert_eq!(all(), before);
    while index(store, 500) > 0 {}
    assert_eq!(all(), before);
    assert_eq!(find(store, "cat", ALL, Viewer::Account(ANN)).len(), 1_000);
}

fn an_author_is_found_by_the_nickname_that_the_viewer_may_read(store: &Store) {
    let mut world = World::owned(store, "anns", Owner::Account(ANN), Audience::Private);
    let mut by_ann = text(1, BY_ANN);
    by_ann.author.acct = "ann".to_owned();
    by_ann.author.display_name = NICKNAME.unwrap_or_default().to_owned();
    world.poll(vec![by_ann]);
    index(store, 100);
    assert_eq!(
        names(&find(store, "cats", ALL, Viewer::Account(ANN))),
        ["1"]
    );
    assert_eq!(find(store, "cats", ALL, Viewer::Account(BOB)), []);
}

fn a_nickname_from_one_instance_finds_the_posts_from_all(store: &Store) {
    let mut own = World::owned(store, "own", Owner::Operator, Audience::Public);
    let (name, origin) = ("other", "https://other.example");
    let mut other = World::of_server(store, name, origin, Owner::Operator, Audience::Public);
    let by_ann = |id, acct: &str, nickname: &str| {
        let mut shown = text(id, BY_ANN);
        shown.author.acct = acct.to_owned();
        shown.author.display_name = nickname.to_owned();
        shown
    };
    own.poll(vec![by_ann(1, "ann", "")]);
    let nickname = NICKNAME.unwrap_or_default();
    other.poll(vec![by_ann(2, "ann@sim.example", nickname)]);
    for limit in [0, 100] {
        index(store, limit);
        let mut found = found(store, "cats");
        found.sort_unstable();
        assert_eq!(found, ["1", "2"], "after {limit}");
    }
}

fn pages_up_and_down_lose_and_repeat_nothing(store: &Store) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut world = World::readable(store, "home");
    let mut cats: HashSet<String> = HashSet::new();
    let mut next = 1;
    let (mut seen, mut cursor) = (HashSet::new(), None);
    for _ in 0..30 {
        let ids: Vec<u64> = (next..next + rng.random_range(1..6)).collect();
        next += ids.len() as u64;
        let posts = ids.iter().rev().map(|id| {
            let animal = ["cat", "dog"].choose(&mut rng).expect("one");
            if *animal == "cat" && cursor.is_none() {
                cats.insert(id.to_string());
            }
            text(*id, &format!("a {animal}"))
        });
        let posts: Vec<Post> = posts.collect();
        world.poll(posts);
        index(store, rng.random_range(0..8));
        if rng.random_bool(0.5) {
            continue;
        }
        // What came after the pass began stands above it.
        let range = Range {
            max: cursor,
            limit: 3,
            ..ALL
        };
        let page = find(store, "cat", range, Viewer::Operator);
        for post in &page {
            assert!(
                seen.insert(post.upstream_id.clone()),
                "{} twice",
                post.upstream_id
            );
        }
        cursor = page.last().map(|post| post.id).or(cursor);
    }
    loop {
        let range = Range {
            max: cursor,
            limit: 3,
            ..ALL
        };
        let page = find(store, "cat", range, Viewer::Operator);
        if page.is_empty() {
            break;
        }
        cursor = page.last().map(|post| post.id);
        seen.extend(page.into_iter().map(|post| post.upstream_id));
    }
    assert!(cats.is_subset(&seen), "{cats:?} {seen:?}");
    // Upward from below everything.
    let (mut upward, mut above) = (Vec::new(), LocalId::new(0));
    loop {
        let range = Range {
            min: Some(above),
            limit: 3,
            ..ALL
        };
        let page = find(store, "cat", range, Viewer::Operator);
        let Some(newest) = page.first() else { break };
        above = newest.id;
        upward.extend(page.into_iter().rev().map(|post| post.upstream_id));
    }
    upward.reverse();
    assert_eq!(upward, found(store, "cat"));
}

/// Each query finds the same posts before and after the index reads them, and the index gives no other candidates.
fn labels_and_sources_are_looked_up(store: &Store) {
    let labelled = |id: u64, labels: serde_json::Value| {
        let mut shown = text(id, "x");
        let mut json: serde_json::Value = serde_json::from_str(&shown.raw).expect("JSON");
        for (name, value) in labels.as_object().expect("labels") {
            json[name] = value.clone();
        }
        shown.raw = json.to_string();
        shown
    };
    let created = |time: &str, visibility, shown| Post {
        created_at_ms: parse_time_ms(time),
        visibility,
        ..shown
    };
    let mut home = World::readable(store, "home");
    let mut other = World::readable(store, "other");
    let cats = labelled(
        3,
        json!({ "tags": [{ "name": "Cats" }, { "name": "ネコ" }], "language": "en" }),
    );
    home.poll(vec![
        labelled(4, json!({ "tags": [{ "name": "cat" }], "language": "JA", "in_reply_to_id": "3",
            "mentions": [{ "acct": "Bob" }, { "acct": "eve@e.example" }] })),
        cats.clone(),
        created("2025-12-31T23:00:00Z", Visibility::Unlisted, labelled(2, json!({
            "media_attachments": [{ "id": "1" }], "language": "ja", "sensitive": true,
            "card": { "url": "https://a.example/", "html": "<iframe>" }, "account": { "acct": "x", "bot": true } }))),
        labelled(1, json!({ "poll": { "options": [] }, "spoiler_text": "x", "edited_at": "2026-01-01T00:00:00Z" })),
    ]);
    let card = json!({ "card": { "url": "https://a.example/" } });
    let late = created(
        "2031-05-05T00:00:00Z",
        Visibility::Public,
        labelled(5, card),
    );
    other.poll(vec![late, cats]);
    let queries: [(&str, &[&str]); 25] = [
        ("#cats", &["3"]),
        ("tag:CATS OR tag:cat", &["4", "3"]),
        ("#ネコ lang:en", &["3"]),
        ("lang:ja", &["4", "2"]),
        ("has:media lang:ja", &["2"]),
        ("has:poll has:cw", &["1"]),
        ("is:reply", &["4"]),
        ("is:edited OR is:sensitive", &["2", "1"]),
        ("tag:dogs", &[]),
        ("source:other", &["5", "3"]),
        ("source:home #cats", &["3"]),
        ("source:nobodys", &[]),
        ("mentions:bob@sim.example", &["4"]),
        (
            "mentions:EVE@e.example OR mentions:nobody@e.example",
            &["4"],
        ),
        ("has:link", &["5", "2"]),
        ("has:embed", &["2"]),
        ("is:bot", &["2"]),
        ("visibility:unlisted", &["2"]),
        ("via:sim.example visibility:public has:link", &["5"]),
        ("via:other.example", &[]),
        ("before:2026-01-01", &["2"]),
        ("during:2025-12-31 -#none", &["2"]),
        ("after:2030-01-01", &["5"]),
        ("after:2031-05-03T10:00Z before:2031-05-05T08:00+09:00", &[]),
        ("after:2025-12-31T23:00Z before:2025-12-31", &[]),
    ];
    let checked = |(query, expected): (&str, &[&str])| {
        if !query.contains("source:") {
            assert_eq!(found(store, query), expected, "{query}");
        }
    };
    queries.into_iter().for_each(checked);
    while index(store, 2) > 0 {}
    queries.into_iter().for_each(checked);
    for (query, expected) in queries {
        assert_eq!(candidates(store, query), expected, "{query}");
    }
}

/// Documents of extraction 2 had no labels of links.
fn what_older_documents_may_lack_is_not_looked_up(store: &Store) {
    assert_eq!(read(store, search::extraction), TEXT_EXTRACTION);
    let mut world = World::readable(store, "home");
    let mut linked = text(2, "a cat");
    linked.raw = linked
        .raw
        .replacen('{', r#"{"card":{"url":"https://a.example/"},"#, 1);
    world.poll(vec![text(3, "a cat"), linked, text(1, "a dog")]);
    write(store, search::root(), |tx| {
        tx.execute("update post_text set extraction = 2, labels = ''", &[])?;
        search::set_extraction(tx, 2)
    });
    while index(store, 100) > 0 {}
    assert_eq!(found(store, "has:link"), ["2"]);
    assert_eq!(candidates(store, "has:link"), ["3", "2", "1"]);
    assert_eq!(candidates(store, "cat has:link"), ["3", "2"]);
    assert_eq!(
        candidates(store, "cat OR after:2026-01-01"),
        ["3", "2", "1"]
    );
    rebuild_texts(store);
    for _ in 0..2 {
        assert_eq!(found(store, "has:link"), ["2"]);
        index(store, 100);
    }
    assert_eq!(candidates(store, "has:link"), ["2"]);
}

/// Makes the texts again that an earlier version made, so that their posts wait for the index.
fn rebuild_texts(store: &Store) {
    let portion = read(store, |tx| {
        text_rebuild::next_portion(tx, None, TEXT_EXTRACTION)
    });
    for (id, posts) in portion.expect("posts").outdated {
        write(store, instance::root(id), move |tx| {
            text_rebuild::rebuild(tx, id, &posts, text_of_json)
        });
    }
    write(store, search::root(), |tx| {
        search::set_extraction(tx, TEXT_EXTRACTION)
    });
}

/// Documents of extraction 2 did not name the owners of their sources. While there may be such documents, the sources of
/// an owner are looked up one by one.
fn owners_are_not_looked_up_in_older_documents(store: &Store) {
    let owner = Owner::Account(ANN);
    let homes = ["first", "second"];
    let mut homes = homes.map(|name| World::owned(store, name, owner, Audience::Private));
    for (id, home) in (1..).zip(&mut homes) {
        home.poll(vec![text(id, "a cat")]);
    }
    let add_to_owner = |number: i64| {
        write(store, Root::none(), move |tx| {
            Ok(tx.execute("update source set owner_id = owner_id + $1", &[&number])?)
        });
    };
    let found = || {
        let part = candidate_part(store, "cat", ALL, Viewer::Account(ANN));
        let mut found: Vec<u64> = part.posts.iter().map(number).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(found(), [1, 2]);
    // These documents name somebody else, so they are found without that term alone.
    add_to_owner(1);
    while index(store, 100) > 0 {}
    add_to_owner(-1);
    assert_eq!(found(), [0; 0]);
    write(store, search::root(), |tx| {
        tx.execute("update post_text set extraction = 2", &[])?;
        search::set_extraction(tx, 2)
    });
    assert_eq!(found(), [1, 2]);
    rebuild_texts(store);
    while index(store, 100) > 0 {}
    assert_eq!(found(), [1, 2]);
}

/// PostgreSQL walks 2,000 places without a match before it asks its index, which finds many authors one by one.
fn posts_of_many_authors_are_found_below_many_others(store: &Store) {
    let mut world = World::readable(store, "home");
    let named = (1..=160).rev();
    world.poll(
        named
            .clone()
            .map(|id| by_author(id, id % 80, "猫舌の人"))
            .collect(),
    );
    world.poll(
        (161..=2_300)
            .rev()
            .map(|id| by_author(id, 999, "Nobody"))
            .collect(),
    );
    while index(store, 1_000) > 0 {}
    let expected: Vec<String> = named.map(|id| id.to_string()).collect();
    assert_eq!(candidates(store, "猫舌"), expected);
    assert_eq!(candidates(store, "猫舌 OR #none"), expected);
    // Some above them are found without the lists of their authors.
    let newest = 2_301..=2_440;
    world.poll(
        newest
            .clone()
            .rev()
            .map(|id| by_author(id, id % 80, "猫舌の人"))
            .collect(),
    );
    while index(store, 1_000) > 0 {}
    let newest: Vec<String> = newest.rev().map(|id| id.to_string()).collect();
    let few = Range { limit: 60, ..ALL };
    for query in ["猫舌", "猫舌 visibility:public", "猫舌 OR #none"] {
        let part = candidate_part(store, query, few, Viewer::Operator);
        let found = part.posts.into_iter().map(|post| post.upstream_id);
        assert_eq!(found.collect::<Vec<_>>(), newest[..60], "{query}");
        let all = [newest.clone(), expected.clone()].concat();
        assert_eq!(candidates(store, query), all, "{query}");
    }
}

/// A post by an author with a nickname.
fn by_author(id: u64, author: u64, nickname: &str) -> Post {
    let mut shown = text(id, "x");
    shown.author.id = UpstreamId::new(author.to_string());
    shown.author.acct = format!("author{author}");
    shown.author.display_name = nickname.to_owned();
    shown
}

/// Posts of 80 authors stand at several densities among others. SQLite looks for them among the newest 1,280 places
/// first, in steps, the first of which is 500 places. Passes down and up have each of them once, wherever they begin.
fn pages_of_many_authors_lose_and_repeat_nothing(store: &Store) {
    const OLD: u64 = 160;
    const NEWEST: u64 = 2_700;
    let is_named = |id: u64| match id {
        161..=1_750 => false,
        1_751..=2_350 => id.is_multiple_of(60),
        2_351..=2_650 => id.is_multiple_of(2),
        _ => true,
    };
    let is_tagged = |id: u64| id.is_multiple_of(40);
    let is_either = |id: u64| is_named(id) || is_tagged(id);
    let shown = |id: u64| {
        // Half of the authors have old posts only.
        let authors = if id <= OLD { 80 } else { 40 };
        let mut shown = match is_named(id) {
            true => by_author(id, id % authors, "猫舌の人"),
            false => by_author(id, 999, "Nobody"),
        };
        if is_tagged(id) {
            let tags = r#"{"tags":[{"name":"cats"}],"#;
            shown.raw = shown.raw.replacen('{', tags, 1);
        }
        shown
    };
    let mut world = World::readable(store, "home");
    world.poll((1..=NEWEST).rev().map(shown).collect());
    while index(store, 1_000) > 0 {}
    let posts = world.timeline_for(Viewer::Operator);
    let places: HashMap<u64, LocalId> = posts.iter().map(|post| (number(post), post.id)).collect();
    assert_eq!(places.len() as u64, NEWEST);

    // The newest old post is the last place of a step, or its neighbour.
    let steps = [500, 1_000, 1_280].into_iter();
    let borders = steps.flat_map(|end| [end - 1, end, end + 1].map(|places| OLD + places));
    let below: Vec<u64> = borders.chain([1_900, 2_500, NEWEST + 1]).collect();
    type IsMatch<'f> = &'f dyn Fn(u64) -> bool;
    let queries: [(&str, u16, IsMatch<'_>); 3] = [
        ("猫舌", 20, &is_named),
        ("猫舌 visibility:public", 60, &is_named),
        ("猫舌 OR #cats", 60, &is_either),
    ];
    for (query, limit, is_expected) in queries {
        for max in &below {
            let expected: Vec<u64> = (1..*max).rev().filter(|id| is_expected(*id)).collect();
            let range = Range {
                max: places.get(max).copied(),
                limit,
                ..ALL
            };
            let found = all_pages(store, query, range);
            assert_eq!(found, expected, "{query} below {max}");
        }
        for min in [0, OLD, 1_000, 1_900] {
            let range = Range {
                min: places.get(&min).copied().or(Some(LocalId::new(0))),
                limit,
                ..ALL
            };
            let expected: Vec<u64> = (min + 1..=NEWEST).filter(|id| is_expected(*id)).collect();
            assert_eq!(
                all_pages(store, query, range),
                expected,
                "{query} above {min}"
            );
        }
    }
}

/// The largest predicates of their kinds: what each costs the planner and the databases is bounded.
fn large_predicates_find_the_same_with_and_without_the_index(store: &Store) {
    let mut world = World::readable(store, "sim");
    world.poll(vec![text(3, "猫"), text(2, "a dog"), text(1, "a cat")]);
    let letters = |count: usize| -> String {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        (0..count).map(|_| rng.random_range('a'..='z')).collect()
    };
    let numbered = |separator: &str| {
        let words: Vec<String> = (0..999).map(|n| format!("w{n}")).collect();
        words.join(separator)
    };
    let pairs = ('a'..='z').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}")));
    let queries = [
        ("猫".to_owned(), vec!["3"]),
        ("a ".repeat(1_000), vec!["2", "1"]),
        ("a OR ".repeat(999) + "猫", vec!["3", "2", "1"]),
        (letters(16_000), vec![]),
        (format!("{} cat", letters(15_000)), vec![]),
        (format!("{} OR cat", letters(15_000)), vec!["1"]),
        (format!("{} cat", numbered(" ")), vec![]),
        (format!("{} OR cat", numbered(" OR ")), vec!["1"]),
        (format!("{} XOR cat", numbered(" XOR ")), vec!["1"]),
        (format!("cat -{}", numbered(" -")), vec!["1"]),
        (pairs.collect::<Vec<_>>().join(" OR "), vec!["2", "1"]),
        ("cat (no OR ".repeat(15) + "a" + &")".repeat(15), vec!["1"]),
        // In its normal form each `XOR` has both sides twice.
        ("cat XOR -(".repeat(15) + "dog" + &")".repeat(15), vec!["3"]),
        ("#cat OR ".repeat(999) + "cat", vec!["1"]),
    ];
    let found = |query: &str| {
        let posts = find(store, query, ALL, Viewer::Operator).into_iter();
        posts.map(|post| post.upstream_id).collect::<Vec<_>>()
    };
    let begun = Instant::now();
    for is_indexed in [false, true] {
        for (query, expected) in &queries {
            let beginning: String = query.chars().take(60).collect();
            assert_eq!(&found(query), expected, "{is_indexed} {beginning}");
        }
        index(store, 10);
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}
