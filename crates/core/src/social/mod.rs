//! Servers and people.

pub mod instance;

pub use instance::{Instance, InstanceId, InstanceProfile};
