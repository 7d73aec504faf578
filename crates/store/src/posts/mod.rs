//! Stored posts with their authors, instances and earlier versions, and how they are read.

pub mod account;
pub(crate) mod alias;
pub mod export;
pub mod find;
pub mod history;
pub mod instance;
pub(crate) mod post;
pub mod reference;
pub(crate) mod rehash;
pub mod timeline;
