use driftline_core::predicate::{NameContext, Predicate, Usage};

use crate::ReplicaError;

/// Reads a predicate of what a post itself contains from its text form. An account without a host is one of the server at
/// `origin`.
///
/// # Errors
/// [`ReplicaError::Query`] if the text is no predicate, or has a term that a filter of a synced library must not have.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Predicate, ReplicaError> {
    let names = NameContext {
        origin,
        viewer: None,
    };
    let predicate = Predicate::parse(text, &names).map_err(|error| {
        let hint = error.problem.hint();
        ReplicaError::Query(format!("{error}. {hint}"))
    })?;
    let valid = predicate.validate(Usage::Sync);
    valid.map_err(|error| ReplicaError::Query(error.to_string()))?;
    Ok(predicate)
}
