//! The JSON of the Mastodon API, read and written.
//!
//! What servers send is read tolerantly, through [`RawObject`]; whatever is not understood stays in
//! the raw JSON that a post carries. Entities are written through an [`ObjectWriter`]; of posts that
//! are passed on, [`copy_status`] and [`write_account`] say which members are copied.

mod account;
mod copied;
mod copied_status;
mod link;
mod list;
mod notification;
mod object_writer;
mod overlay;
mod post_hashes;
mod raw_object;
mod read_status;
mod time;
pub mod viewer;

pub use account::write_account;
pub use copied_status::{copy_status, write_status_edit};
pub use link::Link;
pub use list::List;
pub use notification::Notification;
pub use object_writer::ObjectWriter;
pub use overlay::ViewerOverlay;
pub use post_hashes::post_hashes;
pub use raw_object::{RawObject, id, text, whole};
pub use read_status::{StatusError, read_parsed, read_status, required_id};
pub use time::{iso_8601, parse_time_ms};
