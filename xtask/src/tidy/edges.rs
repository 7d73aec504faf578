use cargo_metadata::{DependencyKind, Package};

use super::offence::Offence;

/// Holds a crate's manifest, at `path` from the root, against the table of who may know whom.
pub(super) fn check(package: &Package, path: &str, manifest: &str) -> Vec<Offence> {
    let name = package.name.as_str();
    let Some(rule) = Rule::for_crate(name) else {
        let text = format!(
            "crate `{name}` is not in the table of edges: add it to xtask/src/tidy/edges.rs"
        );
        return vec![Offence::new(path, 1, text)];
    };
    let mut offences = Vec::new();
    for dependency in &package.dependencies {
        let known = dependency.name.as_str();
        let is_dev = dependency.kind == DependencyKind::Development;
        let mut offend = |text| offences.push(Offence::new(path, line_of(manifest, known), text));
        if known != name && rule.forbids(known, is_dev) {
            let tests = if is_dev { ", even in tests" } else { "" };
            offend(format!(
                "`{name}` must not know `{known}`{tests}: remove it"
            ));
        }
        if name == "driftline-core" && known == "driftline-id" && !is_dev {
            for feature in dependency.features.iter().filter(|name| *name != "serde") {
                offend(format!("`{name}` must not ask `{known}` for `{feature}`"));
            }
        }
    }
    offences
}

/// The line that names a dependency first.
fn line_of(manifest: &str, name: &str) -> usize {
    let named = |line: &str| {
        line.trim()
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest.lines().position(named).map_or(1, |at| at + 1)
}

/// The crates that a crate may know. Names of the workspace's own crates are without their common prefix.
struct Rule {
    name: &'static str,
    /// Crates of the workspace, none where it is [`ANY`].
    knows: &'static [&'static str],
    /// Dependencies it must not name, of any origin.
    never: &'static [&'static str],
    /// The same for its tests.
    never_in_tests: &'static [&'static str],
}

impl Rule {
    fn for_crate(name: &str) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.name == short(name))
    }

    fn forbids(&self, dependency: &str, is_dev: bool) -> bool {
        if is_dev {
            return self.never_in_tests.contains(&dependency);
        }
        let of_workspace = dependency.starts_with("driftline");
        let may_know = self.knows == ANY || self.knows.contains(&short(dependency));
        (of_workspace && !may_know) || self.never.contains(&dependency)
    }
}

const fn pure(name: &'static str, knows: &'static [&'static str]) -> Rule {
    Rule {
        never_in_tests: SHELLS,
        ..shell(name, knows, PURE)
    }
}

const fn shell(
    name: &'static str,
    knows: &'static [&'static str],
    never: &'static [&'static str],
) -> Rule {
    Rule {
        name,
        knows,
        never,
        never_in_tests: &[],
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("driftline-").unwrap_or(name)
}

const ANY: &[&str] = &["*"];
const SHELLS: &[&str] = &["tokio", "axum", "reqwest", "rusqlite", "tokio-postgres"];
/// The packages that no pure crate depends on, directly or indirectly.
#[rustfmt::skip]
pub(super) const PURE: &[&str] =
    &["tokio", "axum", "hyper", "reqwest", "rusqlite", "tokio-postgres", "rand", "getrandom"];
const SQL: &[&str] = &["rusqlite", "tokio-postgres"];
const SQL_AND_CLIENT: &[&str] = &["rusqlite", "tokio-postgres", "reqwest"];
const HTTP: &[&str] = &["axum", "reqwest"];
/// A feature of it brings Tokio to the shells that ask; `purity` sees to it that no other does.
#[rustfmt::skip]
const ID: Rule = Rule {
    name: "id",
    knows: &[],
    never: &["axum", "reqwest", "rusqlite", "tokio-postgres", "rand"],
    never_in_tests: &["axum", "reqwest", "rusqlite", "tokio-postgres"],
};

#[rustfmt::skip]
const RULES: [Rule; 17] = [
    ID,
    pure("core", &["id"]),
    pure("mastodon", &["core"]),
    shell("db", &[], HTTP),
    shell("index", &["core", "db"], HTTP),
    shell("store", &["core", "db", "id", "index"], HTTP),
    shell("replica", &["core", "mastodon", "db", "index"], &["axum"]),
    shell("net", &[], &["axum", "rusqlite", "tokio-postgres"]),
    shell("upstream", &["core", "mastodon", "net"], SQL_AND_CLIENT),
    shell("sim", &["core"], SQL),
    shell("runtime", &["core", "store"], SQL_AND_CLIENT),
    shell("mirror", &["core", "net", "store", "upstream", "runtime"], SQL_AND_CLIENT),
    shell("api", &["core", "id", "mastodon", "store", "runtime"], SQL_AND_CLIENT),
    shell("id-service", &["id", "store", "runtime", "api"], SQL_AND_CLIENT),
    shell("server", &["core", "mastodon", "store", "upstream", "runtime", "mirror", "api", "id-service"], SQL),
    shell("driftline", ANY, SQL),
    shell("xtask", &[], &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_one_way() {
        for (name, known, allowed, allowed_in_tests) in [
            ("driftline-core", "driftline-store", false, true),
            ("driftline-core", "driftline-id", true, true),
            ("driftline-core", "tokio", false, false),
            ("driftline-core", "tokio-util", true, true),
            ("driftline-core", "rand", false, true),
            ("driftline-id", "axum", false, false),
            ("driftline-id", "rand", false, true),
            ("driftline-id", "tokio", true, true),
            ("driftline-store", "driftline-core", true, true),
            ("driftline-store", "driftline", false, true),
            ("driftline-store", "axum", false, true),
            ("driftline-store", "reqwest", false, true),
            ("driftline", "driftline-store", true, true),
            ("driftline", "rusqlite", false, true),
            ("driftline", "tokio-postgres", false, true),
        ] {
            let rule = Rule::for_crate(name).unwrap();
            assert_eq!(rule.forbids(known, false), !allowed, "{name} {known}");
            assert_eq!(
                rule.forbids(known, true),
                !allowed_in_tests,
                "{name} {known}"
            );
        }
        for shell in SHELLS {
            assert!(
                Rule::for_crate("driftline-core")
                    .unwrap()
                    .forbids(shell, true)
            );
        }
        assert!(Rule::for_crate("driftline-extra").is_none());
    }

    /// With the real packages, changed to break the rules.
    #[test]
    fn an_offence_is_reported_with_its_line() {
        let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec();
        let packages = metadata.unwrap().packages;
        let found = |name: &str, change: fn(&mut Package)| {
            let mut package = packages.iter().find(|of| *of.name == name).unwrap().clone();
            change(&mut package);
            let manifest = "driftline-idle.workspace = true\ndriftline-id = \"1\"\n";
            let offences = check(&package, "Cargo.toml", manifest).into_iter();
            offences
                .map(|offence| offence.to_string())
                .collect::<Vec<_>>()
        };
        for package in &packages {
            assert_eq!(found(&package.name, |_| {}), [""; 0]);
        }
        let core_asks_more = found("driftline-core", |core| {
            let is_id = |of: &&mut cargo_metadata::Dependency| of.name == "driftline-id";
            let id = core.dependencies.iter_mut().find(is_id).unwrap();
            id.features.push("file".into());
        });
        assert_eq!(
            core_asks_more,
            ["Cargo.toml:2: `driftline-core` must not ask `driftline-id` for `file`"]
        );
        let db_knows_id = found("driftline-db", |db| {
            db.dependencies[0].name = "driftline-id".into();
            db.dependencies[0].kind = DependencyKind::Normal;
        });
        assert_eq!(
            db_knows_id,
            ["Cargo.toml:2: `driftline-db` must not know `driftline-id`: remove it"]
        );
    }
}
