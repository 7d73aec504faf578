//! Searches by predicates, for one viewer.

mod selection;

use driftline_core::predicate::{
    LimitError, Matcher, NameContext, ParseError, Predicate, Usage, UsageError,
};
use driftline_store::{
    StoreError, Tx,
    search,
    timeline::{Range, Stretch, Viewer},
    viewer::ReadableSources,
};

use selection::Selection;

/// A predicate that is searched for.
#[derive(Debug)]
pub struct Search {
    predicate: Predicate,
    matcher: Matcher,
}

/// The reason why a text is not searched for.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The text is not a predicate.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The predicate has a term that searches do not accept.
    #[error(transparent)]
    Usage(#[from] UsageError),
}

impl Search {
    /// Reads a predicate from its text form.
    ///
    /// # Errors
    /// [`SearchError`] if the text is not a predicate that can be searched for.
    pub fn parse(text: &str, names: &NameContext<'_>) -> Result<Search, SearchError> {
        Search::new(Predicate::parse(text, names)?)
    }

    /// Prepares a predicate.
    ///
    /// # Errors
    /// [`SearchError::Usage`] if it has a term that searches do not accept.
    pub fn new(predicate: Predicate) -> Result<Search, SearchError> {
        predicate.validate(Usage::Search)?;
        let matcher = Matcher::new(&predicate);
        Ok(Search { predicate, matcher })
    }

    /// The predicate.
    pub fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// Returns a part of the posts that the predicate selects among all that a viewer may read, each
    /// at the viewer's place for it.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub fn stretch(
        &self,
        tx: &mut Tx<'_>,
        range: &Range,
        viewer: Viewer,
        now_ms: i64,
    ) -> Result<Stretch, StoreError> {
        let readable = ReadableSources::load(tx, viewer)?;
        let selection = Selection::load(tx, self, &readable, now_ms)?;
        search::find(tx, range, &readable, &self.predicate, &selection)
    }
}
