//! The test kit under the names that this suite uses.

use std::ops::{Deref, DerefMut};

use driftline_core::{
    names::audience::Audience,
    post::{Post, Visibility},
};
use driftline_mastodon::{post_hashes, text_of_json};
pub(crate) use driftline_store::Store;
pub(crate) use driftline_store::testing::{
    EVERYTHING, START_MS, headers, names, new_source, newest_page, open, page, post, posts,
    settings,
};
use driftline_store::{
    LocalAccountId, Owner, Root, SourceKey, StoreError, Tx, local_ids, notify,
    refresh::{self, OutboxItem},
    source::{self, LastPosts, NewSource, Removed, TokenLocation},
    testing::{self, Feed, check_post_texts},
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

/// Accounts that no other test data uses.
pub(crate) const ANN: LocalAccountId = LocalAccountId::new(1 << 50);
pub(crate) const BOB: LocalAccountId = LocalAccountId::new(2 << 50);

/// [`testing::on_both`], with the law of searchable texts after each test.
pub(crate) fn on_both(test: impl Fn(&Store)) {
    testing::on_both(|store| {
        test(store);
        check_post_texts(store, text_of_json);
    });
}

/// Adds a source.
pub(crate) fn add_source(store: &Store, new: NewSource) -> SourceKey {
    let added = write(store, local_ids::root(), move |tx| {
        source::add(tx, &new, START_MS)
    });
    added.expect("a free name")
}

/// The name of an owner's source, as sources are named.
pub(crate) fn owned_name(owner: Owner, name: &str) -> String {
    match owner {
        Owner::Operator => name.to_owned(),
        Owner::Account(account) => format!("account{account}/{name}"),
    }
}

pub(crate) fn write<T: Send + 'static>(
    store: &Store,
    root: Root,
    job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> T {
    store.write_blocking(root, job).expect("a write")
}

pub(crate) fn read<T: Send + 'static>(
    store: &Store,
    job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> T {
    store.read_blocking(job).expect("a read")
}

/// A feed of statuses of Mastodon.
pub(crate) struct World(Feed);

impl World {
    /// [`Feed::new`].
    pub(crate) fn new(store: &Store, name: &str) -> World {
        World(Feed::new(store, name, read_post))
    }

    /// [`Feed::of`].
    pub(crate) fn of(store: &Store, source: SourceKey) -> World {
        World(Feed::of(store, source, read_post))
    }

    /// [`Feed::readable`].
    pub(crate) fn readable(store: &Store, name: &str) -> World {
        World(Feed::readable(store, name, read_post))
    }

    /// A new source of an owner, for an audience.
    pub(crate) fn owned(store: &Store, name: &str, owner: Owner, audience: Audience) -> World {
        World::of_server(store, name, "https://sim.example", owner, audience)
    }

    /// [`World::owned`], of the server of that origin.
    pub(crate) fn of_server(
        store: &Store,
        name: &str,
        origin: &str,
        owner: Owner,
        audience: Audience,
    ) -> World {
        World::added(store, of_server(name, origin, owner, audience))
    }

    /// [`World::of_server`], read with a token of its own unless everyone may read it.
    pub(crate) fn with_token(
        store: &Store,
        name: &str,
        origin: &str,
        owner: Owner,
        audience: Audience,
    ) -> World {
        let is_private = audience != Audience::Public;
        let new = NewSource {
            token: is_private.then(|| TokenLocation::Environment(format!("TOKEN_OF_{name}"))),
            ..of_server(name, origin, owner, audience)
        };
        World::added(store, new)
    }

    /// A source that is added.
    pub(crate) fn added(store: &Store, new: NewSource) -> World {
        World::of(store, add_source(store, new))
    }

    /// Notifies the source of changed posts. Returns the number of its entries that took a USN.
    pub(crate) fn notify(&self, items: Vec<OutboxItem>) -> u64 {
        let key = self.source;
        self.write(move |tx| notify(tx, key, &items))
    }

    pub(crate) fn set_audience(&self, audience: Audience) {
        let key = self.source;
        self.write(move |tx| source::set_audience(tx, key, audience));
    }

    pub(crate) fn remove(&self, last_posts: LastPosts) -> Removed {
        let key = self.source;
        self.write(move |tx| source::remove(tx, key, last_posts))
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

/// Notifies sources of one instance of what waits in its outbox, which is empty then.
pub(crate) fn relay(worlds: &[&World]) {
    let Some(first) = worlds.first() else {
        return;
    };
    let instance = first.source.instance;
    let items = first.read(move |tx| refresh::outbox(tx, instance, i64::MAX, None, 1_000));
    for world in worlds {
        world.notify(items.clone());
    }
    write(&first.store, Root::none(), move |tx| {
        refresh::forget_relayed(tx, instance, &items)
    });
}

fn of_server(name: &str, origin: &str, owner: Owner, audience: Audience) -> NewSource {
    NewSource {
        owner,
        audience,
        origin: origin.to_owned(),
        ..new_source(&owned_name(owner, name))
    }
}

/// [`post`], as its author has edited it.
pub(crate) fn edited(id: u64, text: &str, edited_at_ms: i64) -> Post {
    Post {
        edited_at_ms: Some(edited_at_ms),
        ..post(id, text)
    }
}

/// The post with that visibility.
pub(crate) fn with(visibility: Visibility, post: Post) -> Post {
    Post { visibility, ..post }
}

/// The post as reading its JSON would give it, whatever a test has changed.
pub(crate) fn hashed(mut post: Post) -> Post {
    read_post(&mut post);
    post
}

fn read_post(post: &mut Post) {
    post.text = text_of_json(&post.raw);
    post.hashes = post_hashes(post);
}
