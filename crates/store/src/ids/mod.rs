//! IDs: their types, those that the store gives, and those that are given but may not be visible yet.

pub(crate) mod id_types;
pub mod local_ids;
pub(crate) mod new_ids;
pub mod reservation;
