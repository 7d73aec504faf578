//! Reports as people read them.

mod histogram;
mod post;
mod report;
mod status;
mod text;
mod time;

pub use post::PostParts;
pub use report::{count, last_error, report};
pub use status::{Overview, Room, StoreOverview, status};
pub use text::{beginning, plain};
pub use time::{ago_or_time_ms, date, time};
