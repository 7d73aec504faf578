//! Bookmarks, favourites and the timelines of lists are paged while posts come, against a naive model.

use std::collections::{BTreeSet, HashSet};

use driftline_core::{
    names::acct::AcctKey,
    names::audience::Audience,
    post::{Author, Post},
    social::Mark,
};
use driftline_store::{
    AccountId, LocalAccountId, LocalId, Owner, Store,
    social::{local_account, marked_post, marked_timeline},
    source::LastPosts,
    timeline::{self, HomeRule, PostKey, Range, TimelinePost, Viewer},
};
use rand::{RngExt as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

use super::{account, read, write};
use crate::world::{EVERYTHING, World, home_of, post};

on_both!(
    a_list_is_paged_without_loss_or_repeat_while_posts_come,
    marks_are_paged_without_loss_or_repeat_while_posts_come,
);

/// Sources for the world, of the reader and of somebody else.
struct Case {
    rng: ChaCha8Rng,
    store: Store,
    ann: LocalAccountId,
    worlds: Vec<World>,
    newest: u64,
    /// The source and the post of each entry, in the order in which they came.
    came: Vec<(usize, u64)>,
    /// The posts that are marked, the latest last.
    marked: Vec<u64>,
}

fn add(store: &Store, name: &str, owner: Owner, audience: Audience) -> World {
    let mut world = World::owned(store, name, owner, audience);
    world.poll(Vec::new());
    world
}

fn author(id: u64) -> Author {
    let acct = format!("author{}", id % 4);
    Author {
        id: acct.as_str().into(),
        display_name: acct.clone(),
        raw: format!(r#"{{"id":"{acct}","acct":"{acct}"}}"#),
        url: None,
        uri: None,
        acct,
    }
}

fn author_id(id: u64) -> AccountId {
    let key = AcctKey::new(&author(id).acct, "https://sim.example");
    AccountId::new(key.expect("a name").account_id())
}

fn by_author(id: u64) -> Post {
    Post {
        author: author(id),
        ..post(id, "text")
    }
}

const HIDDEN: usize = 2;
const MARK: Mark = Mark::Bookmark;

impl Case {
    fn new(store: &Store, seed: u64) -> Self {
        let ann = account(store, &format!("ann{seed}"));
        let bob = account(store, &format!("bob{seed}"));
        let worlds = vec![
            add(
                store,
                &format!("world{seed}"),
                Owner::Operator,
                Audience::Public,
            ),
            add(
                store,
                &format!("anns{seed}"),
                Owner::Account(ann),
                Audience::Private,
            ),
            add(
                store,
                &format!("bobs{seed}"),
                Owner::Account(bob),
                Audience::Private,
            ),
        ];
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            store: store.clone(),
            ann,
            worlds,
            newest: 100,
            came: Vec::new(),
            marked: Vec::new(),
        }
    }

    fn viewer(&self) -> Viewer {
        Viewer::Account(self.ann)
    }

    /// Posts come in a source, some of them late.
    fn intake(&mut self) {
        let at = self.rng.random_range(0..self.worlds.len());
        self.newest += self.rng.random_range(0..4);
        let span = self.newest.saturating_sub(6)..=self.newest;
        let ids: Vec<u64> = span.filter(|_| self.rng.random_bool(0.7)).rev().collect();
        self.worlds[at].poll(ids.iter().map(|id| by_author(*id)).collect());
        for id in ids {
            if !self.came.contains(&(at, id)) {
                self.came.push((at, id));
            }
        }
        for world in &mut self.worlds {
            world.now_ms += 1_000;
        }
    }

    /// The posts that the reader may read.
    fn readable(&self) -> BTreeSet<u64> {
        let came = self.came.iter();
        came.filter(|(at, _)| *at != HIDDEN)
            .map(|(_, id)| *id)
            .collect()
    }

    fn members() -> Vec<AccountId> {
        vec![author_id(0), author_id(1)]
    }

    /// What the list has.
    fn listed(&self) -> BTreeSet<u64> {
        let readable = self.readable().into_iter();
        readable.filter(|id| id % 4 < 2).collect()
    }

    fn list_page(&self, range: Range) -> Vec<TimelinePost> {
        let viewer = self.viewer();
        let rule = HomeRule {
            sources: Vec::new(),
            authors: Self::members(),
        };
        read(&self.store, move |tx| {
            Ok(home_of(tx, &range, viewer, &rule)?.posts)
        })
    }

    /// Marks a readable post, or takes a mark away.
    fn mark(&mut self) {
        let readable: Vec<u64> = self.readable().into_iter().collect();
        let Some(id) = readable.choose(&mut self.rng).copied() else {
            return;
        };
        let key = self.key(id);
        let (ann, now_ms) = (self.ann, self.worlds[0].now_ms);
        let is_marked = self.marked.contains(&id);
        // Most stay marked.
        if is_marked && self.rng.random_bool(0.6) {
            return;
        }
        write(
            &self.store,
            local_account::root(ann),
            move |tx| match is_marked {
                true => marked_post::remove(tx, ann, MARK, key.post).map(|_| ()),
                false => marked_post::set(tx, ann, MARK, key, now_ms),
            },
        );
        match is_marked {
            true => self.marked.retain(|known| *known != id),
            false => self.marked.push(id),
        }
    }

    fn key(&self, id: u64) -> PostKey {
        let instance = self.worlds[0].source.instance;
        let name = id.to_string();
        read(&self.store, move |tx| {
            let mut found = timeline::keys(tx, instance, &[&name])?;
            Ok(found.remove(&name).expect("a stored post"))
        })
    }

    fn marked_page(&self, range: Range) -> Vec<(LocalId, u64)> {
        let ann = self.ann;
        let page = read(&self.store, move |tx| {
            marked_timeline::page(tx, ann, MARK, &range)
        });
        page.into_iter()
            .map(|(id, post)| (id, number(&post)))
            .collect()
    }
}

fn number(post: &TimelinePost) -> u64 {
    post.upstream_id.parse().expect("a number")
}

fn numbers(posts: &[TimelinePost]) -> Vec<u64> {
    posts.iter().map(number).collect()
}

fn limited(limit: u16) -> Range {
    Range {
        limit,
        ..Range::default()
    }
}

fn a_list_is_paged_without_loss_or_repeat_while_posts_come(store: &Store) {
    for seed in [1, 2] {
        let mut case = Case::new(store, seed);
        let (mut cursor, mut followed) = (LocalId::new(0), Vec::new());
        for round in 0..6 {
            for _ in 0..4 {
                case.intake();
            }
            // Downwards, while more comes above.
            let expected = case.listed();
            let (mut range, mut walked) = (limited(3), Vec::new());
            loop {
                let page = case.list_page(range);
                let Some(last) = page.last() else { break };
                range.max = Some(last.id);
                walked.extend(numbers(&page));
                case.intake();
            }
            let once: BTreeSet<u64> = walked.iter().copied().collect();
            assert_eq!(
                walked.len(),
                once.len(),
                "seed {seed}, round {round}: a repeat"
            );
            assert_eq!(once, expected, "seed {seed}, round {round}");
            // Upwards, from where the last round ended.
            loop {
                let above = Range {
                    min: Some(cursor),
                    ..limited(3)
                };
                let page = case.list_page(above);
                let Some(newest) = page.first() else { break };
                cursor = newest.id;
                followed.extend(numbers(&page));
            }
            let once: BTreeSet<u64> = followed.iter().copied().collect();
            assert_eq!(
                followed.len(),
                once.len(),
                "seed {seed}, round {round}: a repeat"
            );
            assert_eq!(once, case.listed(), "seed {seed}, round {round}");
        }
        assert!(followed.len() > 20, "too few posts to page");
        let hidden = case.came.iter().filter(|(at, _)| *at == HIDDEN).count();
        assert!(hidden > 10);
        remove_sources(&case);
    }
}

fn marks_are_paged_without_loss_or_repeat_while_posts_come(store: &Store) {
    for seed in [3, 4] {
        let mut case = Case::new(store, seed);
        let (mut cursor, mut followed) = (LocalId::new(0), HashSet::new());
        for round in 0..6 {
            for _ in 0..12 {
                case.intake();
                case.mark();
            }
            let expected: Vec<u64> = case.marked.iter().rev().copied().collect();
            let all = case.marked_page(EVERYTHING);
            assert_eq!(all.iter().map(|(_, id)| *id).collect::<Vec<_>>(), expected);
            // Upwards, nothing is passed over.
            loop {
                let above = Range {
                    min: Some(cursor),
                    ..limited(2)
                };
                let page = case.marked_page(above);
                let Some((newest, _)) = page.first() else {
                    break;
                };
                cursor = *newest;
                for (id, _) in page {
                    assert!(followed.insert(id), "seed {seed}, round {round}: a repeat");
                }
            }
            assert!(all.iter().all(|(id, _)| followed.contains(id)));
            // Downwards, while posts come and marks are set and taken away.
            let (mut range, mut walked) = (limited(2), Vec::new());
            loop {
                let page = case.marked_page(range);
                let Some((last, _)) = page.last() else { break };
                range.max = Some(*last);
                walked.extend(page);
                case.intake();
                case.mark();
            }
            assert!(walked.is_sorted_by(|(one, _), (other, _)| one > other));
            assert!(
                walked.iter().all(|one| all.contains(one)),
                "what was not there"
            );
            let left = case.marked_page(EVERYTHING);
            let stayed = all.iter().filter(|one| left.contains(one));
            for one in stayed {
                assert!(
                    walked.contains(one),
                    "seed {seed}, round {round}: {one:?} is lost"
                );
            }
        }
        assert!(case.marked.len() > 8, "too few marks to page");
        // What the reader may not read any more is left out, and pages are as full as before.
        case.worlds[0].set_audience(Audience::Private);
        case.came.retain(|(at, _)| *at != 0);
        let readable = case.readable();
        let marked = case.marked.iter().rev().copied();
        let expected: Vec<u64> = marked.filter(|id| readable.contains(id)).collect();
        assert!(!expected.is_empty() && expected.len() < case.marked.len());
        let limit = u16::try_from(expected.len()).expect("few");
        let page = case.marked_page(limited(limit));
        assert_eq!(
            page.into_iter().map(|(_, id)| id).collect::<Vec<_>>(),
            expected
        );
        remove_sources(&case);
    }
}

fn remove_sources(case: &Case) {
    for world in &case.worlds {
        world.remove(LastPosts::Remove);
    }
    assert_eq!(case.marked_page(EVERYTHING), [], "nothing fails");
}
