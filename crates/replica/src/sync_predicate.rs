use driftline_core::predicate::{NameContext, ParseProblem, Predicate, Usage};

use crate::ReplicaError;

/// Reads a predicate of what a post itself contains from its text form. An account without a host is one of the server at
/// `origin`. Errors say the use of the predicate.
///
/// # Errors
/// [`ReplicaError::Query`] if the text is no predicate, or has a term that a filter of a synced library must not have.
pub(crate) fn parse(text: &str, origin: &str, used: &str) -> Result<Predicate, ReplicaError> {
    let names = NameContext {
        origin,
        viewer: None,
    };
    let predicate = Predicate::parse(text, &names).map_err(|error| {
        let hint = match &error.problem {
            // The usual hint names operators that are refused here.
            ParseProblem::UnsupportedOperator { .. } => {
                format!("Use `author:` or `visibility:`. {BY_NAME}")
            }
            problem => problem.hint(),
        };
        ReplicaError::Query(format!("{error}. {hint}"))
    })?;
    predicate.validate(Usage::Sync).map_err(|error| {
        let term = error.term;
        let hint = match term.starts_with("source:") {
            true => format!(". {BY_NAME}"),
            false => String::new(),
        };
        ReplicaError::Query(format!("`{term}` is not possible in {used}{hint}"))
    })?;
    Ok(predicate)
}

/// The use of the filter of a subscription.
pub(crate) const FILTER: &str = "a filter of a synced library";
/// The use of a search.
pub(crate) const SEARCH: &str = "`find` of a replica";
const BY_NAME: &str = "A source is given by its name: `driftline replica timeline NAME`, `driftline replica subscribe NAME`.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_not_advised() {
        for (text, expected) in [
            (
                "has:link",
                "`has:link` is not possible in `find` of a replica",
            ),
            ("source:news", "replica timeline NAME"),
            ("in:library", "Use `author:` or `visibility:`. A source"),
        ] {
            let error = parse(text, "https://a.example", SEARCH).expect_err(text);
            let message = error.to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("Use `source:`"), "{message}");
        }
    }
}
