use driftline_core::{post::Post, social::Mark};
use driftline_mastodon::{post_hashes, text_of_json};
use driftline_store::{
    Target, local_ids,
    social::marked_post,
    source,
    testing::{Feed, START_MS, new_account, post},
    timeline::{self, PostKey},
};

use super::*;

const MINUTE_MS: i64 = 60_000;
/// More than one page of bookmarks, and fewer than two.
const MANY: u64 = 250;

fn read_post(post: &mut Post) {
    post.text = text_of_json(&post.raw);
    post.hashes = post_hashes(post);
}

fn edited(text: &str, edited_at_ms: i64) -> Post {
    Post {
        edited_at_ms: Some(edited_at_ms),
        ..post(1, text)
    }
}

/// Bookmarks each of these posts for a new account.
fn bookmark(store: &Store, posts: Vec<PostKey>) {
    let new = new_account("ann");
    let create = move |tx: &mut Tx<'_>| local_account::create(tx, &new, START_MS);
    let created = store.write_blocking(local_ids::root(), create).unwrap();
    let account = created.unwrap().id;
    let bookmark = move |tx: &mut Tx<'_>| {
        let mut posts = posts.iter();
        posts.try_for_each(|post| marked_post::set(tx, account, Mark::Bookmark, *post, START_MS))
    };
    let bookmarked = store.write_blocking(local_account::root(account), bookmark);
    bookmarked.unwrap();
}

/// Makes the bookmarks of all other posts outdated.
fn outdate_others(store: &Store, shown: PostKey) {
    let shown = i64::try_from(shown.post).unwrap();
    let outdate = move |tx: &mut Tx<'_>| {
        let sql = "update marked_post set shown = 'earlier' where post_id <> $1";
        Ok::<_, StoreError>(tx.execute(sql, &[&shown])?)
    };
    let outdated = store.write_blocking(local_ids::root(), outdate);
    assert_eq!(outdated.unwrap(), MANY);
}

fn set_audience(feed: &Feed, audience: Audience) {
    let key = feed.source;
    feed.write(move |tx| source::set_audience(tx, key, audience));
}

#[tokio::test]
async fn who_changes_audiences_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = Store::open(Target::Sqlite { path }).unwrap();
    let mut feed = Feed::readable(&store, "public", read_post);
    let other = Feed::readable(&store, "other", read_post);
    feed.poll(vec![post(1, "text")]);
    let instance = feed.source.instance;
    let keys = feed.read(move |tx| timeline::keys(tx, instance, &["1"]));
    let shown = keys["1"];
    // Posts that were never stored: no viewer is shown them.
    let unknown = (0..MANY).map(|number| PostKey {
        post: LocalId::new((1 << 40) + number),
        instance,
    });
    bookmark(&store, unknown.chain([shown]).collect());
    outdate_others(&store, shown);

    // A page in each turn, and in between what changed.
    let mut bookmarks = BookmarkWatch::new(store.clone());
    assert_eq!(bookmarks.turn(0).await.unwrap(), 200);
    assert!(bookmarks.is_behind);
    feed.now_ms += MINUTE_MS;
    feed.poll(vec![edited("better", START_MS)]);
    assert_eq!(bookmarks.turn(1).await.unwrap(), 51);
    assert!(!bookmarks.is_behind);

    // Other audiences begin no other comparison at once, and hold up no news.
    outdate_others(&store, shown);
    for (turn, audience) in [Audience::Members, Audience::Public]
        .into_iter()
        .enumerate()
    {
        set_audience(&other, audience);
        assert_eq!(bookmarks.turn(2 + turn as i64).await.unwrap(), 0);
    }
    feed.now_ms += MINUTE_MS;
    feed.poll(vec![edited("best", START_MS + 1)]);
    assert_eq!(bookmarks.turn(5 * MINUTE_MS - 1).await.unwrap(), 1);
    assert_eq!(bookmarks.turn(5 * MINUTE_MS).await.unwrap(), 200);
    set_audience(&other, Audience::Members);
    assert_eq!(bookmarks.turn(5 * MINUTE_MS + 1).await.unwrap(), 50);
    // What changed during it is compared later.
    outdate_others(&store, shown);
    assert_eq!(bookmarks.turn(10 * MINUTE_MS - 1).await.unwrap(), 0);
    assert_eq!(bookmarks.turn(10 * MINUTE_MS).await.unwrap(), 200);
    store.close().await;
}
