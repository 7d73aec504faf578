//! The processes that share the work of a store.
//!
//! Who is to do what follows from the rows of members and from who holds what, by
//! [`driftline_core::sharing`]; each process computes it. What all are to notice at once raises one
//! number ([`change`]), which costs them little to look at often.

pub mod change;
pub mod member;
