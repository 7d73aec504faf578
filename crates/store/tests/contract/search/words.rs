//! Words of all scripts, before and after the index reads their posts.

use std::time::{Duration, Instant};

use driftline_core::{answer::LookUp, post::Post};
use driftline_store::{Store, source::LastPosts, timeline::Viewer};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{find, found, index, text};
use crate::{
    audiences::ALL,
    world::{World, read},
};

on_both!(
    words_of_all_scripts_are_found,
    changes_are_found_before_and_after_the_index_reads_them,
    large_predicates_find_the_same_with_and_without_the_index,
);

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
