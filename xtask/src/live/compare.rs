//! What a mirror holds, next to what the server shows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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

/// A way in which a source differs from its timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// Shown, and not stored.
    Missed,
    /// Stored as live more than once.
    Doubled,
    /// Shown somewhere, and stored as deleted.
    FalselyDeleted,
    /// Shown here, and said to have left.
    FalselyLeft,
    /// Stored with more versions than edits were asked for.
    FalselyEdited,
    /// Not shown here, and stored as live: not noticed yet.
    Unseen,
}

/// The posts in which a source differs from its timeline, by their IDs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference(BTreeMap<Fault, Vec<String>>);

impl Fault {
    pub(super) const ALL: [(Fault, &str); 6] = [
        (Fault::Missed, "missed"),
        (Fault::Doubled, "doubled"),
        (Fault::FalselyDeleted, "f.deleted"),
        (Fault::FalselyLeft, "f.left"),
        (Fault::FalselyEdited, "f.edited"),
        (Fault::Unseen, "unseen"),
    ];
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

    /// Whether they are one post.
    fn is(&self, other: &Shown) -> bool {
        self.names()
            .any(|name| other.names().any(|its| its == name))
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
    /// Compares a source with its timeline. `anywhere` holds what any timeline shows, `edited` the
    /// stored posts with too many versions.
    pub(super) fn new(
        shown: &[Shown],
        stored: &[Stored],
        anywhere: &[Shown],
        edited: &HashSet<String>,
    ) -> Difference {
        let names = |shown: &[Shown]| -> HashSet<String> {
            let names = shown.iter().flat_map(Shown::names);
            names.map(str::to_owned).collect()
        };
        let (here, anywhere) = (names(shown), names(anywhere));
        let is_in =
            |set: &HashSet<String>, post: &Shown| post.names().any(|name| set.contains(name));
        let mut held: HashMap<&str, &Stored> = HashMap::new();
        let mut difference = Difference::default();
        for (index, post) in stored.iter().enumerate() {
            let id = &post.shown.id;
            if post.is_live() {
                // A timeline may list a post more than once: mentions by notification.
                let listed = shown.iter().filter(|other| post.shown.is(other)).count();
                let before = stored[..index].iter().filter(|other| other.is_live());
                if before.filter(|other| post.shown.is(&other.shown)).count() >= listed.max(1) {
                    difference.add(Fault::Doubled, id);
                }
                if !is_in(&here, &post.shown) {
                    difference.add(Fault::Unseen, id);
                }
            }
            if edited.contains(&post.post_id) {
                difference.add(Fault::FalselyEdited, id);
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
                None => difference.add(Fault::Missed, &post.id),
                Some(held) if held.has_left && !held.is_deleted => {
                    difference.add(Fault::FalselyLeft, &post.id);
                }
                Some(_) => {}
            }
        }
        let deleted = held.values().filter(|post| post.is_deleted);
        let falsely = deleted.filter(|post| is_in(&anywhere, &post.shown));
        let falsely: BTreeSet<&String> = falsely.map(|post| &post.shown.id).collect();
        for id in falsely {
            difference.add(Fault::FalselyDeleted, id);
        }
        difference
    }

    fn add(&mut self, fault: Fault, id: &str) {
        self.0.entry(fault).or_default().push(id.to_owned());
    }

    /// The posts at fault in one way.
    pub(super) fn posts(&self, fault: Fault) -> &[String] {
        self.0.get(&fault).map_or(&[], Vec::as_slice)
    }

    /// True if nothing is missed, doubled, or falsely said to be gone or edited.
    pub(super) fn is_good(&self) -> bool {
        self.0.keys().all(|fault| *fault == Fault::Unseen)
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
            post_id: id.to_owned(),
            is_deleted: false,
            has_left: false,
        }
    }

    fn deleted(id: &str) -> Stored {
        Stored {
            is_deleted: true,
            ..stored(id)
        }
    }

    fn left(id: &str) -> Stored {
        Stored {
            has_left: true,
            ..stored(id)
        }
    }

    fn compare(here: &[&str], rows: &[Stored], elsewhere: &[&str]) -> Difference {
        let all = |ids: &[&str]| ids.iter().map(|id| shown(id)).collect::<Vec<_>>();
        let anywhere = [all(here), all(elsewhere)].concat();
        Difference::new(&all(here), rows, &anywhere, &["edited".to_owned()].into())
    }

    #[test]
    fn each_fault_is_found() {
        #[rustfmt::skip]
        let faults = [
            (&["b", "a"][..], &[stored("a")][..], &[][..], Fault::Missed, "b"),
            (&["a"], &[stored("a"), stored("a")], &[], Fault::Doubled, "a"),
            (&["a'"], &[stored("a"), stored("a'")], &[], Fault::Doubled, "a'"),
            (&[], &[deleted("a")], &["a"], Fault::FalselyDeleted, "a"),
            (&["a"], &[left("a")], &[], Fault::FalselyLeft, "a"),
            (&["edited"], &[stored("edited")], &[], Fault::FalselyEdited, "edited"),
        ];
        for (here, rows, elsewhere, fault, id) in faults {
            let difference = compare(here, rows, elsewhere);
            assert_eq!(difference.posts(fault), [id]);
            assert!(!difference.is_good(), "{fault:?}");
        }
    }

    #[test]
    fn posts_that_are_gone_or_returned_or_renamed_are_no_fault() {
        let pair = [stored("a"), stored("b")];
        let returned = [deleted("a"), left("b"), stored("a"), stored("b")];
        for (here, rows, elsewhere) in [
            (&["b", "a"][..], &pair[..], &[][..]),
            (&[], &[deleted("a"), left("b")], &["b"]),
            (&["a", "b"], &returned, &[]),
            (&["a'"], &[stored("a")], &[]),
        ] {
            assert_eq!(compare(here, rows, elsewhere), Difference::default());
        }
        let not_noticed = compare(&[], &[stored("a")], &[]);
        assert_eq!(not_noticed.posts(Fault::Unseen), ["a"]);
        assert!(not_noticed.is_good());
    }
}
