use std::collections::{HashMap, HashSet};

use driftline_core::predicate::{PostFacts, PostTrait};
use driftline_mastodon::StatedFacts;
use driftline_store::{
    AccountId, InstanceId, StoreError, Tx, instance, search,
    social::{
        list_entry::{self, ListKey},
        relation,
    },
    timeline::{Pick, TimelinePost, Viewer},
    viewer::ReadableSources,
};

use super::Search;
use crate::mastodon::timelines::hidden_posts::HiddenPosts;

/// Selects the posts that a predicate matches, without hidden ones.
pub(crate) struct Selection<'s> {
    search: &'s Search,
    readable: &'s ReadableSources,
    origins: HashMap<InstanceId, String>,
    hidden: HiddenPosts,
    followed: HashSet<AccountId>,
    /// A list whose entries are left out.
    pub(super) left_out: Option<ListKey>,
}

impl<'s> Selection<'s> {
    /// Reads what the selection compares posts with.
    pub(crate) fn load(
        tx: &mut Tx<'_>,
        search: &'s Search,
        readable: &'s ReadableSources,
        hidden: HiddenPosts,
    ) -> Result<Selection<'s>, StoreError> {
        let followed = match readable.viewer().account() {
            Some(account) if search.names_followed() => relation::followed(tx, account)?,
            _ => Vec::new(),
        };
        let origins = instance::all(tx)?.into_iter();
        Ok(Selection {
            search,
            readable,
            origins: origins
                .map(|instance| (instance.id, instance.origin))
                .collect(),
            hidden,
            followed: followed.into_iter().map(|row| row.other).collect(),
            left_out: None,
        })
    }
}

impl Pick for Selection<'_> {
    fn pick(
        &self,
        tx: &mut Tx<'_>,
        posts: Vec<TimelinePost>,
    ) -> Result<Vec<TimelinePost>, StoreError> {
        let selected = self.selected(tx, &posts)?;
        let posts = posts.into_iter().zip(selected);
        let mut posts: Vec<TimelinePost> = posts
            .filter_map(|(post, is_selected)| is_selected.then_some(post))
            .collect();
        if let Some(list) = self.left_out {
            let entries = list_entry::of_posts(tx, list, &posts)?;
            posts.retain(|post| !entries.contains_key(&post.id));
        }
        Ok(posts)
    }
}

impl Selection<'_> {
    pub(super) fn viewer(&self) -> Viewer {
        self.readable.viewer()
    }

    /// Returns for each post whether it is selected.
    pub(super) fn selected(
        &self,
        tx: &mut Tx<'_>,
        posts: &[TimelinePost],
    ) -> Result<Vec<bool>, StoreError> {
        let authors: Vec<AccountId> = posts.iter().filter_map(|post| post.account).collect();
        let nicknames = match self.search.needed.entries {
            true => search::nicknames(tx, &authors, self.readable)?,
            false => HashMap::new(),
        };
        let sources = match self.search.names_sources() {
            true => search::sources(tx, posts, self.readable)?,
            false => HashMap::new(),
        };
        let is_match = |post: &TimelinePost| {
            let origin = self.origins.get(&post.instance).map_or("", String::as_str);
            let mut stated = StatedFacts::read_needed(&post.raw, origin, self.search.needed);
            let named = post.account.and_then(|author| nicknames.get(&author));
            stated.entries.extend(named.into_iter().flatten().cloned());
            if post
                .account
                .is_some_and(|author| self.followed.contains(&author))
            {
                stated.traits.push(PostTrait::Followed);
            }
            let sources = sources.get(&post.id).map(Vec::as_slice).unwrap_or_default();
            let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
            let via = origin.split_once("://").map_or(origin, |(_, host)| host);
            let others = PostFacts {
                author_id: post.account.map(AccountId::raw),
                via: &[via],
                sources: &sources,
                visibility: post.visibility,
                created_at_ms: post.created_at_ms,
                ..PostFacts::bare(post.id.raw(), "")
            };
            stated.is_match(&self.search.matcher, others)
        };
        let is_selected = |post| !self.hidden.has(post) && is_match(post);
        Ok(posts.iter().map(is_selected).collect())
    }
}
