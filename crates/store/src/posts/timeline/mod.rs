//! Reads timelines.
//!
//! A timeline is a rule over entries. The place of a post is the first entry that the rule
//! includes; live entries come before those of history. A rule names sources and authors, so that
//! its decision about an entry never changes. Therefore nothing live appears below the posts that a
//! reader has seen, as long as the rule stays the same.
//!
//! Each instance's copy of a post is stored as a separate post. Timelines of several sources show
//! copies (by their `uri`) as one post: at the place of the first, with the content of the best,
//! which is the copy that the author's own instance shows, if the viewer may read that. A copy that
//! returns after it was deleted has a new place; others then stand where the next of them came.
//!
//! - The public timeline of the world has public posts of sources that everybody may read. That is
//!   decided when a post is stored (`post.listed`).
//! - The public timeline of an account has public posts of all sources that it may read.
//! - A home timeline has everything that some sources show to its owner, and the posts of some
//!   authors in any source that its owner may read.
//! - A source's own timeline lists each of its entries, at the entry's ID, with the content that the source was shown.

mod authors;
mod by_post_id;
mod copies;
mod entries;
mod first_places;
mod named;
mod place;
mod places;
mod replied_to;
mod rule;
mod status;
mod stored_post;
mod stretch;
mod thread;
mod timeline_post;
pub(crate) mod visible;
mod window;

use std::collections::HashSet;

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, Tx};
use driftline_index::{PlaceReader, TermQuery};

use crate::{
    error::StoreError,
    id_types::{AccountId, SourceKey, from_sql, sql},
    posts::account,
    reservation::Bound,
    viewer::{ReadableSource, ReadableSources},
};

use places::PlaceStream;
use rule::Rule;
use stretch::read;

pub use crate::viewer::Viewer;
pub(crate) use by_post_id::by_post_ids_in;
pub use by_post_id::{by_post_ids, copies_of, keys, keys_later, places_of_copies, shown_versions};
pub(crate) use entries::came;
pub use named::named;
pub(crate) use place::Place;
pub use status::{at_its_place, status};
pub use thread::{AnsweredBy, Thread, thread};
pub use timeline_post::{HomeRule, Pick, Picks, PostKey, Range, Stretch, TimelinePost};

/// The public timeline of all sources that a viewer may read.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn public(
    tx: &mut Tx<'_>,
    range: &Range,
    viewer: Viewer,
) -> Result<Vec<TimelinePost>, StoreError> {
    let readable = ReadableSources::load(tx, viewer)?;
    Ok(public_picked(tx, range, &readable, None)?.posts)
}

/// The posts of the public timeline that `picks` selects, or all of them. A page is filled by
/// reading the next parts through [`Stretch::rest`], because a short one would look like the end of
/// the timeline.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn public_picked(
    tx: &mut Tx<'_>,
    range: &Range,
    readable: &ReadableSources,
    picks: Option<Picks<'_>>,
) -> Result<Stretch, StoreError> {
    let bound = Bound::read(tx)?;
    let hidden = readable.hidden().into_iter();
    let hidden = hidden.map(|source| PlaceStream::Source(source.key, Visibility::Public));
    let streams: Vec<_> = [PlaceStream::World].into_iter().chain(hidden).collect();
    read(tx, range, bound, &streams, &Rule::Public(readable), picks)
}

/// The home timeline of a viewer who may read these sources.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn home(
    tx: &mut Tx<'_>,
    range: &Range,
    readable: &ReadableSources,
    takes: &HomeRule,
    picks: Option<Picks<'_>>,
) -> Result<Stretch, StoreError> {
    let bound = Bound::read(tx)?;
    let chosen = takes.sources.iter().filter_map(|id| readable.of(*id));
    let mut streams: Vec<PlaceStream<'_>> = chosen
        .map(|source| PlaceStream::Source(source.key, source.shows))
        .collect();
    let all = readable.of_timelines();
    if !takes.authors.is_empty() && !all.is_empty() {
        streams.push(PlaceStream::Authors(&takes.authors, &all));
    }
    let rule = Rule::Home(takes, readable);
    // A published source may show few of its entries.
    let is_sparse = all.iter().any(ReadableSource::is_published);
    let all_posts = |_: &TimelinePost| true;
    let all_posts: Picks<'_> = &all_posts;
    let picks = picks.or(is_sparse.then_some(all_posts));
    read(tx, range, bound, &streams, &rule, picks)
}

/// The places among which a search looks.
pub(crate) struct SearchPlaces<'s> {
    /// The terms of the search.
    pub(crate) terms: &'s TermQuery,
    /// The places that the viewer may be shown.
    pub(crate) readers: &'s TermQuery,
    /// The places of posts that the index has still to read.
    pub(crate) waiting: &'s [Place],
}

/// The posts that a viewer may read and that `picks` selects, among those at some places. Each post
/// stands at the viewer's place for it.
pub(crate) fn found(
    tx: &mut Tx<'_>,
    range: &Range,
    bound: Bound,
    readable: &ReadableSources,
    places: &SearchPlaces<'_>,
    picks: Picks<'_>,
) -> Result<Stretch, StoreError> {
    let streams = [
        PlaceStream::Index(PlaceReader::new(places.terms, places.readers)),
        PlaceStream::Listed(places.waiting),
    ];
    let rule = Rule::Readable(readable);
    read(tx, range, bound, &streams, &rule, Some(picks))
}

/// The posts of an author in every source that a viewer may read.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_author(
    tx: &mut Tx<'_>,
    range: &Range,
    viewer: Viewer,
    author: AccountId,
    picks: Option<Picks<'_>>,
) -> Result<Stretch, StoreError> {
    let takes = HomeRule {
        sources: Vec::new(),
        authors: vec![author],
    };
    let readable = ReadableSources::load(tx, viewer)?;
    home(tx, range, &readable, &takes, picks)
}

/// Those of these accounts that a viewer may know: the authors of posts that it may read, and
/// accounts that were fetched for it by their names. Of sources that others have published, only
/// the authors of their servers.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn known_authors(
    tx: &mut Tx<'_>,
    authors: &[AccountId],
    viewer: Viewer,
) -> Result<HashSet<AccountId>, StoreError> {
    let sources = ReadableSources::load(tx, viewer)?.all();
    if authors.is_empty() || sources.is_empty() {
        return Ok(HashSet::new());
    }
    let (published, others): (Vec<_>, Vec<_>) = sources
        .iter()
        .copied()
        .partition(ReadableSource::is_published);
    let mut known = authors::authors_of(tx, authors, &others)?;
    if !published.is_empty() {
        let keys: Vec<SourceKey> = published.iter().map(|source| source.key).collect();
        let shown = account::by_ids(tx, authors, &keys)?.into_iter();
        let own: Vec<AccountId> = shown
            .filter(account::Account::is_of_instance)
            .map(|account| account.id)
            .collect();
        known.extend(authors::authors_of(tx, &own, &published)?);
    }
    known.extend(fetched(tx, authors, &sources)?);
    Ok(known.into_iter().map(from_sql).collect::<Result<_, _>>()?)
}

/// Those of these accounts that were fetched by their names for hidden sources among these.
fn fetched(
    tx: &mut Tx<'_>,
    accounts: &[AccountId],
    sources: &[ReadableSource],
) -> Result<Vec<i64>, DbError> {
    let hidden = || sources.iter().filter(|source| source.is_of_threads);
    if hidden().next().is_none() {
        return Ok(Vec::new());
    }
    tx.query(
        "select distinct acct_id from fetched_account
         where acct_id {in $1} and source_id {in $2} and instance_id {in $3}",
        &[
            &Column::i64(accounts.iter().map(|id| sql(*id))),
            &Column::i64(hidden().map(|source| source.key.id())),
            &Column::i64(hidden().map(|source| source.key.instance_id())),
        ],
        |row| row.i64("acct_id"),
    )
}

/// The timeline of a source. It is empty if no source with this key exists that the viewer may
/// read.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn source(
    tx: &mut Tx<'_>,
    source: SourceKey,
    range: &Range,
    viewer: Viewer,
) -> Result<Vec<TimelinePost>, StoreError> {
    Ok(read_source(tx, source, range, viewer, None)?.posts)
}

/// The posts of a source's timeline that `picks` selects: see [`public_picked`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn source_picked(
    tx: &mut Tx<'_>,
    source: SourceKey,
    range: &Range,
    viewer: Viewer,
    picks: Picks<'_>,
) -> Result<Stretch, StoreError> {
    read_source(tx, source, range, viewer, Some(picks))
}

/// The posts that a source's timeline shows at places of its entries, in their order; `None` for a place at which it shows
/// none. The entries must be as visible as `source` shows posts.
pub(crate) fn at_places_of_source(
    tx: &mut Tx<'_>,
    source: ReadableSource,
    places: &[Place],
) -> Result<Vec<Option<TimelinePost>>, StoreError> {
    stretch::at_places(tx, places, source)
}

fn read_source(
    tx: &mut Tx<'_>,
    source: SourceKey,
    range: &Range,
    viewer: Viewer,
    picks: Option<Picks<'_>>,
) -> Result<Stretch, StoreError> {
    let Some(readable) = ReadableSources::load(tx, viewer)?.of(source.id) else {
        return Ok(Stretch {
            posts: Vec::new(),
            rest: None,
        });
    };
    let streams = [PlaceStream::Source(source, readable.shows)];
    // The rows of an instance lie on one node.
    let rule = Rule::Source(readable);
    read(tx, range, Bound::NONE, &streams, &rule, picks)
}
