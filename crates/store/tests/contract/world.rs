//! The test kit under the names that this suite uses.

use std::ops::{Deref, DerefMut};

use driftline_core::{audience::Audience, post::Post};
use driftline_mastodon::post_hashes;
pub(crate) use driftline_store::testing::{
    EVERYTHING, START_MS, headers, names, new_source, newest_page, on_both, open, page, post,
    posts, settings,
};
use driftline_store::{
    Owner, SourceKey, Store, StoreError, Tx, local_ids,
    source::{self, NewSource},
    testing::Feed,
    timeline::{self, HomeRule, Range, Stretch, Viewer},
    viewer::ReadableSources,
};

/// The home timeline of a viewer.
pub(crate) fn home_of(
    tx: &mut Tx<'_>,
    range: &Range,
    viewer: Viewer,
    takes: &HomeRule,
) -> Result<Stretch, StoreError> {
    let readable = ReadableSources::load(tx, viewer)?;
    timeline::home(tx, range, &readable, takes, None)
}

/// A feed of statuses of Mastodon.
pub(crate) struct World(Feed);

impl World {
    /// [`Feed::new`].
    pub(crate) fn new(store: &Store, name: &str) -> World {
        World::with(Feed::new(store, name, post_hashes))
    }

    /// [`Feed::of`].
    pub(crate) fn of(store: &Store, source: SourceKey) -> World {
        World::with(Feed::of(store, source, post_hashes))
    }

    /// [`Feed::readable`].
    pub(crate) fn readable(store: &Store, name: &str) -> World {
        World::with(Feed::readable(store, name, post_hashes))
    }

    /// A new source of an owner, for an audience.
    pub(crate) fn owned(store: &Store, name: &str, owner: Owner, audience: Audience) -> World {
        let name = match owner {
            Owner::Operator => name.to_owned(),
            Owner::Account(account) => format!("account{account}/{name}"),
        };
        let new = NewSource {
            owner,
            audience,
            ..new_source(&name)
        };
        let added = store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, 1));
        World::of(store, added.expect("a write").expect("a free name"))
    }

    fn with(feed: Feed) -> World {
        World(Feed { ..feed })
    }
}

impl Deref for World {
    type Target = Feed;

    fn deref(&self) -> &Feed {
        &self.0
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Feed {
        &mut self.0
    }
}

/// The post as reading its JSON would give it, whatever a test has changed.
pub(crate) fn hashed(mut post: Post) -> Post {
    post.hashes = post_hashes(&post);
    post
}
