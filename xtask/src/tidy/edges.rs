use cargo_metadata::DependencyKind;

use super::offence::Offence;

/// A crate of the workspace.
pub(super) struct Member<'a> {
    /// The package's name.
    pub(super) name: &'a str,
    /// Its manifest, from the root.
    pub(super) path: &'a str,
    /// The manifest's text, for line numbers.
    pub(super) text: &'a str,
    /// What the manifest names.
    pub(super) dependencies: Vec<Dependency<'a>>,
}

/// A dependency that a manifest names.
pub(super) struct Dependency<'a> {
    name: &'a str,
    dev: bool,
    optional: bool,
    features: &'a [String],
}

impl<'a> From<&'a cargo_metadata::Dependency> for Dependency<'a> {
    fn from(dependency: &'a cargo_metadata::Dependency) -> Dependency<'a> {
        Dependency {
            name: &dependency.name,
            dev: dependency.kind == DependencyKind::Development,
            optional: dependency.optional,
            features: &dependency.features,
        }
    }
}

/// Crates that a feature brings, which shells ask for and pure crates do not.
const FEATURES: [(&str, &str); 1] = [("driftline-id", "tokio")];

/// Holds a crate's manifest against the table of who may know whom.
pub(super) fn check(member: &Member<'_>, members: &[&str]) -> Vec<Offence> {
    let Some(rule) = RULES.iter().find(|rule| rule.name == short(member.name)) else {
        let text = format!(
            "crate `{}` is not in the table of edges: add it to xtask/src/tidy/edges.rs",
            member.name
        );
        return vec![Offence::new(member.path, 1, text)];
    };
    let mut offences = Vec::new();
    for dependency in &member.dependencies {
        let name = dependency.name;
        let of_workspace = members.contains(&name) && name != member.name;
        let wrong_edge = of_workspace
            && !dependency.dev
            && rule.knows != ANY
            && !rule.knows.contains(&short(name));
        let of_feature = FEATURES.contains(&(member.name, name));
        let never =
            !dependency.dev && rule.never.contains(&name) && !(of_feature && dependency.optional);
        let never_in_tests = dependency.dev && rule.never_in_tests.contains(&name) && !of_feature;
        if wrong_edge || never || never_in_tests {
            let tests = if dependency.dev {
                ", even in tests"
            } else {
                ""
            };
            let text = format!("`{}` must not know `{name}`{tests}: remove it", member.name);
            offences.push(offence(member, name, text));
        }
        if member.name == "driftline-core" && name == "driftline-id" && !dependency.dev {
            for feature in dependency.features.iter().filter(|name| *name != "serde") {
                let text = format!("`{}` must not ask `{name}` for `{feature}`", member.name);
                offences.push(offence(member, name, text));
            }
        }
    }
    offences
}

fn offence(member: &Member<'_>, dependency: &str, text: String) -> Offence {
    Offence::new(member.path, line_of(member.text, dependency), text)
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

/// What a crate may know. Names of the workspace's own crates are without their common prefix.
struct Rule {
    name: &'static str,
    /// Crates of the workspace, none where it is [`ANY`].
    knows: &'static [&'static str],
    /// Dependencies it must not name, of any origin.
    never: &'static [&'static str],
    /// The same for its tests.
    never_in_tests: &'static [&'static str],
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
const PURE: &[&str] = &[
    "tokio",
    "axum",
    "reqwest",
    "rusqlite",
    "tokio-postgres",
    "rand",
];
const SQL: &[&str] = &["rusqlite", "tokio-postgres"];
const SQL_AND_CLIENT: &[&str] = &["rusqlite", "tokio-postgres", "reqwest"];
const HTTP: &[&str] = &["axum", "reqwest"];
const SERVER_KNOWS: &[&str] = &[
    "core",
    "mastodon",
    "store",
    "upstream",
    "runtime",
    "mirror",
    "api",
    "id-service",
];

#[rustfmt::skip]
const RULES: [Rule; 16] = [
    pure("id", &[]),
    pure("core", &["id"]),
    pure("mastodon", &["core"]),
    shell("db", &[], HTTP),
    shell("store", &["core", "db", "id"], HTTP),
    shell("replica", &["core", "db"], &["axum"]),
    shell("net", &[], &["axum", "rusqlite", "tokio-postgres"]),
    shell("upstream", &["core", "mastodon", "net"], SQL_AND_CLIENT),
    shell("sim", &["core"], SQL),
    shell("runtime", &["store"], SQL_AND_CLIENT),
    shell("mirror", &["core", "net", "store", "upstream", "runtime"], SQL_AND_CLIENT),
    shell("api", &["core", "id", "mastodon", "store", "runtime"], SQL_AND_CLIENT),
    shell("id-service", &["id", "store", "runtime", "api"], SQL_AND_CLIENT),
    shell("server", SERVER_KNOWS, SQL),
    shell("driftline", ANY, SQL),
    shell("xtask", &[], &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: [&str; 4] = [
        "driftline-id",
        "driftline-core",
        "driftline-store",
        "driftline",
    ];

    fn named(name: &str) -> Dependency<'_> {
        Dependency {
            name,
            dev: false,
            optional: false,
            features: &[],
        }
    }

    fn of_tests(name: &str) -> Dependency<'_> {
        Dependency {
            dev: true,
            ..named(name)
        }
    }

    fn offences(name: &str, dependency: Dependency<'_>) -> Vec<String> {
        let text = format!("[dependencies]\n{}.workspace = true\n", dependency.name);
        let member = Member {
            name,
            path: "Cargo.toml",
            text: &text,
            dependencies: vec![dependency],
        };
        let found = check(&member, &MEMBERS);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_point_one_way() {
        assert_eq!(
            offences("driftline-core", named("driftline-store")),
            ["Cargo.toml:2: `driftline-core` must not know `driftline-store`: remove it"]
        );
        for (name, known) in [
            ("driftline-core", "driftline-id"),
            ("driftline-store", "driftline-core"),
            ("driftline", "driftline-store"),
        ] {
            assert!(offences(name, named(known)).is_empty(), "{name} {known}");
        }
        assert_eq!(offences("driftline-extra", named("clap")).len(), 1);
    }

    #[test]
    fn tests_may_know_more_except_those_of_pure_crates() {
        for (name, known) in [
            ("driftline-store", "driftline"),
            ("driftline-store", "axum"),
            ("driftline-core", "rand"),
        ] {
            assert!(offences(name, of_tests(known)).is_empty(), "{name} {known}");
        }
        for shell in SHELLS {
            assert_eq!(offences("driftline-core", of_tests(shell)).len(), 1);
            assert_eq!(offences("driftline-id", named(shell)).len(), 1);
        }
        assert_eq!(offences("driftline-id", of_tests("axum")).len(), 1);
        assert_eq!(offences("driftline-id", named("rand")).len(), 1);
    }

    #[test]
    fn what_a_feature_brings_is_for_shells() {
        let tokio = |optional| Dependency {
            optional,
            ..named("tokio")
        };
        assert_eq!(offences("driftline-id", tokio(true)).len(), 0);
        assert_eq!(offences("driftline-id", tokio(false)).len(), 1);
        assert_eq!(offences("driftline-core", tokio(true)).len(), 1);
        let features = ["serde".to_owned(), "file".to_owned()];
        let id = |features| Dependency {
            features,
            ..named("driftline-id")
        };
        assert_eq!(offences("driftline-core", id(&features[..1])).len(), 0);
        assert_eq!(offences("driftline-core", id(&features)).len(), 1);
        assert_eq!(offences("driftline-store", id(&features)).len(), 0);
    }

    #[test]
    fn the_binary_knows_no_sql() {
        for (name, known) in [
            ("driftline", "rusqlite"),
            ("driftline", "tokio-postgres"),
            ("driftline-store", "reqwest"),
        ] {
            assert_eq!(offences(name, named(known)).len(), 1, "{name} {known}");
        }
    }

    #[test]
    fn a_longer_name_is_another_dependency() {
        let manifest = "tokio-util.workspace = true\ntokio = \"1\"\n";
        assert_eq!(line_of(manifest, "tokio"), 2);
    }
}
