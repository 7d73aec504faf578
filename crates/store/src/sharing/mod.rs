//! The processes that share the work of a store.
//!
//! The division of work follows from the rows of members and from the leases, by
//! [`driftline_core::sharing`]. Each process computes it. Events that all must notice at once raise
//! one number ([`change`]), which is cheap to check often.

pub mod change;
pub mod member;
