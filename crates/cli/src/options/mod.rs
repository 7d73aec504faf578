//! Options that several commands share.

pub mod global_options;
pub mod id_options;
pub mod id_place;
pub mod log_format;
pub mod mail_options;
pub mod passphrase_options;
pub mod source_options;
pub mod token_options;
