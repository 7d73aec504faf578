//! Searches find what a viewer may read and nothing else, at the viewer's places, whether the index has read it or
//! not. `audiences.rs` checks that for random sources, audiences, copies and deletions.

mod authors;
mod labels;
mod older_documents;
mod pages;
mod words;

use driftline_core::{
    post::Post,
    predicate::{Matcher, NameContext, PostFacts, Predicate},
};
use driftline_mastodon::StatedFacts;
use driftline_store::{
    Store, search,
    timeline::{Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};
use serde_json::json;

use crate::{
    audiences::ALL,
    world::{post, read, write},
};

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

const NICKNAME: Option<&str> = Some("Ann of the cats");
const BY_ANN: &str = "by the one with a nickname";
