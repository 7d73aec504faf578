//! Snowflake IDs that never repeat: layouts, generators, typed IDs, parsing and printing.
//!
//! A [`Layout`] says how a system packs time and other fields into its IDs; it reads, composes and
//! bounds raw values. An [`Id<T>`] is a 64-bit ID that belongs to one kind of entity. Raw values
//! are `u128`; layouts of 64 bits use the low 64.
//!
//! A [`Generator`], or a [`SharedGenerator`] for many threads, makes IDs of a 64-bit layout of
//! time, node and sequence. It owns a [`Window`]: the times of its [`Node`] that are recorded to be
//! its own. [`window`] says why no ID ever repeats, and the module `file` (feature `file`) keeps
//! the records. A generator takes its [`Clock`](clock::Clock) as an argument.
//!
//! Without features the crate needs `alloc` only, and reads no clock, no randomness, no file and no
//! socket. The target needs 64-bit atomics.
//!
//! | feature | adds |
//! |---|---|
//! | `std` | blocking calls, system clocks, generators that notice a fork |
//! | `file` | windows recorded in files, nodes leased from a folder |
//! | `tokio` | calls that wait on a Tokio runtime, with a deadline |
//! | `serde` | IDs as strings |
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
//!
//! The short way to new IDs, with the feature `file`, is `file::LocalIds`:
//!
//! ```
//! # #[cfg(feature = "file")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! use driftline_id::Layout;
//! use driftline_id::file::LocalIds;
//!
//! let ids = LocalIds::open(folder, Layout::TWITTER)?;
//! let id = ids.next_id()?;
//! # assert!(id > 0);
//! ids.close()?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "file"))]
//! # fn main() {}
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod atomic;
pub mod base32;
mod batch;
#[cfg(feature = "std")]
mod blocking;
pub mod clock;
mod compose;
mod custom;
pub mod decimal;
mod decoded;
mod digits;
mod field;
#[cfg(feature = "file")]
pub mod file;
mod generator;
mod grant;
mod guess;
pub mod hex;
#[cfg(feature = "serde")]
mod json;
mod layout;
mod life;
mod node;
mod origin;
mod plan;
mod policy;
mod refusal;
mod rules;
mod run;
mod seconds;
mod shared;
mod shared_methods;
mod span;
mod text;
mod typed;
pub mod uuid;
#[cfg(feature = "tokio")]
mod waiting;
pub mod window;

pub use batch::Batch;
pub use compose::ComposeError;
pub use custom::LayoutError;
pub use decoded::{Decoded, FieldValue};
pub use field::{Field, FieldKind};
pub use generator::Generator;
pub use guess::candidates;
pub use layout::{Layout, TimeUnit};
pub use life::LifeWarning;
pub use node::{Node, NodeError, UnfitLayoutError};
pub use policy::{ClockPolicy, SequenceStart};
pub use refusal::{NotNow, Refusal, StartError, Wait};
pub use shared::{Lane, SharedGenerator};
pub use span::TimeError;
pub use text::{ParseIdError, TextForm};
pub use typed::{Id, IdRangeError};
pub use window::{Retired, Window, WindowEnd};
