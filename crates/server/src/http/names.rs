use std::collections::{HashMap, HashSet};

use driftline_store::{
    AccountId, InstanceId, LocalId, StoreError, Tx, source,
    timeline::{self, TimelinePost},
};

use super::status::Status;

/// The local names of what statuses refer to, found once for a whole answer.
#[derive(Debug, Default)]
pub(super) struct Names {
    origins: HashMap<InstanceId, String>,
    posts: HashMap<InstanceId, HashMap<String, Named>>,
    accounts: HashMap<InstanceId, HashMap<String, AccountId>>,
}

/// A post that the store has and anyone may see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) id: LocalId,
    pub(super) account: Option<AccountId>,
}

impl Names {
    /// Finds the names that `statuses` need.
    pub(super) fn find(tx: &mut Tx<'_>, statuses: &[Status<'_>]) -> Result<Self, StoreError> {
        let mut names = Self::default();
        for instance in source::instances(tx)? {
            names.origins.insert(instance.id, instance.origin);
        }
        for status in statuses {
            names.add(status.post());
            if let (Some(id), Some(account)) = (status.account_id(), status.post().account) {
                let accounts = names.accounts.entry(status.post().instance).or_default();
                accounts.insert(id.into_owned(), account);
            }
        }
        names.look_up(tx, statuses)?;
        Ok(names)
    }

    /// An instance's origin.
    pub(super) fn origin(&self, instance: InstanceId) -> &str {
        self.origins.get(&instance).map_or("", String::as_str)
    }

    /// The post of that ID at an instance.
    pub(super) fn post(&self, instance: InstanceId, upstream_id: &str) -> Option<Named> {
        self.posts.get(&instance)?.get(upstream_id).copied()
    }

    /// The account of that ID at an instance.
    pub(super) fn account(&self, instance: InstanceId, upstream_id: &str) -> Option<AccountId> {
        self.accounts.get(&instance)?.get(upstream_id).copied()
    }

    fn add(&mut self, post: &TimelinePost) {
        let named = Named {
            id: post.public_id,
            account: post.account,
        };
        let posts = self.posts.entry(post.instance).or_default();
        posts.insert(post.upstream_id.clone(), named);
    }

    /// Looks up what statuses refer to and what is not among them.
    fn look_up(&mut self, tx: &mut Tx<'_>, statuses: &[Status<'_>]) -> Result<(), StoreError> {
        let mut wanted: HashMap<InstanceId, HashSet<String>> = HashMap::new();
        for status in statuses {
            let instance = status.post().instance;
            for id in status.references() {
                if self.post(instance, &id).is_none() {
                    wanted.entry(instance).or_default().insert(id.into_owned());
                }
            }
        }
        for (instance, ids) in wanted {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            for found in timeline::named(tx, instance, &ids)? {
                let named = Named {
                    id: found.id,
                    account: found.account,
                };
                let posts = self.posts.entry(instance).or_default();
                posts.insert(found.upstream_id, named);
            }
        }
        Ok(())
    }
}
