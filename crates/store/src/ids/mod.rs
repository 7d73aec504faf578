//! IDs: their types, the given ones, and those that may not be visible yet.

pub(crate) mod id_types;
pub mod local_ids;
pub(crate) mod new_ids;
pub mod reservation;
