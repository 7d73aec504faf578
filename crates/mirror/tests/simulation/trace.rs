//! What happens, printed for whoever replays a seed.

use std::fmt::Debug;

/// Prints it, if `DRIFTLINE_TRACE` is set.
#[allow(clippy::print_stderr)]
pub(crate) fn trace(now_ms: i64, what: &dyn Debug) {
    if std::env::var_os("DRIFTLINE_TRACE").is_some() {
        eprintln!("{now_ms} {what:?}");
    }
}
