//! Snowflake ID layouts, typed IDs, parsing and printing.
//!
//! A [`Layout`] says how a system packs time and other fields into its IDs; it reads, composes
//! and bounds raw values. An [`Id<T>`] is a 64-bit ID that belongs to one kind of entity. Raw
//! values are `u128`; layouts of 64 bits use the low 64.
//!
//! The crate needs `alloc` only, and reads no clock, no randomness, no file and no socket.
//!
//! ```
//! use driftline_id::Layout;
//!
//! let raw = Layout::TWITTER.parse("1050118621198921728")?;
//! assert_eq!(Layout::TWITTER.time_ms(raw), 1_539_202_764_211);
//!
//! let hour_ms = 3_600_000;
//! let since = Layout::TWITTER.smallest_at(Layout::TWITTER.time_ms(raw) - hour_ms);
//! assert!(since < raw);
//! # Ok::<(), driftline_id::ParseIdError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod base32;
pub mod base58;
mod compose;
pub mod decimal;
mod decoded;
mod digits;
mod field;
mod guess;
pub mod hex;
#[cfg(feature = "serde")]
mod json;
mod layout;
mod span;
mod text;
mod typed;
pub mod uuid;

pub use compose::ComposeError;
pub use decoded::{Decoded, FieldValue};
pub use field::{Field, FieldKind};
pub use guess::{Guess, MayPredate, candidates};
pub use layout::{Layout, TimeUnit};
pub use span::TimeError;
pub use text::{ParseIdError, TextForm};
pub use typed::{Id, IdRangeError};
