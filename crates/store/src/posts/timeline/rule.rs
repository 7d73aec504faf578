//! The rules of timelines, which decide about the posts that each includes.

use driftline_core::post::Visibility;

use super::{
    entries::PostEntry,
    stored_post::{ContentReader, StoredPost},
    timeline_post::HomeRule,
};
use crate::{
    id_types::sql,
    viewer::{ReadableSource, ReadableSources},
};

/// The rule of a timeline.
pub(super) enum Rule<'a> {
    /// Posts of the world's public timeline, and public posts of hidden sources that the viewer may read.
    Public(&'a ReadableSources),
    /// Posts of a home timeline, from these sources.
    Home(&'a HomeRule, &'a ReadableSources),
    /// Each entry of one source that a viewer may read.
    Source(ReadableSource),
    /// Everything that a viewer may read.
    Readable(&'a ReadableSources),
}

impl Rule<'_> {
    /// The sources that the timeline's viewer may read; `None` for a source's own timeline.
    pub(super) fn readable(&self) -> Option<&ReadableSources> {
        match self {
            Rule::Public(readable) | Rule::Home(_, readable) | Rule::Readable(readable) => {
                Some(readable)
            }
            Rule::Source(..) => None,
        }
    }

    /// The reader of the timeline's content.
    pub(super) fn content_reader(&self) -> ContentReader {
        match self {
            Rule::Public(readable) | Rule::Home(_, readable) | Rule::Readable(readable) => {
                ContentReader::Viewer(readable.viewer())
            }
            Rule::Source(source) => ContentReader::Source(source.scope),
        }
    }

    /// True for the world's public timeline, which viewers without hidden sources are shown.
    pub(super) fn is_of_world(&self) -> bool {
        matches!(self, Rule::Public(readable) if readable.hidden().is_empty())
    }

    /// True if a post may stand at one of its entries, according to the narrowest visibility that
    /// it has had since it has the entry; also at an entry that has ended.
    pub(super) fn takes(&self, entry: &PostEntry, found: &StoredPost) -> bool {
        let Some(source) = self.readable().and_then(|all| all.of_raw(entry.source_id)) else {
            return false;
        };
        let narrowness = entry.narrowness(found);
        let is_readable = source.shows_post(narrowness, found.claimed);
        match self {
            Rule::Public(_) => {
                let is_worlds = source.is_of_threads || source.shows_world(found.claimed);
                is_readable && !is_worlds && narrowness == Visibility::Public.narrowness()
            }
            Rule::Home(takes, _) => {
                let is_by = |author| takes.authors.iter().any(|id| sql(*id) == author);
                let is_taken =
                    takes.sources.contains(&source.key.id) || entry.author_id.is_some_and(is_by);
                is_readable && is_taken && !source.is_of_threads
            }
            Rule::Readable(_) => is_readable,
            Rule::Source(..) => false,
        }
    }

    /// True for the entry at which the world's public timeline lists its post, or did until the
    /// post was deleted. In the latter case nothing stores that it was listed; that follows from
    /// the entry.
    pub(super) fn has_public_place(&self, entry: &PostEntry, found: &StoredPost) -> bool {
        let Rule::Public(readable) = self else {
            return false;
        };
        let source = readable.of_raw(entry.source_id);
        let was_listed = source.is_some_and(|source| source.shows_world(found.claimed))
            && entry.narrowness(found) == Visibility::Public.narrowness();
        found.has_public_place()
            && entry.id == sql(found.post.public_id)
            && (found.listed || was_listed)
    }
}
