use std::collections::{BTreeMap, HashMap};

use driftline_store::{
    LocalAccountId, SourceId, StoreError, Tx, Viewer,
    change_feed::{self, FeedSource},
    sync::{current_cursor, has_news},
    viewer::LazyReadableSources,
};

use super::source_library;

/// The libraries for whose changes a device waits, with the USNs up to which it was notified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NotifiedUsns {
    /// The USN of the account's own library.
    account: i64,
    /// The USNs of the libraries of sources, by their names. `None` for one that the viewer may not read.
    sources: BTreeMap<String, Option<i64>>,
}

impl NotifiedUsns {
    /// The account's own library and these libraries of sources, of which the device was notified of nothing yet.
    pub(super) fn nothing(sources: impl IntoIterator<Item = String>) -> Self {
        Self {
            account: 0,
            sources: sources.into_iter().map(|name| (name, None)).collect(),
        }
    }

    /// True if the viewer may read all its libraries.
    pub(super) fn is_readable(&self) -> bool {
        self.sources.values().all(Option::is_some)
    }

    /// The present state. Also returns true if the device is to be notified: a library has changes that the viewer may see, or
    /// the viewer may read it no longer, or again.
    pub(super) fn look(
        &self,
        tx: &mut Tx<'_>,
        account: LocalAccountId,
        viewer: Viewer,
    ) -> Result<(Self, bool), StoreError> {
        let mut now = Self {
            account: current_cursor(tx, account)?.usn,
            sources: BTreeMap::new(),
        };
        let mut is_news = now.account != self.account;
        let ids = self.sources.keys();
        let ids: Vec<SourceId> = ids
            .filter_map(|name| source_library::source_id(name))
            .collect();
        let named = change_feed::sources_by_ids(tx, &ids)?;
        let viewer_sources = LazyReadableSources::new(viewer);
        let readable: HashMap<String, &FeedSource> = named
            .iter()
            .filter(|source| source.shows(viewer).is_some())
            .map(|source| (source_library::name(source), source))
            .collect();
        for (name, notified) in &self.sources {
            let source = readable.get(name);
            is_news |= match (source, notified) {
                (Some(source), Some(after)) if source.update_count > *after && !is_news => {
                    has_news(tx, source.key, &viewer_sources, *after)?
                }
                (source, notified) => source.is_some() != notified.is_some(),
            };
            let usn = source.map(|source| source.update_count);
            now.sources.insert(name.clone(), usn);
        }
        Ok((now, is_news))
    }
}
