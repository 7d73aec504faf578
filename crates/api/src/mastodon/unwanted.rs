use std::collections::{HashMap, HashSet};

use driftline_core::{acct::AcctKey, social::Relation};
use driftline_mastodon::RawObject;
use driftline_store::{
    AccountId, InstanceId, LocalAccountId, StoreError, Tx, instance,
    social::{mute, relation},
    timeline::{TimelinePost, Viewer},
};

/// What an account does not want to see in its timelines: posts, and boosts of posts, of those whom it mutes
/// or blocks, and boosts by those of whom it follows the posts alone.
#[derive(Debug, Default)]
pub(super) struct Unwanted {
    authors: HashSet<AccountId>,
    boosters: HashSet<AccountId>,
    origins: HashMap<InstanceId, String>,
}

impl Unwanted {
    /// Of a viewer; nothing of one without an account.
    pub(super) fn load(tx: &mut Tx<'_>, viewer: Viewer, now_ms: i64) -> Result<Self, StoreError> {
        match viewer {
            Viewer::Account(account) => Self::of(tx, account, HashSet::new(), now_ms),
            Viewer::Anonymous | Viewer::Operator => Ok(Self::default()),
        }
    }

    /// Of an account that does not want the boosts of `boosters`.
    pub(super) fn of(
        tx: &mut Tx<'_>,
        account: LocalAccountId,
        boosters: HashSet<AccountId>,
        now_ms: i64,
    ) -> Result<Self, StoreError> {
        let blocked = relation::all(tx, account, Relation::Blocking)?;
        let mut authors: HashSet<AccountId> = blocked.into_iter().map(|row| row.other).collect();
        authors.extend(mute::all(tx, account, now_ms)?);
        let mut origins = HashMap::new();
        if !authors.is_empty() {
            let instances = instance::all(tx)?.into_iter();
            origins = instances
                .map(|instance| (instance.id, instance.origin))
                .collect();
        }
        Ok(Self {
            authors,
            boosters,
            origins,
        })
    }

    /// Whether everything is wanted.
    pub(super) fn is_empty(&self) -> bool {
        self.authors.is_empty() && self.boosters.is_empty()
    }

    /// Whether a post is among it.
    pub(super) fn has(&self, post: &TimelinePost) -> bool {
        let is_by = |authors: &HashSet<AccountId>| {
            post.account.is_some_and(|author| authors.contains(&author))
        };
        if is_by(&self.authors) {
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
            .and_then(|(acct, origin)| AcctKey::of(&acct, origin));
        key.is_some_and(|key| self.authors.contains(&AccountId::new(key.account_id())))
    }
}
