//! Who may do what.

mod authorization;
mod operator;

pub use authorization::{Authorization, OperatorToken, OperatorTokenError, refuse_other_sites};

pub(crate) use operator::Operator;
