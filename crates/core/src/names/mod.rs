//! Names of accounts, instances and objects across servers, and the readers that a source has.

pub mod acct;
pub mod audience;
pub mod host;
pub mod object_uri;
