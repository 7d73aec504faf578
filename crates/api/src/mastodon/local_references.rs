use std::collections::{HashMap, HashSet};

use driftline_store::{
    AccountId, InstanceId, LocalId, StoreError, Tx, source,
    timeline::{self, TimelinePost},
};

use super::status::Status;

/// The local IDs of the posts and accounts that statuses refer to, looked up once for a whole answer.
#[derive(Debug, Default)]
pub(super) struct LocalReferences {
    origins: HashMap<InstanceId, String>,
    posts: HashMap<InstanceId, HashMap<String, LocalPost>>,
    accounts: HashMap<InstanceId, HashMap<String, AccountId>>,
}

/// A stored post that anyone may see.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalPost {
    pub(super) id: LocalId,
    pub(super) account: Option<AccountId>,
}

impl LocalReferences {
    /// Finds the references of `statuses`.
    pub(super) fn find(tx: &mut Tx<'_>, statuses: &[Status<'_>]) -> Result<Self, StoreError> {
        let mut local = Self::default();
        if statuses.is_empty() {
            return Ok(local);
        }
        for instance in source::instances(tx)? {
            local.origins.insert(instance.id, instance.origin);
        }
        for status in statuses {
            local.add(status.post());
            if let (Some(id), Some(account)) = (status.account_id(), status.post().account) {
                let accounts = local.accounts.entry(status.post().instance).or_default();
                accounts.insert(id.into_owned(), account);
            }
        }
        local.look_up(tx, statuses)?;
        Ok(local)
    }

    /// An instance's origin.
    pub(super) fn origin(&self, instance: InstanceId) -> &str {
        self.origins.get(&instance).map_or("", String::as_str)
    }

    /// The post of that ID at an instance.
    pub(super) fn post(&self, instance: InstanceId, upstream_id: &str) -> Option<LocalPost> {
        self.posts.get(&instance)?.get(upstream_id).copied()
    }

    /// The account of that ID at an instance.
    pub(super) fn account(&self, instance: InstanceId, upstream_id: &str) -> Option<AccountId> {
        self.accounts.get(&instance)?.get(upstream_id).copied()
    }

    fn add(&mut self, post: &TimelinePost) {
        let local_post = LocalPost {
            id: post.public_id,
            account: post.account,
        };
        let posts = self.posts.entry(post.instance).or_default();
        posts.insert(post.upstream_id.clone(), local_post);
    }

    /// Looks up the references of statuses that are not among the statuses themselves.
    fn look_up(&mut self, tx: &mut Tx<'_>, statuses: &[Status<'_>]) -> Result<(), StoreError> {
        let mut missing: HashMap<InstanceId, HashSet<String>> = HashMap::new();
        for status in statuses {
            let instance = status.post().instance;
            for id in status.references() {
                if self.post(instance, &id).is_none() {
                    missing.entry(instance).or_default().insert(id.into_owned());
                }
            }
        }
        for (instance, ids) in missing {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            for found in timeline::public_posts(tx, instance, &ids)? {
                let local_post = LocalPost {
                    id: found.id,
                    account: found.account,
                };
                let posts = self.posts.entry(instance).or_default();
                posts.insert(found.upstream_id, local_post);
            }
        }
        Ok(())
    }
}
