//! The synchronization of libraries between a server and replicas, as `docs/sync-protocol.md` specifies it: the messages,
//! and what both sides decide. Without I/O.
//!
//! Source: seed 004 (Evernote's EDAM).

mod conflict;
mod digest;
mod draft;
mod incoming;
mod key;
mod kind;
mod message;
mod profile;
mod progress;
mod pushed;
mod raw_json;
mod replica_object;
mod same_value;
mod session;
mod source_session;
mod stored_push;
mod sweep;
mod text_merge;
mod usn;
mod value;

pub use conflict::{Conflict, ConflictReason, Outcome};
pub use digest::{DigestAnswer, LibraryDigest, object_digest};
pub use draft::{DraftValue, MAX_DRAFT_CHARS};
pub use incoming::{Incoming, incoming};
pub use key::{KeyError, LOCAL_HOST, ObjectKey, POST_ID_PREFIX, UNNAMED_HOST};
pub use kind::ObjectKind;
pub use message::{
    ChangeResult, LibraryNews, LibraryRequest, LibraryState, PushAnswer, PushChange, PushRequest,
    SyncAnswer, SyncRequest, SyncedObject, Tombstone,
};
pub use profile::ProfileValue;
pub use progress::{Binding, LibraryProgress};
pub use pushed::{pushed, refused};
pub use raw_json::RawJson;
pub use replica_object::{Base, LocalObject};
pub use same_value::same_value;
pub use session::{ACCOUNT_LIBRARY, Intake, SyncSession, SyncStep, SyncStop};
pub use source_session::{SourceIntake, SourceProgress, SourceSession};
pub use stored_push::{
    DeviceIdentity, MAX_PUSH_BYTES, MAX_PUSH_CHANGES, NextPush, SentChange, StoredPush, next_push,
    push_hash,
};
pub use sweep::{SweepMode, is_mass_deletion, library_gone, sweep};
pub use text_merge::merge_lines;
pub use usn::Usn;
pub use value::{
    AccountValue, FilterValue, FollowValue, MAX_ACCOUNT_NOTE_CHARS, MAX_NOTE_CHARS, MarkerValue,
    MuteValue, NoteValue, ObjectValue, PostValue, VALUE_FORM, ValueError,
};
