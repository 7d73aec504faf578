use driftline_core::{
    post::Post,
    predicate::NameContext,
    social::{AccountState, ListSettings, RepliesPolicy},
};
use driftline_mastodon::{post_hashes, text_of_json};
use driftline_store::{
    Target, local_ids,
    social::{
        list,
        notification::{self, NotificationFilter},
    },
    testing::{EVERYTHING, Feed, START_MS, new_account, post},
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
    async fn new() -> Setup {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = Store::open(Target::Sqlite { path }).unwrap();
        let mut feed = Feed::readable(&store, "public", read_post);
        // The list begins at a time of the test's clock.
        store_post(&mut feed, 1, "first");
        let new = new_account("bob");
        let create = move |tx: &mut Tx<'_>| local_account::create(tx, &new, START_MS);
        let created = store.write(local_ids::root(), create).await.unwrap();
        let account = created.unwrap().id;
        let root = local_account::root(account);
        let activate =
            move |tx: &mut Tx<'_>| local_account::change_state(tx, account, AccountState::Active);
        let activated = store.write(root, activate).await.unwrap();
        activated.unwrap();
        let create = move |tx: &mut Tx<'_>| list::create(tx, account, settings("quake"), START_MS);
        let list = store.write(root, create).await.unwrap().unwrap().id;
        Setup {
            _folder: folder,
            store,
            feed,
            list: ListKey { account, list },
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
        let account = self.list.account;
        let page = move |tx: &mut Tx<'_>| {
            notification::page(tx, account, &NotificationFilter::default(), &EVERYTHING)
        };
        self.store.read(page).await.unwrap().len()
    }
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
    let mut setup = Setup::new().await;
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
    let mut setup = Setup::new().await;
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
