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
pub(super) const FEATURES: [(&str, &str); 1] = [("driftline-id", "tokio")];

/// Holds a crate's manifest against the table of who may know whom.
pub(super) fn check(member: &Member<'_>, members: &[&str]) -> Vec<Offence> {
    let Some(rule) = RULES.iter().find(|rule| rule.name == member.name) else {
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
        let wrong_edge = of_workspace && !dependency.dev && !rule.may_know(name);
        let of_feature = FEATURES.contains(&(rule.name, name));
        let never =
            !dependency.dev && rule.never.contains(&name) && !(of_feature && dependency.optional);
        let never_in_tests = dependency.dev && rule.never_in_tests.contains(&name) && !of_feature;
        if wrong_edge || never || never_in_tests {
            let tests = if dependency.dev {
                ", even in tests"
            } else {
                ""
            };
            let text = format!("`{}` must not know `{name}`{tests}: remove it", rule.name);
            let line = line_of(member.text, name);
            offences.push(Offence::new(member.path, line, text));
        }
        if rule.name == "driftline-core" && name == "driftline-id" && !dependency.dev {
            for feature in dependency.features.iter().filter(|name| *name != "serde") {
                let text = format!("`{}` must not ask `{name}` for `{feature}`", rule.name);
                offences.push(Offence::new(member.path, line_of(member.text, name), text));
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

/// What a crate may know.
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
    fn may_know(&self, name: &str) -> bool {
        self.knows == ANY || self.knows.contains(&name)
    }
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

const RULES: [Rule; 16] = [
    Rule {
        name: "driftline-id",
        knows: &[],
        never: PURE,
        never_in_tests: SHELLS,
    },
    Rule {
        name: "driftline-core",
        knows: &["driftline-id"],
        never: PURE,
        never_in_tests: SHELLS,
    },
    Rule {
        name: "driftline-db",
        knows: &[],
        never: &["axum", "reqwest"],
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-mastodon",
        knows: &["driftline-core"],
        never: PURE,
        never_in_tests: SHELLS,
    },
    Rule {
        name: "driftline-store",
        knows: &["driftline-core", "driftline-db", "driftline-id"],
        never: &["axum", "reqwest"],
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-net",
        knows: &[],
        never: &["axum", "rusqlite", "tokio-postgres"],
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-upstream",
        knows: &["driftline-core", "driftline-mastodon", "driftline-net"],
        never: SQL_AND_CLIENT,
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-replica",
        knows: &["driftline-core", "driftline-db"],
        never: &["axum"],
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-sim",
        knows: &["driftline-core"],
        never: SQL,
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-runtime",
        knows: &["driftline-store"],
        never: SQL_AND_CLIENT,
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-mirror",
        knows: &[
            "driftline-core",
            "driftline-net",
            "driftline-store",
            "driftline-upstream",
            "driftline-runtime",
        ],
        never: SQL_AND_CLIENT,
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-api",
        knows: &[
            "driftline-core",
            "driftline-id",
            "driftline-mastodon",
            "driftline-store",
            "driftline-runtime",
        ],
        never: SQL_AND_CLIENT,
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-id-service",
        knows: &[
            "driftline-id",
            "driftline-store",
            "driftline-runtime",
            "driftline-api",
        ],
        never: SQL_AND_CLIENT,
        never_in_tests: &[],
    },
    Rule {
        name: "driftline-server",
        knows: &[
            "driftline-core",
            "driftline-mastodon",
            "driftline-store",
            "driftline-upstream",
            "driftline-runtime",
            "driftline-mirror",
            "driftline-api",
            "driftline-id-service",
        ],
        never: SQL,
        never_in_tests: &[],
    },
    Rule {
        name: "driftline",
        knows: ANY,
        never: SQL,
        never_in_tests: &[],
    },
    Rule {
        name: "xtask",
        knows: &[],
        never: &[],
        never_in_tests: &[],
    },
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

    fn offences(name: &str, dependencies: &[(&str, bool)]) -> Vec<String> {
        let text: String = dependencies
            .iter()
            .map(|(name, _)| format!("{name}.workspace = true\n"))
            .collect();
        let member = Member {
            name,
            path: "Cargo.toml",
            text: &text,
            dependencies: dependencies
                .iter()
                .map(|&(name, dev)| Dependency {
                    name,
                    dev,
                    optional: false,
                    features: &[],
                })
                .collect(),
        };
        let found = check(&member, &MEMBERS);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_point_one_way() {
        let found = offences(
            "driftline-core",
            &[("driftline-id", false), ("driftline-store", false)],
        );
        assert_eq!(
            found,
            ["Cargo.toml:2: `driftline-core` must not know `driftline-store`: remove it"]
        );
        assert!(offences("driftline-store", &[("driftline-core", false)]).is_empty());
        assert!(offences("driftline", &[("driftline-store", false)]).is_empty());
    }

    #[test]
    fn tests_may_know_more() {
        assert!(offences("driftline-store", &[("driftline", true), ("axum", true)]).is_empty());
        assert!(offences("driftline-core", &[("rand", true)]).is_empty());
    }

    #[test]
    fn the_pure_crates_know_no_shell_even_in_tests() {
        for shell in SHELLS {
            assert_eq!(offences("driftline-core", &[(shell, true)]).len(), 1);
            assert_eq!(offences("driftline-id", &[(shell, false)]).len(), 1);
        }
        assert_eq!(offences("driftline-id", &[("axum", true)]).len(), 1);
        assert_eq!(offences("driftline-id", &[("rand", false)]).len(), 1);
    }

    #[test]
    fn what_a_feature_brings_is_for_shells() {
        let found = |name: &str, dependency: Dependency<'_>| {
            let member = Member {
                name,
                path: "Cargo.toml",
                text: "",
                dependencies: vec![dependency],
            };
            check(&member, &MEMBERS).len()
        };
        let tokio = |optional| Dependency {
            name: "tokio",
            dev: false,
            optional,
            features: &[],
        };
        assert_eq!(found("driftline-id", tokio(true)), 0);
        assert_eq!(found("driftline-id", tokio(false)), 1);
        assert_eq!(found("driftline-core", tokio(true)), 1);
        let features = ["serde".to_owned(), "file".to_owned()];
        let id = |features| Dependency {
            name: "driftline-id",
            dev: false,
            optional: false,
            features,
        };
        assert_eq!(found("driftline-core", id(&features[..1])), 0);
        assert_eq!(found("driftline-core", id(&features)), 1);
        assert_eq!(found("driftline-store", id(&features)), 0);
    }

    #[test]
    fn the_binary_knows_no_sql() {
        for driver in ["rusqlite", "tokio-postgres"] {
            assert_eq!(offences("driftline", &[(driver, false)]).len(), 1);
        }
        assert_eq!(offences("driftline-store", &[("reqwest", false)]).len(), 1);
    }

    #[test]
    fn a_crate_outside_the_table_is_an_offence() {
        assert_eq!(offences("driftline-extra", &[]).len(), 1);
    }

    #[test]
    fn a_longer_name_is_another_dependency() {
        let manifest = "tokio-util.workspace = true\ntokio = \"1\"\n";
        assert_eq!(line_of(manifest, "tokio"), 2);
    }
}
