//! Servers and people.

pub mod instance_info;
