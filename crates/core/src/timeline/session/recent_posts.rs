//! The posts of the last polls, so that a poll without changes costs no commit.

use std::hash::{DefaultHasher, Hash, Hasher};

use indexmap::IndexMap;

use crate::{answer::Listed, upstream_id::UpstreamId};

/// The last committed posts, with a hash of each as received.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentPosts(IndexMap<UpstreamId, Remembered>);

#[derive(Debug, Clone, Copy)]
struct Remembered {
    hash: u64,
    /// The time from which the post must be committed again, in Unix ms.
    until_ms: i64,
}

impl RecentPosts {
    /// True if a page with these posts that was requested at `asked_at_ms` needs no commit. Each
    /// post was committed with the same content and need not be committed again yet.
    pub(super) fn need_no_commit(&self, listed: &[Listed], asked_at_ms: i64) -> bool {
        listed.iter().all(|item| {
            self.0
                .get(&item.position)
                .is_some_and(|known| known.hash == hash(item) && asked_at_ms < known.until_ms)
        })
    }

    /// Removes all posts, because others than a page have changed some.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Invalidates the posts whose content differs from the remembered one. For pages of other
    /// requests than polls.
    pub(super) fn invalidate_changed(&mut self, listed: &[Listed]) {
        for item in listed {
            if let Some(remembered) = self.0.get_mut(&item.position)
                && remembered.hash != hash(item)
            {
                remembered.until_ms = i64::MIN;
            }
        }
    }

    /// Moves its times with a step of the wall clock, ms.
    pub(super) fn clock_stepped(&mut self, step_ms: i64) {
        for remembered in self.0.values_mut() {
            remembered.until_ms = remembered.until_ms.saturating_add(step_ms);
        }
    }

    /// Remembers committed posts. A post that the store skipped is committed again once the store
    /// accepts it.
    pub(super) fn remember(&mut self, listed: &[Listed], rechecks_ms: &[Option<i64>], now_ms: i64) {
        for (item, recheck_at_ms) in listed.iter().zip(rechecks_ms) {
            let latest_ms = now_ms.saturating_add(MAX_MS);
            let until_ms = recheck_at_ms.map_or(latest_ms, |recheck_at_ms| {
                // A look-up in flight delays the post. Not every poll should check for its end.
                recheck_at_ms
                    .max(now_ms.saturating_add(MIN_MS))
                    .min(latest_ms)
            });
            let remembered = Remembered {
                hash: hash(item),
                until_ms,
            };
            self.0.insert(item.position.clone(), remembered);
        }
        let surplus = self.0.len().saturating_sub(MAX_POSTS);
        self.0.drain(..surplus);
    }
}

/// Enough for the overlap of a busy source. 200 sources stay small.
const MAX_POSTS: usize = 128;
/// Another process may have changed a post without notice.
const MAX_MS: i64 = 600_000;
const MIN_MS: i64 = 10_000;

fn hash(item: &Listed) -> u64 {
    let mut hasher = DefaultHasher::new();
    item.post.raw.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::Post;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn listed(id: &str, text: &str) -> Listed {
        Listed {
            position: id.into(),
            post: Post::bare(id, "7", text),
        }
    }

    #[test]
    fn an_unchanged_page_costs_no_commit() {
        let mut recent_posts = RecentPosts::default();
        let page = [listed("2", "b"), listed("1", "a")];
        assert!(!recent_posts.need_no_commit(&page, NOW_MS));
        recent_posts.remember(&page, &[None, None], NOW_MS);
        assert!(recent_posts.need_no_commit(&page, NOW_MS + MAX_MS - 1));
        assert!(
            !recent_posts.need_no_commit(&page, NOW_MS + MAX_MS),
            "another process"
        );
        assert!(
            !recent_posts.need_no_commit(&[listed("2", "c")], NOW_MS),
            "it changed"
        );
        recent_posts.clear();
        assert!(!recent_posts.need_no_commit(&page, NOW_MS));
    }

    #[test]
    fn a_post_that_a_rescan_showed_changed_is_committed_when_it_changes_back() {
        let mut recent_posts = RecentPosts::default();
        let page = [listed("2", "b"), listed("1", "a")];
        recent_posts.remember(&page, &[None, None], NOW_MS);
        recent_posts.invalidate_changed(&page);
        assert!(recent_posts.need_no_commit(&page, NOW_MS));
        recent_posts.invalidate_changed(&[listed("1", "c")]);
        assert!(!recent_posts.need_no_commit(&page, NOW_MS));
        assert!(recent_posts.need_no_commit(&page[..1], NOW_MS));
    }

    #[test]
    fn a_skipped_post_is_committed_again_when_the_store_accepts_it() {
        let mut recent_posts = RecentPosts::default();
        let page = [listed("2", "b"), listed("1", "a")];
        recent_posts.remember(&page, &[None, Some(NOW_MS + 40_000)], NOW_MS);
        assert!(recent_posts.need_no_commit(&page, NOW_MS + 39_999));
        assert!(!recent_posts.need_no_commit(&page, NOW_MS + 40_000));
        // A worker looks up the post. That is checked from time to time, and not with every poll.
        let later_ms = NOW_MS + 50_000;
        recent_posts.remember(&page, &[None, Some(NOW_MS + 40_000)], later_ms);
        assert!(recent_posts.need_no_commit(&page, later_ms + MIN_MS - 1));
        assert!(!recent_posts.need_no_commit(&page, later_ms + MIN_MS));
        recent_posts.remember(&page, &[None, None], later_ms + MIN_MS);
        assert!(recent_posts.need_no_commit(&page, later_ms + MIN_MS));
    }

    #[test]
    fn a_step_of_the_clock_forgets_nothing_and_keeps_nothing_longer() {
        let mut recent_posts = RecentPosts::default();
        let page = [listed("1", "a")];
        recent_posts.remember(&page, &[None], NOW_MS);
        recent_posts.clock_stepped(-1_200_000);
        assert!(recent_posts.need_no_commit(&page, NOW_MS - 1_200_000 + MAX_MS - 1));
        assert!(!recent_posts.need_no_commit(&page, NOW_MS - 1_200_000 + MAX_MS));
    }
}
