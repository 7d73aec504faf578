//! The JSON of the Mastodon API, read and written.
//!
//! JSON from servers is read tolerantly, through [`RawObject`]. Unknown members stay in the raw
//! JSON of a post. Entities with a fixed form are typed. A [`Copier`] copies posts of servers. It
//! omits the parts that concern their reader, leaves room for local IDs (a [`Template`]) and cleans
//! the HTML ([`clean_html`]).

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
mod partial_entry;
mod post_facts;
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
pub use partial_entry::{entry_update, is_partial_entry, merge_partial_entry};
pub use post_facts::StatedFacts;
pub use post_hashes::post_hashes;
pub use raw_object::{RawObject, id, text, whole};
pub use read_status::{
    StatusError, read_account, read_made_status, read_parsed, read_status, read_version,
    required_id,
};
pub use references::references;
pub use repeated_keys::TooDeep;
pub use searchable_text::{
    ReplyTo, TEXT_EXTRACTION, plain_text, reply_to, searchable_text, text_of_json,
};
pub use status::{MediaAttachment, MediaMeta, MediaSize, Mention, Status, Tag};
pub use template::{AccountForm, Referent, Template};
pub use time::{iso_8601, parse_time_ms};
