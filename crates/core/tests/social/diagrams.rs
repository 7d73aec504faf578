//! The diagrams of `docs/social.md` draw the edges of the code.

use std::collections::BTreeSet;

use driftline_core::social::{AccountState, Relation};

const DOCUMENT: &str = include_str!("../../../../docs/social.md");

/// The edges of the diagram below a heading, as the seed writes names.
fn drawn(heading: &str) -> BTreeSet<(String, String)> {
    let below = DOCUMENT.split_once(heading).expect("the heading").1;
    let diagram = below.split_once("```mermaid\nstateDiagram-v2\n");
    let diagram = diagram.expect("a diagram").1.split_once("```");
    let lines = diagram.expect("an end").0.lines();
    let edges = lines.map(|line| line.trim().split_once(" --> ").expect("an edge"));
    edges
        .map(|(from, to)| (from.to_owned(), to.to_owned()))
        .collect()
}

fn coded(
    edges: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> BTreeSet<(String, String)> {
    let seed = |name: &str| name.to_ascii_uppercase();
    edges
        .into_iter()
        .map(|(from, to)| (seed(from), seed(to)))
        .collect()
}

#[test]
fn the_diagrams_draw_what_the_code_knows() {
    let states = AccountState::EDGES.map(|(from, to)| (from.name(), to.name()));
    assert_eq!(drawn("\n### Account states\n"), coded(states));
    let relations = Relation::EDGES.map(|(from, to)| (from.name(), to.name()));
    assert_eq!(drawn("\n### Relations\n"), coded(relations));
}
