//! The synchronization of libraries between a server and replicas, as `docs/sync-protocol.md` specifies it: the messages,
//! and what both sides decide. Without I/O.
//!
//! Source: seed 004 (Evernote's EDAM).

mod key;
mod message;
mod usn;
mod value;

pub use key::{KeyError, ObjectKey, ObjectKind};
pub use message::{
    ChangeResult, LibraryNews, LibraryRequest, LibraryState, PushAnswer, PushChange, PushRequest,
    SyncAnswer, SyncRequest, SyncedObject, Tombstone,
};
pub use usn::Usn;
pub use value::{
    FilterValue, KeywordValue, ListValue, MAX_NOTE_CHARS, MarkerValue, MemberValue, NoteValue,
    ObjectValue, PostValue, ValueError,
};
