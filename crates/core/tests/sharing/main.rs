//! Work that several processes share.

mod division;
mod laws;
