pub(crate) use driftline_core::text::without_nul;
