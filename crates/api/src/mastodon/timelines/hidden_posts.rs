use std::collections::{HashMap, HashSet};

use driftline_core::{names::acct::AcctKey, social::Relation};
use driftline_mastodon::{RawObject, has_media};
use driftline_store::{
    AccountId, InstanceId, LocalAccountId, PendingRows, StoreError, Tx, instance, local_account_id,
    social::{
        local_account, mute,
        relation::{self, RelationRow},
    },
    timeline::{self, Pick, TimelinePost, Viewer},
};

use crate::{mastodon::accounts::linked_accounts::copy_id, transport::Address};

/// What an account does not want to see in its timelines: posts, and boosts of posts, of those whom it mutes
/// or blocks, and boosts by those of whom it follows the posts alone. Also what a request leaves out.
#[derive(Debug, Default)]
pub(crate) struct HiddenPosts {
    authors: HashSet<AccountId>,
    boosters: HashSet<AccountId>,
    origins: HashMap<InstanceId, String>,
    without_media: bool,
}

/// What was asked for of it.
pub(crate) struct PendingHiddenPosts(Option<PendingAuthors>);

/// Whom an account blocks, and whom it mutes.
struct PendingAuthors {
    blocked: PendingRows<'static, Result<RelationRow, StoreError>>,
    muted: PendingRows<'static, AccountId>,
    address: Address,
}

impl HiddenPosts {
    /// Asks what a viewer does not want, along with what is asked next; nothing of one without an account.
    pub(crate) fn ask(
        tx: &mut Tx<'_>,
        viewer: Viewer,
        now_ms: i64,
        address: &Address,
    ) -> Result<PendingHiddenPosts, StoreError> {
        let Some(account) = viewer.account() else {
            return Ok(PendingHiddenPosts(None));
        };
        Ok(PendingHiddenPosts(Some(PendingAuthors {
            blocked: relation::all_later(tx, account, Relation::Blocking)?,
            muted: mute::all_later(tx, account, now_ms)?,
            address: address.clone(),
        })))
    }

    /// The same, and the boosts of `boosters`.
    pub(crate) fn and_boosts_of(self, boosters: HashSet<AccountId>) -> Self {
        Self { boosters, ..self }
    }

    /// The same, and posts without media if only those with media are asked for.
    pub(crate) fn and_without_media(self, only_media: bool) -> Self {
        Self {
            without_media: only_media,
            ..self
        }
    }

    /// The selection of all other posts; `None` if no post is hidden.
    pub(crate) fn picks(&self) -> Option<timeline::Picks<'_>> {
        let none = self.authors.is_empty() && self.boosters.is_empty() && !self.without_media;
        if none { None } else { Some(self) }
    }

    /// Whether a post is among it.
    pub(crate) fn has(&self, post: &TimelinePost) -> bool {
        let is_by = |authors: &HashSet<AccountId>| {
            post.account.is_some_and(|author| authors.contains(&author))
        };
        if is_by(&self.authors) || self.without_media && !has_media(&post.raw) {
            return true;
        }
        if post.boost_of.is_none() {
            return false;
        }
        is_by(&self.boosters) || self.is_boost_of_theirs(post)
    }

    fn is_boost_of_theirs(&self, post: &TimelinePost) -> bool {
        if self.authors.is_empty() {
            return false;
        }
        let boosted = RawObject::parse(&post.raw).map(|post| post.object("reblog"));
        let author = boosted.map(|boosted| boosted.object("account"));
        let acct = author.ok().and_then(|author| author.some_text("acct"));
        let origin = self.origins.get(&post.instance);
        let key = acct
            .zip(origin)
            .and_then(|(acct, origin)| AcctKey::new(&acct, origin));
        key.is_some_and(|key| self.authors.contains(&AccountId::new(key.account_id())))
    }
}

impl PendingHiddenPosts {
    /// What was asked for.
    pub(crate) fn read(self, tx: &mut Tx<'_>) -> Result<HiddenPosts, StoreError> {
        let Some(PendingAuthors {
            blocked,
            muted,
            address,
        }) = self.0
        else {
            return Ok(HiddenPosts::default());
        };
        let mut authors: HashSet<AccountId> = tx.rows(muted)?.into_iter().collect();
        for blocked in tx.rows(blocked)? {
            authors.insert(blocked?.other);
        }
        // What other servers show under the name of an account of this server is by a copy.
        let local = authors.iter().filter_map(|id| local_account_id(*id));
        let local: Vec<LocalAccountId> = local.collect();
        if !local.is_empty() && address.own_host().is_some() {
            let local = local_account::by_ids(tx, &local)?.into_iter();
            authors.extend(local.filter_map(|account| copy_id(&account.name, &address)));
        }
        let mut origins = HashMap::new();
        if !authors.is_empty() {
            let instances = instance::all(tx)?.into_iter();
            origins = instances
                .map(|instance| (instance.id, instance.origin))
                .collect();
        }
        Ok(HiddenPosts {
            authors,
            origins,
            ..HiddenPosts::default()
        })
    }
}

impl Pick for HiddenPosts {
    fn pick(
        &self,
        _: &mut Tx<'_>,
        mut posts: Vec<TimelinePost>,
    ) -> Result<Vec<TimelinePost>, StoreError> {
        posts.retain(|post| !self.has(post));
        Ok(posts)
    }
}
