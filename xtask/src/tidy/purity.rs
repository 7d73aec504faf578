use xshell::cmd;

use super::edges::PURE;
use crate::error::TaskError;
use crate::workspace::Workspace;

/// The direct and indirect dependencies of a pure crate that are banned. Features that only other
/// crates ask for do not count.
pub(super) fn unwanted(workspace: &Workspace, package: &str) -> Result<Vec<String>, TaskError> {
    let Some((_, banned)) = BANNED.iter().find(|(name, _)| *name == package) else {
        return Ok(Vec::new());
    };
    let tree = cmd!(
        workspace.shell,
        "cargo tree --locked --package {package} --edges normal --target all --prefix none"
    );
    let tree = tree.quiet().read()?;
    let reached = banned_in(&tree, banned).map(|name| {
        format!("a crate that must not be reached: `cargo tree -p {package} -e normal -i {name}`")
    });
    Ok(reached.collect())
}

/// Each line of a tree begins with the name of a crate.
fn banned_in<'a>(tree: &str, banned: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let is_in = |name: &&str| {
        tree.lines()
            .any(|line| line.split(' ').next() == Some(name))
    };
    banned.iter().copied().filter(is_in)
}

/// Crates with the dependencies that they must not have, directly or not.
const BANNED: [(&str, &[&str]); 4] = [
    ("driftline-id", PURE),
    ("driftline-core", PURE),
    ("driftline-mastodon", PURE),
    ("driftline-store", &["axum", "reqwest", "hyper"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dependency_brings_counts_too() {
        let tree =
            "driftline-core v0.1.0 (crates/core)\nhelpful v1.0.0\nrand v0.10.0\nrandom v1.0.0";
        let found: Vec<_> = banned_in(tree, PURE).collect();
        assert_eq!(found, ["rand"]);
    }
}
