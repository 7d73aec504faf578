//! Posts whose hashes an earlier version stored in another form: no answer makes edits of them that
//! are none, and none is lost.

use driftline_core::{
    answer::{Event, LookUp},
    post::Post,
    refresh::LookupOutcome,
};
use driftline_mastodon::read_status;
use driftline_store::{
    Store, history, notify,
    refresh::{LookupAnswer, OutboxItem},
};

use crate::{
    refresh::{HOUR_MS, Workers},
    world::{START_MS, World, on_both},
};

/// A post as a timeline shows it.
fn status(id: u64, content: &str) -> Post {
    of_json(&format!(
        r#"{{"id":"{id}","created_at":"2027-01-15T08:00:00Z","visibility":"public","content":"{content}","favourites_count":0,"account":{{"id":"7"}}}}"#
    ))
}

/// The same post as a look-up shows it.
fn look_up(id: u64, content: &str) -> Post {
    let content = content.replace('<', r"\u003c");
    of_json(&format!(
        r#"{{"account":{{"id":"7"}},"poll":null,"content":"{content}","id":"{id}","favourites_count":0,"media_attachments":[],"visibility":"public","created_at":"2027-01-15T08:00:00Z"}}"#
    ))
}

fn of_json(json: &str) -> Post {
    read_status(serde_json::from_str(json).expect("JSON")).expect("a post")
}

fn three(show: fn(u64, &str) -> Post) -> Vec<Post> {
    (1..=3).rev().map(|id| show(id, "<p>text</p>")).collect()
}

/// Leaves all hashes as those of another form.
fn age(world: &World) {
    world.write(|tx| {
        tx.execute(
            "update post set content_hash = -1 - content_hash, hash_form = 0, former_hash = null",
            &[],
        )?;
        tx.execute("update entry set content_hash = -1 - content_hash", &[])?;
        tx.execute("update freshness set state_hash = -1 - state_hash", &[])?;
        Ok(())
    });
}

/// A source with three posts of another form.
fn aged(store: &Store, name: &str) -> World {
    let mut world = World::readable(store, name);
    world.poll(three(status));
    age(&world);
    world
}

fn versions(world: &World) -> usize {
    let ids = world.export().into_iter().map(|row| row.post_id);
    let kept = ids.map(|id| world.read(move |tx| history::versions(tx, id)).len());
    kept.sum()
}

#[test]
fn an_answer_that_means_the_same_moves_no_usn() {
    on_both(|store| {
        let mut home = World::readable(store, "home");
        let mut local = World::readable(store, "local");
        home.poll(three(status));
        local.poll(three(status));
        age(&home);
        let before = (home.usns(), local.usns());
        for _ in 0..2 {
            home.now_ms += HOUR_MS;
            let summary = home.poll(three(look_up));
            assert_eq!((summary.new, summary.edited), (0, 0));
        }
        // Another source still has the hashes that its library was notified of.
        let items: Vec<OutboxItem> = home
            .export()
            .iter()
            .map(|row| OutboxItem {
                post: row.post_id,
                counts: false,
                since_ms: START_MS,
            })
            .collect();
        let source = local.source;
        let edit = items[0];
        assert_eq!(local.write(move |tx| notify(tx, source, &items)), 0);
        local.now_ms += 3 * HOUR_MS;
        assert_eq!(local.poll(three(status)).edited, 0);
        assert_eq!((home.usns(), local.usns()), before);
        assert_eq!(versions(&home), 0);
        let outdated = home.read(|tx| {
            let count = "select count(*) as n from post p
                 join entry e on e.post_id = p.id and e.instance_id = p.instance_id
                 where p.hash_form <> 1 or e.content_hash <> p.content_hash";
            Ok(tx.query_one(count, &[], |row| row.i64("n"))?)
        });
        assert_eq!(outdated, 0, "an answer brings hashes up to date");
        // A real edit afterwards is one in each source.
        home.now_ms += HOUR_MS;
        let mut posts = three(look_up);
        posts[2] = look_up(1, "<p>better</p>");
        assert_eq!(home.poll(posts).edited, 1);
        assert_eq!(local.write(move |tx| notify(tx, source, &[edit])), 1);
        assert_eq!(versions(&home), 1);
    });
}

#[test]
fn the_first_answer_after_an_edit_is_an_edit() {
    on_both(|store| {
        let mut world = aged(store, "home");
        world.now_ms += HOUR_MS;
        let mut posts = three(look_up);
        posts[1] = look_up(2, "<p>better</p>");
        let summary = world.poll(posts);
        assert_eq!((summary.edited, summary.update_count), (1, 4));
        assert_eq!(world.usns(), [(1, 1), (2, 4), (3, 3)]);
        let id = world.export()[1].post_id;
        let kept = world.read(move |tx| history::versions(tx, id));
        assert_eq!(kept[0].raw, status(2, "<p>text</p>").raw);
        assert_eq!(world.poll(three(look_up)).edited, 1, "and back");
    });
}

#[test]
fn streams_and_look_ups_compare_alike() {
    on_both(|store| {
        let mut world = aged(store, "home");
        let before = world.usns();
        world.now_ms += HOUR_MS;
        let events = |text| vec![Event::Edited(Box::new(look_up(1, text)))];
        assert_eq!(world.stream(events("<p>text</p>")).edited, 0);
        let found = |id, text| LookUp::Found(Box::new(look_up(id, text)));
        assert_eq!(world.look_up("2", found(2, "<p>text</p>")).edited, 0);
        assert_eq!(world.usns(), before);
        assert_eq!(world.stream(events("<p>better</p>")).edited, 1);
        assert_eq!(world.look_up("3", found(3, "<p>better</p>")).edited, 1);
        assert_eq!(versions(&world), 2);
    });
}

#[test]
fn refreshes_compare_alike() {
    on_both(|store| {
        let world = aged(store, "home");
        let workers = Workers::of(&world);
        let now_ms = START_MS + 24 * HOUR_MS;
        let claim = workers.claim(now_ms);
        let found = |id, text| (id, LookupAnswer::Found(Box::new(look_up(id, text))));
        let answers = [
            found(1, "<p>text</p>"),
            found(2, "<p>better</p>"),
            found(3, "<p>text</p>"),
        ];
        let saved = workers.save(&claim, &answers, now_ms);
        let mut outcomes: Vec<LookupOutcome> =
            saved.outcomes.iter().map(|(_, outcome)| *outcome).collect();
        outcomes.sort_by_key(|outcome| outcome.name());
        assert_eq!(
            outcomes,
            [
                LookupOutcome::Unchanged,
                LookupOutcome::Unchanged,
                LookupOutcome::Updated
            ]
        );
        assert_eq!(saved.news.len(), 1);
        assert_eq!(versions(&world), 1);
        let state = |tx: &mut driftline_store::Tx<'_>| {
            let count = "select count(*) as n from post where hash_form <> 1";
            Ok(tx.query_one(count, &[], |row| row.i64("n"))?)
        };
        assert_eq!(world.read(state), 0);
    });
}
