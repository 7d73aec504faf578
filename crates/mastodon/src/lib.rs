//! The JSON of the Mastodon API, read and written.
//!
//! What servers send is read tolerantly, through [`RawObject`]; whatever is not understood stays in
//! the raw JSON that a post carries. Entities with a fixed form are typed. Posts that are passed on
//! are copied by a [`Copier`], which leaves out what belongs to their reader and room for local IDs
//! (a [`Template`]), with its HTML cleaned ([`clean_html`]).

mod account;
mod copied;
mod copied_status;
mod decimal;
mod html;
mod html_members;
pub mod instance;
mod json_string;
mod link;
mod list;
mod notification;
mod object_writer;
mod overlay;
mod post_hashes;
mod raw_object;
mod read_status;
mod references;
mod repeated_keys;
mod searchable_text;
mod status;
mod template;
mod time;
pub mod viewer;
mod web_address;

pub use account::Account;
pub use copied::Copier;
pub use copied_status::{StatusHead, has_media, is_for_anyone};
pub use html::{clean_embed, clean_html, escape_html};
pub use json_string::end_of_string;
pub use link::Link;
pub use list::List;
pub use notification::Notification;
pub use object_writer::ObjectWriter;
pub use overlay::ViewerOverlay;
pub use post_hashes::post_hashes;
pub use raw_object::{RawObject, id, text, whole};
pub use read_status::{
    StatusError, read_account, read_made_status, read_parsed, read_status, read_version,
    required_id,
};
pub use references::references;
pub use repeated_keys::TooDeep;
pub use searchable_text::{ReplyTo, plain_text, reply_to, searchable_text};
pub use status::{MediaAttachment, MediaMeta, MediaSize, Mention, Status, Tag};
pub use template::{Referent, Template};
pub use time::{iso_8601, parse_time_ms};
