//! How posts are shown to one viewer: with what they say of the account that views them.

use std::{collections::HashMap, slice, sync::Arc};

use driftline_core::social::Mark;
use driftline_mastodon::{RawObject, Referent, ViewerOverlay, searchable_text};
use driftline_store::{
    AccountId, Instance, InstanceId, LocalAccountId, LocalId, PendingRows, SourceKey, StoreError,
    Tx, account, instance,
    social::marked_post,
    timeline::{self, PostKey, TimelinePost, Viewer},
    viewer::{LazyReadableSources, ReadableSources},
};
use serde_json::value::RawValue;

use super::{
    answer,
    filters::cache::{AccountFilters, FilterCache, FilteredPost},
    statuses::{
        entity_template::{EntityTemplate, Overlays},
        local_references::LocalReferences,
    },
    timelines::hidden_posts::{HiddenPosts, PendingHiddenPosts},
};
use crate::{auth::RequestContext, transport::Address};

/// How posts are shown to one viewer, at one time.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) viewer: Viewer,
    filters: FilterCache,
    now_ms: i64,
    pub(crate) address: Address,
    /// False if entities say nothing of the account that views them.
    has_overlays: bool,
    /// The viewer's sources in one transaction, if other queries of it use them, too.
    sources: Option<Arc<LazyReadableSources>>,
}

impl View {
    /// The view of a viewer whose entities say nothing of the viewer's account, so that they change only with the post.
    pub(crate) fn without_overlays(context: &RequestContext) -> Self {
        Self {
            has_overlays: false,
            ..Self::new(context)
        }
    }

    pub(crate) fn new(context: &RequestContext) -> Self {
        Self {
            viewer: context.viewer,
            filters: context.app.people.filters.clone(),
            now_ms: context.now_ms(),
            address: context.address.clone(),
            has_overlays: true,
            sources: None,
        }
    }

    /// The same view in a transaction whose queries share the sources that the viewer may read.
    pub(crate) fn in_transaction(&self, sources: &Arc<LazyReadableSources>) -> Self {
        Self {
            sources: Some(Arc::clone(sources)),
            ..self.clone()
        }
    }

    /// Asks what the viewer does not want to see, along with what is asked next.
    pub(crate) fn hidden(&self, tx: &mut Tx<'_>) -> Result<PendingHiddenPosts, StoreError> {
        HiddenPosts::ask(tx, self.viewer, self.now_ms, &self.address)
    }

    /// The entity `Status` of a post.
    pub(crate) fn status(
        &self,
        tx: &mut Tx<'_>,
        post: &TimelinePost,
        instance: &Instance,
    ) -> Result<Vec<u8>, StoreError> {
        let shown = EntityTemplate::status(post, instance, &self.address);
        let only = slice::from_ref(&shown);
        self.write(tx, &[post], only, HashMap::new(), |local, overlays| {
            let mut body = Vec::new();
            shown.write(&mut body, local, overlays);
            body
        })
    }

    /// The entities `Account` of authors, as a source that the viewer may read has shown them.
    pub(crate) fn accounts_of_source(
        &self,
        tx: &mut Tx<'_>,
        source: SourceKey,
        ids: &[AccountId],
    ) -> Result<HashMap<AccountId, Box<RawValue>>, StoreError> {
        let mut accounts = account::by_ids(tx, ids, &[source])?;
        let instance = match accounts.is_empty() {
            true => None,
            false => instance::by_id(tx, source.instance)?,
        };
        let Some(instance) = instance else {
            return Ok(HashMap::new());
        };
        // A server may give two accounts one name: the newest one counts.
        accounts.sort_by_key(|account| account.seen_at_ms);
        let shown = accounts
            .iter()
            .map(|account| EntityTemplate::account(account, &instance, &self.address));
        let shown: Vec<EntityTemplate> = shown.collect();
        self.write(tx, &[], &shown, HashMap::new(), |local, _| {
            let entities = accounts.iter().zip(&shown).filter_map(|(account, shown)| {
                let mut body = Vec::new();
                shown.write(&mut body, local, None);
                Some((account.id, answer::raw(body)?))
            });
            entities.collect()
        })
    }

    /// Calls `write` with what entities need to be written: the local IDs of what they name, and what they say of the
    /// viewer. `posts` and `shown` are the same, in one order. Posts in `named` have these IDs, whatever is found.
    pub(crate) fn write<T>(
        &self,
        tx: &mut Tx<'_>,
        posts: &[&TimelinePost],
        shown: &[EntityTemplate],
        named: HashMap<InstanceId, HashMap<String, LocalId>>,
        write: impl FnOnce(&LocalReferences, Option<&Overlays>) -> T,
    ) -> Result<T, StoreError> {
        let own;
        let sources = match &self.sources {
            Some(shared) => &**shared,
            None => {
                own = LazyReadableSources::new(self.viewer);
                &own
            }
        };
        let asked = sources.ask(tx)?;
        let references = LocalReferences::ask(tx, shown)?;
        // Posts say nothing of a viewer without an account.
        let overlays = match self.viewer.account().filter(|_| self.has_overlays) {
            Some(account) => {
                let nested = PendingNestedKeys::ask(tx, shown)?;
                Some((account, nested, FilterCache::ask(tx, account)?))
            }
            None => None,
        };
        let readable = sources.read(tx, asked)?;
        let mut local = references.read(tx, readable, &self.address)?;
        for (instance, ids) in named {
            local.name_posts(instance, ids);
        }
        let overlays = match overlays {
            Some((account, nested, filters)) => {
                let nested = nested.read(tx)?;
                let marks = PostMarks::load(tx, account, posts, &nested, readable)?;
                let filters = self.filters.read(tx, filters)?;
                let rule = OverlayRule {
                    marks: &marks,
                    filters: &filters,
                    now_ms: self.now_ms,
                };
                let mut overlays = Overlays::new();
                for (post, shown) in posts.iter().zip(shown) {
                    rule.add(&mut overlays, (post, shown), &nested, &local);
                }
                Some(overlays)
            }
            None => None,
        };
        Ok(write(&local, overlays.as_ref()))
    }
}

/// Stored posts that others show within them, by instance and ID there.
type NestedKeys = HashMap<InstanceId, HashMap<String, PostKey>>;

/// Stored posts within others that were asked for.
struct PendingNestedKeys(Vec<(InstanceId, PendingRows<'static, (String, PostKey)>)>);

impl PendingNestedKeys {
    fn ask(tx: &mut Tx<'_>, shown: &[EntityTemplate]) -> Result<Self, StoreError> {
        let mut names: HashMap<InstanceId, Vec<&str>> = HashMap::new();
        for shown in shown {
            let nested = names.entry(shown.instance()).or_default();
            nested.extend(shown.nested_posts());
        }
        names.retain(|_, names| !names.is_empty());
        let mut asked = Vec::with_capacity(names.len());
        for (instance, mut names) in names {
            names.sort_unstable();
            names.dedup();
            asked.push((instance, timeline::keys_later(tx, instance, &names)?));
        }
        Ok(Self(asked))
    }

    fn read(self, tx: &mut Tx<'_>) -> Result<NestedKeys, StoreError> {
        let mut keys = NestedKeys::new();
        for (instance, asked) in self.0 {
            keys.insert(instance, tx.rows(asked)?.into_iter().collect());
        }
        Ok(keys)
    }
}

/// Which posts an account has marked, and how: a mark of one copy is of all of them.
struct PostMarks(HashMap<LocalId, Vec<Mark>>);

impl PostMarks {
    fn load(
        tx: &mut Tx<'_>,
        account: LocalAccountId,
        posts: &[&TimelinePost],
        nested: &NestedKeys,
        readable: &ReadableSources,
    ) -> Result<Self, StoreError> {
        let within = nested.values().flat_map(HashMap::values).copied();
        let within: Vec<PostKey> = within.collect();
        // Each ID that may be marked, with that of the post in the answer.
        let mut copies: Vec<(LocalId, LocalId)> = Vec::new();
        for post in posts {
            copies.push((post.post_id, post.post_id));
            copies.extend(post.copies.iter().map(|copy| (copy.post, post.post_id)));
        }
        copies.extend(within.iter().map(|key| (key.post, key.post)));
        for (post, of) in timeline::copies_of(tx, &within, readable)? {
            copies.extend(of.iter().map(|copy| (copy.post, post)));
        }
        let ids: Vec<LocalId> = copies.iter().map(|(id, _)| *id).collect();
        let marked = marked_post::of(tx, account, &ids)?;
        let mut marks = HashMap::<_, Vec<_>>::new();
        for (id, mark) in marked {
            for (_, post) in copies.iter().filter(|(copy, _)| *copy == id) {
                marks.entry(*post).or_default().push(mark);
            }
        }
        Ok(Self(marks))
    }

    fn has(&self, post: Option<LocalId>, mark: Mark) -> bool {
        let marks = post.and_then(|post| self.0.get(&post));
        marks.is_some_and(|marks| marks.contains(&mark))
    }
}

/// What the overlays of posts, and of those within them, follow from.
struct OverlayRule<'a> {
    marks: &'a PostMarks,
    filters: &'a AccountFilters,
    now_ms: i64,
}

impl OverlayRule<'_> {
    fn add(
        &self,
        overlays: &mut Overlays,
        (post, shown): (&TimelinePost, &EntityTemplate),
        nested: &NestedKeys,
        local: &LocalReferences,
    ) {
        let instance = shown.instance();
        let keys = nested.get(&instance);
        let key_of = |name: &str| keys.and_then(|keys| keys.get(name)).map(|key| key.post);
        let boosted = post.boost_of.as_deref();
        let local_id = |name: &str| local.id(instance, Referent::Post, name).map(LocalId::new);
        // A boost is filtered as what it boosts.
        let copies = post.copies.iter().map(|copy| copy.post);
        let ids = [post.post_id].into_iter().chain(copies);
        let mut named: Vec<FilteredPost> = ids
            .map(|id| FilteredPost {
                post: Some(id),
                shown_as: post.id,
            })
            .collect();
        named.extend(boosted.and_then(|name| {
            Some(FilteredPost {
                post: key_of(name),
                shown_as: local_id(name)?,
            })
        }));
        let members = || RawObject::parse(&post.raw).ok();
        let filtered = self.filters.results(
            || members().map(|status| searchable_text(&status)),
            &named,
            self.now_ms,
        );
        let overlay = |post: Option<LocalId>, filtered| ViewerOverlay {
            favourited: self.marks.has(post, Mark::Favourite),
            bookmarked: self.marks.has(post, Mark::Bookmark),
            filtered,
            ..ViewerOverlay::default()
        };
        for name in shown.nested_posts() {
            let Some(shown_as) = local_id(name) else {
                continue;
            };
            let key = key_of(name);
            let filtered = match boosted == Some(name) {
                true => filtered.clone(),
                false => {
                    let named = [FilteredPost {
                        post: key,
                        shown_as,
                    }];
                    let text = || Some(searchable_text(&quoted(&members()?, name)?));
                    self.filters.results(text, &named, self.now_ms)
                }
            };
            overlays.insert(shown_as, overlay(key, filtered));
        }
        overlays.insert(post.public_id, overlay(Some(post.post_id), filtered));
    }
}

/// The post of that ID that another one quotes, or that one quotes that it boosts.
fn quoted<'j>(status: &RawObject<'j>, id: &str) -> Option<RawObject<'j>> {
    let boosted = status.object("reblog");
    [status, &boosted].into_iter().find_map(|status| {
        let quote = status.object("quote");
        let forms = [quote.object("quoted_status"), quote];
        forms
            .into_iter()
            .find(|quoted| quoted.id("id").as_deref() == Some(id))
    })
}
