//! The test kit under the names that this suite uses.

pub(crate) use driftline_store::testing::{
    EVERYTHING, Feed as World, START_MS, headers, names, new_source, newest_page, on_both, open,
    page, post, posts, settings,
};
