//! Reports as people read them.

mod histogram;
mod report;
mod time;

pub use report::{never_fetched, open_gaps, report};
pub use time::{ago_or_time_ms, time};
