//! What a mirror holds, next to what the server shows.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// A post that the server shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shown {
    pub(super) id: String,
    /// Its name, if it is no boost: IDs may change, names may not.
    pub(super) uri: Option<String>,
}

/// A post that the mirror holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) shown: Shown,
    /// Its ID at the mirror.
    pub(super) post_id: String,
    pub(super) is_deleted: bool,
    /// Whether the mirror says that the timeline shows it no more.
    pub(super) has_left: bool,
}

/// How a source differs from its timeline.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Shown, and not stored.
    pub(super) missed: Vec<String>,
    /// Stored as live more than once.
    pub(super) doubled: Vec<String>,
    /// Shown somewhere, and stored as deleted.
    pub(super) falsely_deleted: Vec<String>,
    /// Shown here, and said to have left.
    pub(super) falsely_left: Vec<String>,
    /// Not shown here, and stored as live.
    pub(super) shown_no_more: Vec<String>,
}

impl Shown {
    /// None without an ID.
    pub(super) fn of(status: &Value) -> Option<Shown> {
        let is_boost = status["reblog"].is_object();
        let uri = status["uri"].as_str().filter(|_| !is_boost);
        Some(Shown {
            id: status["id"].as_str()?.to_owned(),
            uri: uri.map(str::to_owned),
        })
    }

    /// What is the same of two shows of one post.
    fn names(&self) -> impl Iterator<Item = &str> {
        [Some(lasting(&self.id)), self.uri.as_deref()]
            .into_iter()
            .flatten()
    }
}

impl Stored {
    /// None for what is no row of an export.
    pub(super) fn of(row: &Value) -> Option<Stored> {
        // What a deleted post was is not known any more.
        let status = &row["status"];
        let is_boost = status["reblog"].is_object();
        let uri = row["uri"]
            .as_str()
            .filter(|_| status.is_object() && !is_boost);
        Some(Stored {
            shown: Shown {
                id: row["upstream_id"].as_str()?.to_owned(),
                uri: uri.map(str::to_owned),
            },
            post_id: row["post_id"].as_str()?.to_owned(),
            is_deleted: !row["deleted_at_ms"].is_null(),
            has_left: !row["left_at_ms"].is_null(),
        })
    }

    fn is_live(&self) -> bool {
        !self.is_deleted && !self.has_left
    }
}

/// The part of an ID that stays: snac's begin with the time of the last change, 10 digits.
fn lasting(id: &str) -> &str {
    let is_snac = id.len() == 42 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_snac { &id[10..] } else { id }
}

impl Difference {
    /// Compares a source with its timeline. `anywhere` holds what any timeline shows.
    pub(super) fn of(shown: &[Shown], stored: &[Stored], anywhere: &[Shown]) -> Difference {
        let names = |shown: &[Shown]| -> HashSet<String> {
            shown
                .iter()
                .flat_map(Shown::names)
                .map(str::to_owned)
                .collect()
        };
        let (here, anywhere) = (names(shown), names(anywhere));
        let is_in =
            |set: &HashSet<String>, post: &Shown| post.names().any(|name| set.contains(name));
        let mut held: HashMap<&str, &Stored> = HashMap::new();
        let mut difference = Difference::default();
        for post in stored {
            let id = &post.shown.id;
            if post.is_live() {
                let twice = post
                    .shown
                    .names()
                    .any(|name| held.get(name).is_some_and(|other| other.is_live()));
                if twice {
                    difference.doubled.push(id.clone());
                }
                if !is_in(&here, &post.shown) {
                    difference.shown_no_more.push(id.clone());
                }
            }
            for name in post.shown.names() {
                let newest = held.entry(name).or_insert(post);
                // One that returned is stored again.
                if !newest.is_live() {
                    *newest = post;
                }
            }
        }
        for post in shown {
            match post.names().find_map(|name| held.get(name)) {
                None => difference.missed.push(post.id.clone()),
                Some(held) if held.has_left && !held.is_deleted => {
                    difference.falsely_left.push(post.id.clone());
                }
                Some(_) => {}
            }
        }
        let mut deleted: Vec<_> = held.values().filter(|post| post.is_deleted).collect();
        deleted.sort_by_key(|post| &post.shown.id);
        deleted.dedup_by_key(|post| &post.shown.id);
        let false_ones = deleted
            .into_iter()
            .filter(|post| is_in(&anywhere, &post.shown));
        difference.falsely_deleted = false_ones.map(|post| post.shown.id.clone()).collect();
        difference
    }

    /// Whether nothing is missed, doubled, or falsely said to be gone.
    pub(super) fn is_good(&self) -> bool {
        let bad = [
            &self.missed,
            &self.doubled,
            &self.falsely_deleted,
            &self.falsely_left,
        ];
        bad.iter().all(|of| of.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(id: &str) -> Shown {
        let uri = Some(format!("uri:{}", id.trim_end_matches('\'')));
        Shown {
            id: id.to_owned(),
            uri,
        }
    }

    fn stored(id: &str) -> Stored {
        Stored {
            shown: shown(id),
            post_id: "1".to_owned(),
            is_deleted: false,
            has_left: false,
        }
    }

    fn compare(here: &[&str], rows: &[Stored], elsewhere: &[&str]) -> Difference {
        let all = |ids: &[&str]| ids.iter().map(|id| shown(id)).collect::<Vec<_>>();
        let anywhere = [all(here), all(elsewhere)].concat();
        Difference::of(&all(here), rows, &anywhere)
    }

    #[test]
    fn equal_timelines_do_not_differ() {
        let difference = compare(&["b", "a"], &[stored("a"), stored("b")], &[]);
        assert_eq!(difference, Difference::default());
        assert!(difference.is_good());
    }

    #[test]
    fn each_fault_is_found() {
        let missed = compare(&["b", "a"], &[stored("a")], &[]);
        assert_eq!(missed.missed, ["b"]);
        let doubled = compare(&["a"], &[stored("a"), stored("a")], &[]);
        assert_eq!(doubled.doubled, ["a"]);
        let by_another_id = compare(&["a'"], &[stored("a"), stored("a'")], &[]);
        assert_eq!(by_another_id.doubled, ["a'"]);
        let deleted = Stored {
            is_deleted: true,
            ..stored("a")
        };
        let elsewhere = compare(&[], std::slice::from_ref(&deleted), &["a"]);
        assert_eq!(elsewhere.falsely_deleted, ["a"]);
        let left = Stored {
            has_left: true,
            ..stored("a")
        };
        let here = compare(&["a"], &[left], &[]);
        assert_eq!(here.falsely_left, ["a"]);
        for bad in [&missed, &doubled, &by_another_id, &elsewhere, &here] {
            assert!(!bad.is_good());
        }
    }

    #[test]
    fn what_is_gone_or_returned_or_renamed_is_no_fault() {
        let deleted = Stored {
            is_deleted: true,
            ..stored("a")
        };
        let left = Stored {
            has_left: true,
            ..stored("b")
        };
        let gone = compare(&[], &[deleted.clone(), left.clone()], &["b"]);
        assert_eq!(gone, Difference::default());
        let returned = compare(&["a", "b"], &[deleted, left, stored("a"), stored("b")], &[]);
        assert_eq!(returned, Difference::default());
        let renamed = compare(&["a'"], &[stored("a")], &[]);
        assert_eq!(renamed, Difference::default());
        let not_noticed = compare(&[], &[stored("a")], &[]);
        assert_eq!(not_noticed.shown_no_more, ["a"]);
        assert!(not_noticed.is_good());
    }
}
