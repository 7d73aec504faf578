//! Names of accounts and objects across servers, and the readers that a source has.

pub mod acct;
pub mod audience;
pub mod object_uri;
