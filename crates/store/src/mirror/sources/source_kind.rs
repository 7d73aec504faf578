//! Conditions on the kinds of sources, in SQL.

/// Holds for sources that are listed ([`SourceKind::is_listed`](driftline_core::source_kind::SourceKind::is_listed)).
/// Must be written behind the alias of the table and a dot, if it has one.
pub(crate) const IS_LISTED: &str = "kind <> 'threads'";
/// Holds for the sources of threads, whose entries are in no timeline of several sources.
pub(crate) const IS_OF_THREADS: &str = "kind = 'threads'";

#[cfg(test)]
mod tests {
    use driftline_core::source_kind::SourceKind;

    use super::*;

    #[test]
    fn sql_and_kinds_agree() {
        for kind in SourceKind::ALL {
            let is_threads = IS_OF_THREADS == format!("kind = '{}'", kind.name());
            let is_excluded = IS_LISTED == format!("kind <> '{}'", kind.name());
            assert_eq!(is_threads, !kind.is_in_timelines(), "{kind:?}");
            assert_eq!(is_excluded, !kind.is_listed(), "{kind:?}");
        }
    }
}
