//! The timeline of the posts that match a predicate.

use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
};

use driftline_core::{
    names::acct::AcctKey,
    predicate::{
        Candidates, Condition, IdMask, Matcher, PostFacts, Predicate, SourceName, Term, Tree, Word,
    },
};
use driftline_db::{Column, Tx};
use driftline_index::{NamedRows, TermQuery, WordTerms, plan, planned_terms};

use super::{
    documents::extraction,
    groups::{Key, groups},
    nicknames::names_with,
    readers,
    sources::source_names,
};
use crate::{
    error::StoreError,
    id_types::{LocalId, from_sql},
    local_ids,
    posts::{
        index_pending::unindexed,
        timeline::{self, Picks, Place, Range, SearchPlaces, Stretch},
    },
    reservation::Bound,
    viewer::ReadableSources,
};

/// The look-up in the index for a predicate and a viewer.
#[derive(Clone, Debug)]
pub struct Lookup {
    terms: TermQuery,
    /// The places that the viewer may be shown.
    readers: TermQuery,
    /// The places at which matches may stand: `id:` is compared with them.
    ids: RangeInclusive<u64>,
}

/// Prepares the look-up of a predicate.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn lookup(
    tx: &mut Tx<'_>,
    readable: &ReadableSources,
    predicate: &Predicate,
) -> Result<Lookup, StoreError> {
    let mut candidates = predicate.candidates();
    let ids = candidates.ids();
    let mut by_owner = readers::count_own(readable) > readers::MAX_OWN;
    if by_owner || !is_indexed_since(&candidates, FIRST_EXTRACTION) {
        let extraction = extraction(tx)?;
        candidates = candidates.only(&|term| is_known(term, extraction));
        by_owner &= extraction >= OWNERS_EXTRACTION;
    }
    let (mut words, mut masks, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for term in planned_terms(&candidates) {
        match term {
            Term::Word(word) => words.push(word),
            Term::Author(mask) => masks.push(mask),
            Term::Condition(Condition::Source(name)) => names.push(name),
            Term::Instance(_) | Term::Condition(_) => {}
        }
    }
    let named = NamedRows {
        by_word: authors_by_word(tx, readable, predicate, words)?,
        by_mask: authors_by_mask(tx, masks)?,
        by_source: sources_by_name(tx, readable, names)?,
    };
    Ok(Lookup {
        terms: plan(&candidates, &named),
        readers: readers::query(readable, by_owner),
        ids,
    })
}

/// Returns the posts that a viewer may read and that `picks` selects, each at the viewer's place
/// for it. The look-up must be of a predicate that each post meets which `picks` selects. The ID of a post is
/// its place.
///
/// # Errors
/// [`StoreError::IndexBehind`] if too many posts wait for the index; [`StoreError::Db`] if the
/// database fails.
pub fn find(
    tx: &mut Tx<'_>,
    range: &Range,
    readable: &ReadableSources,
    lookup: &Lookup,
    picks: Picks<'_>,
) -> Result<Stretch, StoreError> {
    if lookup.ids.is_empty() {
        return Ok(Stretch {
            posts: Vec::new(),
            rest: None,
        });
    }
    let range = &within(range, &lookup.ids);
    let bound = Bound::read(tx)?;
    // What the index reads meanwhile is in one of both, since this is read first.
    let waiting = waiting_places(tx, &lookup.readers)?;
    let places = SearchPlaces {
        terms: &lookup.terms,
        readers: &lookup.readers,
        waiting: &waiting,
    };
    timeline::found(tx, range, bound, readable, &places, picks)
}

/// True if documents of a version of the extraction have all terms of a condition.
fn is_indexed_since(candidates: &Candidates, extraction: i64) -> bool {
    let terms = planned_terms(candidates);
    terms.iter().all(|term| is_known(term, extraction))
}

fn is_known(term: &Term, extraction: i64) -> bool {
    match term {
        Term::Condition(condition) => condition.indexed_since() <= extraction,
        _ => true,
    }
}

/// The part of a range with these places.
fn within(range: &Range, ids: &RangeInclusive<u64>) -> Range {
    let since = ids.start().checked_sub(1).map(LocalId::new);
    let max = ids.end().checked_add(1).map(LocalId::new);
    Range {
        since: range.since.max(since),
        max: range.max.into_iter().chain(max).min(),
        ..*range
    }
}

/// Returns the place up to which all posts are visible. Posts that are stored later stand above
/// it, except history.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn end(tx: &mut Tx<'_>) -> Result<LocalId, StoreError> {
    let bound = Bound::read(tx)?;
    let last = local_ids::last_given(tx)?;
    Ok(from_sql(last.min(bound.below - 1).max(0))?)
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
    Ok(lookup(tx, readable, predicate)?.terms.to_string())
}

/// The number of posts that the index has still to read, up to `limit`.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn pending(tx: &mut Tx<'_>, limit: u32) -> Result<u32, StoreError> {
    Ok(u32::try_from(unindexed(tx, limit)?.len()).unwrap_or(u32::MAX))
}

/// The rows of the authors whose nicknames contain each word, at every instance: a nickname that one
/// instance has shown is searched in the author's posts from all of them. There is no entry for a
/// word of one character, for one after the first [`MAX_WORDS`], nor for any word if too many authors
/// have one.
fn authors_by_word(
    tx: &mut Tx<'_>,
    readable: &ReadableSources,
    predicate: &Predicate,
    words: Vec<Word>,
) -> Result<HashMap<Word, Vec<i64>>, StoreError> {
    let mut by_word: HashMap<Word, HashSet<i64>> = HashMap::new();
    let mut count = 0;
    for word in words.into_iter().take(MAX_WORDS) {
        let tree = Tree::atom(Term::Word(word.clone()));
        let Ok(alone) = Predicate::new(tree, predicate.folding()) else {
            continue;
        };
        let matcher = Matcher::new(&alone);
        let Some(mut named) = names_with(tx, &WordTerms::new(&word), readable)? else {
            continue;
        };
        named.retain(|(nickname, _)| {
            matcher.matches(&PostFacts {
                nickname: Some(nickname),
                ..PostFacts::bare(0, "")
            })
        });
        let accounts: HashSet<i64> = named.into_iter().map(|(_, account)| account).collect();
        count += accounts.len();
        if count > MAX_NAMED {
            return Ok(HashMap::new());
        }
        by_word.insert(word, accounts);
    }
    let rows = account_rows(tx, by_word.values().flatten().copied())?;
    let by_word = by_word.into_iter().map(|(word, accounts)| {
        let named = rows
            .iter()
            .filter(|(account, _)| accounts.contains(account));
        (word, named.map(|(_, row)| *row).collect())
    });
    Ok(by_word.collect())
}

/// The rows of the authors that each mask selects, at every instance.
fn authors_by_mask(
    tx: &mut Tx<'_>,
    masks: Vec<IdMask>,
) -> Result<HashMap<IdMask, Vec<i64>>, StoreError> {
    let mut by_mask = HashMap::new();
    for mask in masks {
        let named = AcctKey::new(mask.acct.as_str(), "").map(|key| key.account_id());
        let ids = named.into_iter().chain(mask.id).map(u64::cast_signed);
        let rows = account_rows(tx, ids)?.into_iter();
        by_mask.insert(mask, rows.map(|(_, row)| row).collect());
    }
    Ok(by_mask)
}

/// The rows of these accounts at every instance, each with the account's ID.
fn account_rows(
    tx: &mut Tx<'_>,
    accounts: impl IntoIterator<Item = i64>,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let accounts: HashSet<i64> = accounts.into_iter().collect();
    if accounts.is_empty() {
        return Ok(Vec::new());
    }
    Ok(tx.query(
        "select acct_id, id from account where acct_id {in $1}",
        &[&Column::i64(accounts)],
        |row| Ok((row.i64("acct_id")?, row.i64("id")?)),
    )?)
}

/// The sources that a viewer may read by each name.
fn sources_by_name(
    tx: &mut Tx<'_>,
    readable: &ReadableSources,
    names: Vec<SourceName>,
) -> Result<HashMap<SourceName, Vec<i64>>, StoreError> {
    let mut by_name: HashMap<SourceName, Vec<i64>> =
        names.into_iter().map(|name| (name, Vec::new())).collect();
    if by_name.is_empty() {
        return Ok(by_name);
    }
    for (id, own_names) in source_names(tx, &readable.of_timelines())? {
        for name in own_names.iter().filter_map(|name| SourceName::new(name)) {
            if let Some(sources) = by_name.get_mut(&name) {
                sources.push(id);
            }
        }
    }
    Ok(by_name)
}

/// The places of the posts that the index has still to read and of their copies, as far as the
/// readers may be shown them.
fn waiting_places(tx: &mut Tx<'_>, readers: &TermQuery) -> Result<Vec<Place>, StoreError> {
    let posts = unindexed(tx, MAX_WAITING + 1)?;
    if posts.len() > MAX_WAITING as usize {
        return Err(StoreError::IndexBehind {
            waiting: MAX_WAITING,
        });
    }
    let posts: Vec<Key> = posts.iter().map(Key::from).collect();
    let groups = groups(tx, &posts)?;
    let places = groups.into_iter().flat_map(|group| group.places);
    let shown = places.filter(|place| readers.is_met_by(&readers::terms(place)));
    let mut places: Vec<Place> = shown
        .map(|place| Place {
            id: place.place,
            post_id: place.post_id,
            instance_id: place.instance_id,
            returns: 0,
        })
        .collect();
    // A public post has one place as an entry and in the world's timeline.
    places.sort_unstable_by_key(|place| place.id);
    places.dedup_by_key(|place| place.id);
    Ok(places)
}

/// The oldest version of the extraction of which a store may have documents.
const FIRST_EXTRACTION: i64 = 2;
/// The first version of the extraction whose documents name the owners of their sources.
const OWNERS_EXTRACTION: i64 = 3;
/// The number of posts without documents that a search reads.
const MAX_WAITING: u32 = 20_000;
/// The number of words that are compared with nicknames.
const MAX_WORDS: usize = 16;
/// The number of authors by whose nicknames the words of one predicate find posts in the index. With
/// more of them all posts are read.
const MAX_NAMED: usize = 2_000;
