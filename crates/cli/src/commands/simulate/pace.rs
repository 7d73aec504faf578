//! How many requests in how much time.

use crate::duration::parse_ms;

/// Requests in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub(super) requests: i64,
    pub(super) in_ms: i64,
}

/// Reads `REQUESTS/TIME`, such as 300/5m.
///
/// # Errors
/// A message if it is not that.
pub(super) fn pace(text: &str) -> Result<Pace, String> {
    let wrong = || format!("invalid quota {text:?}: expected REQUESTS/TIME, such as 300/5m");
    let (requests, time) = text.split_once('/').ok_or_else(wrong)?;
    let requests: i64 = requests.trim().parse().map_err(|_| wrong())?;
    let in_ms = parse_ms(time.trim()).map_err(|_| wrong())?;
    if requests < 1 || in_ms < 1 {
        return Err(wrong());
    }
    Ok(Pace { requests, in_ms })
}
