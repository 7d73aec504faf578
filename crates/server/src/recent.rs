//! What the last polls brought, so that a poll without news costs no commit.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use driftline_core::{answer::Listed, upstream_id::UpstreamId};
use driftline_store::refresh::RecheckAfter;

/// The last posts that were committed, with a hash of each as it came.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    notes: HashMap<UpstreamId, Note>,
    order: VecDeque<UpstreamId>,
}

#[derive(Debug, Clone, Copy)]
struct Note {
    hash: u64,
    /// The post is to be committed again from then on, Unix ms.
    until_ms: i64,
}

impl Recent {
    /// Whether each of these, asked for at that time, was committed exactly as it is now, and
    /// committing it again would change nothing.
    pub(crate) fn holds(&self, listed: &[Listed], asked_at_ms: i64) -> bool {
        listed.iter().all(|item| {
            self.notes
                .get(&item.position)
                .is_some_and(|note| note.hash == hash(item) && asked_at_ms < note.until_ms)
        })
    }

    /// Forgets them all: something else than a page has changed some.
    pub(crate) fn clear(&mut self) {
        self.notes.clear();
        self.order.clear();
    }

    /// Something else than a poll has shown these: of those that it showed otherwise, what was noted
    /// holds no longer.
    pub(crate) fn doubt_changed(&mut self, listed: &[Listed]) {
        for item in listed {
            if let Some(note) = self.notes.get_mut(&item.position)
                && note.hash != hash(item)
            {
                note.until_ms = i64::MIN;
            }
        }
    }

    /// Notes posts that were committed, with how they stand since. What the store passed over it is
    /// shown again as soon as it takes it in.
    pub(crate) fn note(&mut self, listed: &[Listed], shown: &[Option<RecheckAfter>], now_ms: i64) {
        for (item, shown) in listed.iter().zip(shown) {
            let latest_ms = now_ms.saturating_add(MAX_MS);
            let recheck_at_ms = shown.and_then(|shown| shown.recheck_at_ms);
            let until_ms = recheck_at_ms.map_or(latest_ms, |recheck_at_ms| {
                // A look-up that is under way keeps it back: not every poll is to ask whether still.
                recheck_at_ms
                    .max(now_ms.saturating_add(SHORTEST_MS))
                    .min(latest_ms)
            });
            let note = Note {
                hash: hash(item),
                until_ms,
            };
            if self.notes.insert(item.position.clone(), note).is_none() {
                self.order.push_back(item.position.clone());
            }
        }
        while self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.notes.remove(&oldest);
            }
        }
    }
}

/// Enough for the overlap of a busy source; 200 sources stay small.
const MOST: usize = 128;
/// Another process may have changed a post, which nothing here tells.
const MAX_MS: i64 = 600_000;
const SHORTEST_MS: i64 = 10_000;

fn hash(item: &Listed) -> u64 {
    let mut hasher = DefaultHasher::new();
    item.post.raw.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use driftline_core::post::{Author, Counts, Post, Visibility};
    use driftline_store::LocalId;

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn listed(id: u64, raw: &str) -> Listed {
        let id = UpstreamId::new(id.to_string());
        Listed {
            position: id.clone(),
            post: Post {
                id,
                uri: None,
                url: None,
                created_at_ms: None,
                edited_at_ms: None,
                visibility: Visibility::Public,
                author: Author {
                    id: "7".into(),
                    acct: "ann".to_owned(),
                    display_name: String::new(),
                    url: None,
                    raw: String::new(),
                },
                boost_of: None,
                counts: Counts::default(),
                raw: raw.to_owned(),
            },
        }
    }

    fn shown(recheck_at_ms: Option<i64>) -> Option<RecheckAfter> {
        let post = LocalId::from(7);
        Some(RecheckAfter {
            post,
            recheck_at_ms,
        })
    }

    #[test]
    fn a_page_that_was_taken_in_whole_costs_no_commit() {
        let mut recent = Recent::default();
        let page = [listed(2, "b"), listed(1, "a")];
        assert!(!recent.holds(&page, NOW_MS));
        recent.note(&page, &[shown(None), None], NOW_MS);
        assert!(recent.holds(&page, NOW_MS + MAX_MS - 1));
        assert!(!recent.holds(&page, NOW_MS + MAX_MS), "another process");
        assert!(!recent.holds(&[listed(2, "c")], NOW_MS), "it changed");
        recent.clear();
        assert!(!recent.holds(&page, NOW_MS));
    }

    #[test]
    fn what_a_rescan_showed_otherwise_is_news_when_it_is_as_before() {
        let mut recent = Recent::default();
        let page = [listed(2, "b"), listed(1, "a")];
        recent.note(&page, &[None, None], NOW_MS);
        recent.doubt_changed(&page);
        assert!(recent.holds(&page, NOW_MS));
        recent.doubt_changed(&[listed(1, "c")]);
        assert!(!recent.holds(&page, NOW_MS));
        assert!(recent.holds(&page[..1], NOW_MS));
    }

    #[test]
    fn what_was_passed_over_is_shown_again_when_it_is_taken_in() {
        let mut recent = Recent::default();
        let page = [listed(2, "b"), listed(1, "a")];
        recent.note(&page, &[None, shown(Some(NOW_MS + 40_000))], NOW_MS);
        assert!(recent.holds(&page, NOW_MS + 39_999));
        assert!(!recent.holds(&page, NOW_MS + 40_000));
        // Somebody looks it up: that is asked again now and then, and not with every poll.
        let later_ms = NOW_MS + 50_000;
        recent.note(&page, &[None, shown(Some(NOW_MS + 40_000))], later_ms);
        assert!(recent.holds(&page, later_ms + SHORTEST_MS - 1));
        assert!(!recent.holds(&page, later_ms + SHORTEST_MS));
        recent.note(&page, &[None, shown(None)], later_ms + SHORTEST_MS);
        assert!(recent.holds(&page, later_ms + MAX_MS));
    }
}
