use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use driftline_core::{
    post::Post,
    predicate::NameContext,
    social::{AccountState, ListSettings, RepliesPolicy},
};
use driftline_db::testing::Fresh;
use driftline_mastodon::{post_hashes, text_of_json};
use driftline_store::{
    Root, Target, local_ids,
    social::{
        list,
        notification::{self, NotificationFilter},
    },
    testing::{EVERYTHING, Feed, START_MS, new_account, open, post},
};
use tempfile::TempDir;

use super::*;

/// A store with an account, whose list notifies of posts with the word `quake`.
struct Setup {
    _folder: TempDir,
    store: Store,
    feed: Feed,
    list: ListKey,
}

impl Setup {
    fn new() -> Setup {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = Store::open(Target::Sqlite { path }).unwrap();
        let mut feed = Feed::readable(&store, "public", read_post);
        // The list begins at a time of the test's clock.
        store_post(&mut feed, 1, "first");
        let account = add_account(&store);
        Setup {
            _folder: folder,
            list: add_list(&store, account),
            store,
            feed,
        }
    }

    fn bells(&self) -> Bells {
        Bells::new(self.store.clone(), Address::local())
    }

    /// Reads the lists as a turn does first.
    async fn read_lists(&self, bells: &mut Bells) {
        let lists = self.store.read(list_bell::standing_lists).await;
        bells.standing.update(lists.unwrap());
    }

    async fn set_word(&self, word: &'static str) {
        let key = self.list;
        let set = move |tx: &mut Tx<'_>| list::set(tx, key.account, key.list, settings(word));
        let changed = self
            .store
            .write(local_account::root(key.account), set)
            .await;
        assert!(changed.unwrap().unwrap().is_some());
    }

    fn post(&mut self, id: u64, text: &str) {
        store_post(&mut self.feed, id, text);
    }

    async fn notifications(&self) -> usize {
        notifications(&self.store, self.list.account).await
    }
}

/// Adds an account that may read.
fn add_account(store: &Store) -> LocalAccountId {
    let new = new_account("bob");
    let create = move |tx: &mut Tx<'_>| local_account::create(tx, &new, START_MS);
    let created = store.write_blocking(local_ids::root(), create).unwrap();
    let account = created.unwrap().id;
    let activate =
        move |tx: &mut Tx<'_>| local_account::change_state(tx, account, AccountState::Active);
    let activated = store.write_blocking(local_account::root(account), activate);
    activated.unwrap().unwrap();
    account
}

/// Adds a list that notifies of posts with the word `quake`.
fn add_list(store: &Store, account: LocalAccountId) -> ListKey {
    let create = move |tx: &mut Tx<'_>| list::create(tx, account, settings("quake"), START_MS);
    let created = store.write_blocking(local_account::root(account), create);
    let list = created.unwrap().unwrap().id;
    ListKey { account, list }
}

async fn notifications(store: &Store, account: LocalAccountId) -> usize {
    let page = move |tx: &mut Tx<'_>| {
        notification::page(tx, account, &NotificationFilter::default(), &EVERYTHING)
    };
    store.read(page).await.unwrap().len()
}

fn store_post(feed: &mut Feed, id: u64, text: &str) {
    feed.now_ms += 1_000;
    feed.poll(vec![post(id, text)]);
}

fn read_post(post: &mut Post) {
    post.text = text_of_json(&post.raw);
    post.hashes = post_hashes(post);
}

fn settings(word: &str) -> ListSettings {
    let names = NameContext {
        origin: "https://a.example",
        viewer: None,
    };
    ListSettings {
        title: "Words".to_owned(),
        replies_policy: RepliesPolicy::List,
        exclusive: false,
        predicate: Some(Predicate::parse(word, &names).unwrap()),
        notify: true,
    }
}

#[tokio::test]
async fn a_predicate_saved_during_a_turn_misses_no_post() {
    let mut setup = Setup::new();
    let mut bells = setup.bells();
    setup.read_lists(&mut bells).await;
    setup.set_word("storm").await;
    setup.post(2, "a storm");
    bells.ring_lists().await.unwrap();
    assert_eq!(setup.notifications().await, 0);
    for _ in 0..2 {
        bells.ring_all().await.unwrap();
        assert_eq!(setup.notifications().await, 1);
    }
}

#[tokio::test]
async fn a_list_that_another_process_has_notified_misses_no_post() {
    let mut setup = Setup::new();
    let [mut first, mut second] = [setup.bells(), setup.bells()];
    setup.read_lists(&mut first).await;
    setup.post(2, "a quake");
    second.ring_all().await.unwrap();
    assert_eq!(setup.notifications().await, 1);
    setup.post(3, "another quake");
    // The list is not the one that this process has read.
    first.ring_lists().await.unwrap();
    assert_eq!(setup.notifications().await, 1);
    for bells in [&mut first, &mut second] {
        bells.ring_all().await.unwrap();
        assert_eq!(setup.notifications().await, 2);
    }
}

/// The queries of a batch share no snapshot if a database has several nodes. Nor do the queries of a write, so here a
/// list and then an edit come between the two.
#[tokio::test]
async fn a_list_saved_between_the_queries_of_a_batch_misses_no_edit() {
    let fresh = Fresh::postgres();
    let watched = open(&fresh);
    let store = Store::open(fresh.target.clone()).unwrap();
    let mut feed = Feed::readable(&store, "public", read_post);
    store_post(&mut feed, 1, "first");
    let (source, account) = (feed.source, add_account(&store));

    let saved = Arc::new(OnceLock::new());
    let (list, other) = (Arc::clone(&saved), store.clone());
    let queries = AtomicUsize::new(0);
    watched.watch_statements(Box::new(move |statement| {
        let parts = ["from edited_post", "from list where"];
        let is_query = parts.iter().any(|part| statement.sql.contains(part));
        if !is_query || queries.fetch_add(1, Ordering::SeqCst) != 1 {
            return;
        }
        list.get_or_init(|| add_list(&other, account));
        let mut feed = Feed::of(&other, source, read_post);
        feed.now_ms += 60_000;
        feed.poll(vec![Post {
            edited_at_ms: Some(START_MS),
            ..post(1, "a quake")
        }]);
    }));
    let batch = watched.write(Root::none(), EditBatch::read).await.unwrap();
    let list = *saved.get().expect("a batch has two queries");
    let lists: Vec<ListKey> = batch.lists.iter().map(|list| list.key).collect();
    assert_eq!((lists, batch.edited), (vec![list], vec![]));

    // The next turn knows the list and the edit.
    let mut bells = Bells::new(store.clone(), Address::local());
    bells.ring_all().await.unwrap();
    assert_eq!(notifications(&store, account).await, 1);
    watched.close().await;
    store.close().await;
}
