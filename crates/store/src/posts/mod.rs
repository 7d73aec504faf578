//! Stored posts with their authors, instances and earlier versions, and how they are read.

pub mod account;
pub(crate) mod account_profile;
pub(crate) mod alias;
pub mod author_hosts;
pub(crate) mod content_scope;
pub mod edited_post;
pub mod export;
pub mod fetched_history;
pub mod find;
pub mod history;
pub mod index_pending;
pub mod instance;
pub mod instance_info;
pub mod instance_removal;
pub mod known_instances;
pub(crate) mod object_uri;
mod pending_posts;
pub(crate) mod post;
pub(crate) mod post_removal;
pub(crate) mod post_text;
pub mod reference;
pub(crate) mod scoped_content;
pub(crate) mod shown_condition;
pub mod text_rebuild;
pub mod timeline;
