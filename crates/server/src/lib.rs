//! Driftline's pollers, HTTP and the service of IDs.
//!
//! [`Pollers`] runs a [`Session`] for each source that it holds a lease on;
//! [`http`] serves what is stored; [`ids`] gives out IDs; [`admin`] is what the command line asks of
//! a store, in this process or through a running server.

pub mod admin;
mod client;
mod clock;
pub mod http;
pub mod ids;
mod pollers;
mod recent;
mod report;
mod session;

pub use client::{ClientError, client_of};
pub use clock::now_ms;
pub use pollers::{Pollers, PollersOptions, Progress};
pub use report::{GapReport, LatenessReport, Report, RungReport, report};
pub use session::{Done, Session, SessionError};
