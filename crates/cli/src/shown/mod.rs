//! Reports as people read them.

mod histogram;
mod report;
mod time;

pub use report::{count, last_error, report};
pub use time::{ago_or_time_ms, time};
