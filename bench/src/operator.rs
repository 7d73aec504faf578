//! The operator of the servers under measurement.

use driftline_api::auth::{Authorization, OperatorToken};

use crate::failure::Failure;

/// The operator's token.
pub(crate) const TOKEN: &str = "the-token-of-the-operator-of-a-bench";

/// Servers ask for that token.
pub(crate) fn authorization() -> Result<Authorization, Failure> {
    let token = OperatorToken::new(&TOKEN.to_owned().into())?;
    Ok(Authorization::Operator(token))
}
