use std::{collections::HashMap, sync::Arc};

use driftline_core::{filter_matcher::FilterMatcher, social::FilterSettings};
use driftline_mastodon::iso_8601;
use driftline_store::{
    LocalAccountId, LocalId, PendingRows, StoreError, Tx,
    social::{
        self,
        filter::{self, Filter},
    },
};
use parking_lot::Mutex;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

/// The compiled filters of accounts that read lately. Those of an account are read again when its library
/// has another update count. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterCache(Arc<Mutex<HashMap<LocalAccountId, Cached>>>);

#[derive(Clone, Debug)]
struct Cached {
    update_count: i64,
    filters: Arc<AccountFilters>,
}

impl FilterCache {
    /// Asks for what [`FilterCache::read`] needs, along with what is asked next.
    pub(crate) fn ask(
        tx: &mut Tx<'_>,
        account: LocalAccountId,
    ) -> Result<PendingUpdateCount, StoreError> {
        let update_count = social::update_count_later(tx, account)?;
        Ok(PendingUpdateCount {
            account,
            update_count,
        })
    }

    /// The filters of an account as they are in this transaction.
    pub(crate) fn read(
        &self,
        tx: &mut Tx<'_>,
        asked: PendingUpdateCount,
    ) -> Result<Arc<AccountFilters>, StoreError> {
        let account = asked.account;
        let update_count = tx.rows(asked.update_count)?.pop().unwrap_or_default();
        let known = self.0.lock().get(&account).cloned();
        if let Some(known) = known.filter(|known| known.update_count == update_count) {
            return Ok(known.filters);
        }
        let filters = Arc::new(AccountFilters::new(filter::all(tx, account)?));
        let mut cache = self.0.lock();
        if cache.len() >= MAX_ACCOUNTS {
            cache.clear();
        }
        // The count was read first: filters that are newer than it are read once more.
        let cached = Cached {
            update_count,
            filters: Arc::clone(&filters),
        };
        cache.insert(account, cached);
        Ok(filters)
    }
}

/// The last change of an account's library, which was asked for.
pub(crate) struct PendingUpdateCount {
    account: LocalAccountId,
    update_count: PendingRows<'static, i64>,
}

/// The filters of an account with all their keywords compiled into one matcher.
#[derive(Debug)]
pub(crate) struct AccountFilters {
    filters: Vec<Filter>,
    matcher: FilterMatcher,
    /// Of each keyword of the matcher: its filter, and its place there.
    keywords: Vec<(usize, usize)>,
}

/// A post that a filter may name.
pub(crate) struct FilteredPost {
    /// The ID that the store knows it by, if it is stored.
    pub(crate) post: Option<LocalId>,
    /// Its ID in the answer.
    pub(crate) shown_as: LocalId,
}

impl AccountFilters {
    fn new(filters: Vec<Filter>) -> Self {
        let mut keywords = Vec::new();
        for (of, filter) in filters.iter().enumerate() {
            keywords.extend((0..filter.keywords.len()).map(|at| (of, at)));
        }
        let rules = keywords.iter().map(|(of, at)| {
            let rule = &filters[*of].keywords[*at].rule;
            (rule.keyword.as_str(), rule.whole_word)
        });
        let matcher = FilterMatcher::new(rules);
        Self {
            matcher,
            keywords,
            filters,
        }
    }

    /// The entities `FilterResult` of the filters that match a text, or one of some posts. The text is asked
    /// for if there are keywords.
    pub(crate) fn results(
        &self,
        text: impl FnOnce() -> Option<String>,
        posts: &[FilteredPost],
        now_ms: i64,
    ) -> Vec<Box<RawValue>> {
        if self.filters.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Vec<&str>> = vec![Vec::new(); self.filters.len()];
        if !self.matcher.is_empty()
            && let Some(text) = text()
        {
            for keyword in self.matcher.matches(&text) {
                let (of, at) = self.keywords[keyword];
                found[of].push(&self.filters[of].keywords[at].rule.keyword);
            }
        }
        let results = self.filters.iter().zip(found);
        let active = results.filter(|(filter, _)| filter.settings.is_active(now_ms));
        let matching = active.filter_map(|(filter, keywords)| {
            let named = |of: &&FilteredPost| {
                let mut posts = filter.posts.iter();
                posts.any(|known| Some(known.key.post) == of.post)
            };
            let mut statuses: Vec<String> = posts
                .iter()
                .filter(named)
                .map(|of| of.shown_as.to_string())
                .collect();
            // More than one copy of a post may be named.
            statuses.dedup();
            if keywords.is_empty() && statuses.is_empty() {
                return None;
            }
            let result = json!({
                "filter": filter_entity(filter),
                "keyword_matches": (!keywords.is_empty()).then_some(keywords),
                "status_matches": (!statuses.is_empty()).then_some(statuses),
            });
            to_raw_value(&result).ok()
        });
        matching.collect()
    }
}

/// The entity `Filter` as it stands in a `FilterResult`, without its parts.
pub(crate) fn filter_entity(filter: &Filter) -> Value {
    let FilterSettings {
        title,
        contexts,
        action,
        expires_at_ms,
    } = &filter.settings;
    let contexts: Vec<&str> = contexts.iter().map(|context| context.name()).collect();
    json!({
        "id": filter.id.to_string(),
        "title": title,
        "context": contexts,
        "expires_at": expires_at_ms.map(iso_8601),
        "filter_action": action.name(),
    })
}

/// How many accounts' filters are kept.
const MAX_ACCOUNTS: usize = 1_000;
