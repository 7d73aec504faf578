//! The timeline of the posts that match a predicate.

use std::collections::HashMap;

use driftline_core::predicate::{Matcher, PostFacts, Predicate, Term, Tree, Word};
use driftline_db::Tx;
use driftline_index::{TermQuery, plan, planned_words};

use super::{
    groups::{Key, groups},
    nicknames::accounts_named,
    readers,
};
use crate::{
    error::StoreError,
    id_types::sql,
    posts::{
        index_pending::unindexed,
        timeline::{self, Picks, Place, Range, SearchPlaces, Stretch},
    },
    reservation::Bound,
    viewer::ReadableSources,
};

/// Returns the posts that a viewer may read and that `picks` selects, each at the viewer's place
/// for it. `predicate` is true of each post that `picks` selects; the index finds the candidates by
/// it.
///
/// # Errors
/// [`StoreError::IndexBehind`] if too many posts wait for the index; [`StoreError::Db`] if the
/// database fails.
pub fn find(
    tx: &mut Tx<'_>,
    range: &Range,
    readable: &ReadableSources,
    predicate: &Predicate,
    picks: Picks<'_>,
) -> Result<Stretch, StoreError> {
    let bound = Bound::read(tx)?;
    // What the index reads meanwhile is in one of both, since this is read first.
    let waiting = waiting_places(tx)?;
    let terms = terms(tx, readable, predicate)?;
    let query = TermQuery::All(vec![terms, readers::query(readable)]).simplified();
    let places = SearchPlaces {
        query: &query,
        waiting: &waiting,
    };
    timeline::found(tx, range, bound, readable, &places, picks)
}

/// Describes what the index looks up for a predicate: the numbers of its terms, joined by `AND` and
/// `OR`.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn explain(
    tx: &mut Tx<'_>,
    readable: &ReadableSources,
    predicate: &Predicate,
) -> Result<String, StoreError> {
    Ok(terms(tx, readable, predicate)?.to_string())
}

/// The query for the documents of the posts that a predicate may match.
fn terms(
    tx: &mut Tx<'_>,
    readable: &ReadableSources,
    predicate: &Predicate,
) -> Result<TermQuery, StoreError> {
    let candidates = predicate.candidates();
    let mut named_authors: HashMap<Word, Vec<i64>> = HashMap::new();
    for word in planned_words(&candidates) {
        let tree = Tree::atom(Term::Word(word.clone()));
        let Ok(alone) = Predicate::new(tree, predicate.folding()) else {
            continue;
        };
        let matcher = Matcher::new(&alone);
        let has_word = |name: &str| {
            matcher.matches(&PostFacts {
                nickname: Some(name),
                ..PostFacts::bare(0, "")
            })
        };
        let named = accounts_named(tx, readable, &has_word)?;
        if named.len() <= MAX_NAMED {
            named_authors.insert(word, named.into_iter().map(sql).collect());
        }
    }
    Ok(plan(&candidates, &named_authors))
}

/// The number of posts that the index has still to read, up to `limit`.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn pending(tx: &mut Tx<'_>, limit: u32) -> Result<u32, StoreError> {
    let sql = "select count(*) as posts from (select post_id from index_pending limit $1) waiting";
    let posts = tx.query_one(sql, &[&limit], |row| row.i64("posts"))?;
    Ok(u32::try_from(posts).unwrap_or(u32::MAX))
}

/// The places of the posts that the index has still to read, and of their copies.
fn waiting_places(tx: &mut Tx<'_>) -> Result<Vec<Place>, StoreError> {
    let posts = unindexed(tx, MAX_WAITING + 1)?;
    if posts.len() > MAX_WAITING as usize {
        return Err(StoreError::IndexBehind {
            waiting: MAX_WAITING,
        });
    }
    let posts: Vec<Key> = posts.iter().map(Key::from).collect();
    let groups = groups(tx, &posts)?;
    let places = groups.into_iter().flat_map(|group| group.places);
    let places = places.map(|place| Place {
        id: place.place,
        post_id: place.post_id,
        instance_id: place.instance_id,
        returns: 0,
    });
    Ok(places.collect())
}

/// The number of posts without documents that a search reads.
const MAX_WAITING: u32 = 20_000;
/// The number of authors by whose nicknames a word finds posts in the index. With more of them all
/// posts are read.
const MAX_NAMED: usize = 2_000;
