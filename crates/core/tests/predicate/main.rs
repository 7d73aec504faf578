//! The language of predicates: both forms, matching, and what an index needs.

mod candidates;
mod canonical;
mod examples;
mod folding;
mod hostile;
mod index_form;
mod json;
mod matching;
mod naive;
mod parsing;
mod post;
mod random;
mod usage;
