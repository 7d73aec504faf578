//! Authors that are found by their nicknames.

use std::{collections::HashMap, ops::RangeInclusive};

use driftline_core::{names::audience::Audience, post::Post, upstream_id::UpstreamId};
use driftline_db::Column;
use driftline_store::{
    LocalId, Owner, Root, Store,
    timeline::{Range, Viewer},
};

use super::{BY_ANN, NICKNAME, candidate_part, candidates, find, found, index, number, text};
use crate::{
    audiences::ALL,
    world::{ANN, BOB, World, names, read, write},
};

on_both!(
    an_author_is_found_by_the_nickname_that_the_viewer_may_read,
    a_nickname_from_one_instance_finds_the_posts_from_all,
    no_author_is_missed_among_too_many_names_with_a_word,
    posts_of_many_authors_are_found_below_many_others,
    pages_of_many_authors_lose_and_repeat_nothing,
);

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

/// A word with more names than a search reads is not looked up in names. So each post is a candidate, not only those by
/// the authors among the names that were read.
fn no_author_is_missed_among_too_many_names_with_a_word(store: &Store) {
    const MAX_NAMES: i64 = 10_000;
    let mut world = World::readable(store, "home");
    world.poll(vec![by_author(1, 1, "猫舌人")]);
    let terms = read(store, |tx| {
        let query = "select term, source_id, instance_id from nickname_term";
        Ok(tx.query(query, &[], |row| {
            let source = (row.i64("source_id")?, row.i64("instance_id")?);
            Ok((row.i64("term")?, source))
        })?)
    });
    // Their IDs are below all others: a look-up in the order of IDs reads them first.
    let add_names = |accounts: RangeInclusive<i64>| {
        let terms = terms.clone();
        write(store, Root::none(), move |tx| {
            for (term, (source, instance)) in &terms {
                tx.execute_many(
                    "insert into nickname_term (term, source_id, instance_id, account_id)
                     select $1, $2, $3, r.account_id from {rows as r(account_id)}",
                    &[term, source, instance],
                    &[Column::i64(accounts.clone())],
                )?;
            }
            Ok(())
        });
    };
    world.poll(vec![by_author(2, 2, "Nobody")]);
    add_names(-MAX_NAMES..=-2);
    while index(store, 100) > 0 {}
    // One term, and two terms.
    let words = ["猫舌", "猫舌人"];
    for word in words {
        assert_eq!(candidates(store, word), ["1"], "{word}");
    }
    // A look-up in the order of the writes reads the last name last.
    add_names(-1..=-1);
    world.poll(vec![by_author(3, 3, "猫舌人")]);
    while index(store, 100) > 0 {}
    for word in words {
        assert_eq!(candidates(store, word), ["3", "2", "1"], "{word}");
    }
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
