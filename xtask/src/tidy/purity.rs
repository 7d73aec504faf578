use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata};

use super::edges::FEATURES;

/// The names that each package depends on, tests and [`FEATURES`] aside.
pub(super) type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Reads the graph of resolved packages.
pub(super) fn graph(metadata: &Metadata) -> Graph<'_> {
    let names: BTreeMap<_, _> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package.name.as_str()))
        .collect();
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let mut graph = Graph::new();
    for node in nodes {
        let Some(name) = names.get(&node.id) else {
            continue;
        };
        let known = graph.entry(name).or_default();
        for dependency in &node.deps {
            let built = |kind: &cargo_metadata::DepKindInfo| kind.kind == DependencyKind::Normal;
            if dependency.dep_kinds.iter().any(built) {
                let brought = names.get(&dependency.pkg).copied();
                known.extend(brought.filter(|brought| !FEATURES.contains(&(*name, *brought))));
            }
        }
    }
    graph
}

/// What a pure crate reaches, directly or not, and must not.
pub(super) fn unwanted(graph: &Graph<'_>, name: &str) -> Vec<String> {
    let Some((_, banned)) = PURE.iter().find(|(pure, _)| *pure == name) else {
        return Vec::new();
    };
    let mut ways = BTreeMap::from([(name, name.to_owned())]);
    let mut next = vec![name];
    while let Some(at) = next.pop() {
        for known in graph.get(at).into_iter().flatten() {
            if !ways.contains_key(known) {
                ways.insert(known, format!("{} -> {known}", ways[at]));
                next.push(known);
            }
        }
    }
    banned
        .iter()
        .filter_map(|banned| ways.get(banned))
        .map(|way| format!("a crate that must not be reached: {way}"))
        .collect()
}

/// Crates with what must not be among anything that they are built from.
const PURE: [(&str, &[&str]); 3] = [
    ("driftline-id", OUTSIDE),
    ("driftline-core", OUTSIDE),
    ("driftline-store", &["axum", "reqwest", "hyper"]),
];
const OUTSIDE: &[&str] = &[
    "tokio",
    "axum",
    "hyper",
    "reqwest",
    "rusqlite",
    "tokio-postgres",
    "rand",
    "getrandom",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dependency_brings_counts_too() {
        let graph = Graph::from([
            (
                "driftline-core",
                BTreeSet::from(["driftline-id", "helpful"]),
            ),
            ("helpful", BTreeSet::from(["rand"])),
        ]);
        assert_eq!(
            unwanted(&graph, "driftline-core"),
            ["a crate that must not be reached: driftline-core -> helpful -> rand"]
        );
        assert!(unwanted(&graph, "driftline-id").is_empty());
        assert!(unwanted(&graph, "driftline-server").is_empty());
    }

    #[test]
    fn the_graph_is_that_of_cargo() {
        let metadata = cargo_metadata::MetadataCommand::new().exec().unwrap();
        let graph = graph(&metadata);
        assert!(graph["xtask"].contains("clap"));
        assert!(graph["driftline-core"].contains("driftline-id"));
        assert!(!graph["driftline-core"].contains("proptest"), "a test's");
    }
}
