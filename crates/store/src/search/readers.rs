//! The readers who are shown a place, as terms of the index.
//!
//! A document names every kind of readers that its source shows the place to. A search names the
//! kind that its viewer belongs to, for each source that the viewer may read. Places that are hidden
//! from the viewer are then no candidates, so they cost nothing and change no cursor.

use driftline_core::post::Visibility;
use driftline_index::{Term, TermQuery};

use super::groups::GroupPlace;
use crate::{
    id_types::sql,
    viewer::{ReadableSource, ReadableSources, SourceOwner, Viewer},
};

/// The number of sources of the viewer's own that are looked up one by one.
pub(super) const MAX_OWN: usize = 1;

/// The query for the places that a viewer may be shown. `by_owner` is true if all documents name the owners of their
/// sources: then all sources of the viewer's own are one term.
pub(super) fn query(readable: &ReadableSources, by_owner: bool) -> TermQuery {
    let owner = readable.viewer().owner().filter(|_| by_owner);
    let (own, others): (Vec<_>, Vec<_>) = readable
        .all()
        .into_iter()
        .partition(|source| owner.is_some() && is_own(readable, source));
    let others = others.into_iter().map(|source| {
        let kind = kind(source.shows.narrowness(), source.is_published());
        Term::source(sql(source.key.id), kind)
    });
    let own = owner.filter(|_| !own.is_empty());
    let own = own.map(|owner| Term::owned(owner.id()));
    let terms = [Term::world()].into_iter().chain(own).chain(others);
    TermQuery::AnyOf(terms.map(TermQuery::Term).collect())
}

/// The number of sources of the viewer's own.
pub(super) fn count_own(readable: &ReadableSources) -> usize {
    let sources = readable.all().into_iter();
    sources.filter(|source| is_own(readable, source)).count()
}

/// True if a source belongs to the viewer, who is shown all its posts.
fn is_own(readable: &ReadableSources, source: &ReadableSource) -> bool {
    let own = match readable.viewer() {
        Viewer::Account(_) => SourceOwner::Viewer,
        Viewer::Operator => SourceOwner::Operator,
        Viewer::Anonymous => return false,
    };
    source.is_of == own && source.shows_all()
}

/// The terms for the readers who are shown a place.
pub(super) fn terms(place: &GroupPlace) -> Vec<Term> {
    match &place.entry {
        None => vec![Term::world()],
        Some(entry) => {
            let mut terms = entry_terms(entry.source_id, entry.narrowness, entry.is_claimed);
            terms.extend(entry.owner_id.map(Term::owned));
            terms
        }
    }
}

/// The terms for an entry of a source: its kinds of readers. `narrowness` is the narrowest
/// visibility that the post has had since it has the entry.
fn entry_terms(source_id: i64, narrowness: i64, is_claimed: bool) -> Vec<Term> {
    let mut terms = Vec::new();
    for shows in [Visibility::Public, Visibility::Unlisted, Visibility::Direct] {
        if narrowness > shows.narrowness() {
            continue;
        }
        for is_published in [false, true] {
            if !(is_published && is_claimed) {
                terms.push(Term::source(
                    source_id,
                    kind(shows.narrowness(), is_published),
                ));
            }
        }
    }
    terms
}

/// A number for readers who see posts up to a visibility. Other accounts' readers of a published
/// source see no claimed posts: see `ReadableSource::shows_post`.
fn kind(shows: i64, is_published: bool) -> u8 {
    let shows = u8::try_from(shows).unwrap_or(0);
    2 * shows + u8::from(is_published)
}

#[cfg(test)]
mod tests {
    use driftline_core::names::audience::Reader;

    use super::*;
    use crate::{
        id_types::{InstanceId, SourceId, SourceKey},
        posts::content_scope::ContentScope,
    };

    /// Compares the terms with the decision of `ReadableSource::shows_post`.
    #[test]
    fn a_place_has_the_terms_of_those_who_are_shown_its_post() {
        for (shows, is_public, is_of) in [
            (Visibility::Public, true, SourceOwner::Account),
            (Visibility::Public, true, SourceOwner::Operator),
            (Visibility::Unlisted, true, SourceOwner::Account),
            (Visibility::Unlisted, false, SourceOwner::Account),
            (Visibility::Direct, true, SourceOwner::Viewer),
            (Visibility::Direct, false, SourceOwner::Operator),
        ] {
            let source = ReadableSource {
                key: SourceKey {
                    id: SourceId::new(7),
                    instance: InstanceId::new(1),
                },
                reader: Reader::Member,
                shows,
                is_public,
                is_of,
                is_of_threads: false,
                scope: ContentScope::WORLD,
            };
            let asked = Term::source(7, kind(shows.narrowness(), source.is_published()));
            for narrowness in 0..=3 {
                for is_claimed in [false, true] {
                    let found = entry_terms(7, narrowness, is_claimed).contains(&asked);
                    let expected = source.shows_post(narrowness, is_claimed);
                    assert_eq!(found, expected, "{source:?} {narrowness} {is_claimed}");
                }
            }
        }
    }
}
