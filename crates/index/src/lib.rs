//! The search index.
//!
//! The index has a document for each place of a timeline at which a post may stand. A document is a
//! set of [`Term`]s: adjacent characters of the post's texts, its author, its labels
//! (tags, mentions, language, attachments, days of creation), its sources, and the readers who may be shown the place. A [`TermQuery`] finds candidates in the order of their
//! places. The caller checks each candidate exactly, so a document may have more terms than its
//! post, but never fewer.
//!
//! SQLite keeps the documents in FTS5, PostgreSQL in a GIN index on arrays. Both have the same
//! terms.

mod document;
mod grams;
mod places;
mod plan;
mod query;
mod term;

pub use document::{Document, remove, write};
pub use grams::{WordTerms, text_terms};
pub use places::{IndexedPlace, PlaceReader, PlaceWindow};
pub use plan::{NamedRows, plan, planned_terms};
pub use query::TermQuery;
pub use term::Term;
