use std::collections::{HashMap, HashSet};

use driftline_core::{post::References, upstream_id::UpstreamId};
use driftline_mastodon::Referent;
use driftline_store::{
    InstanceId, LocalId, StoreError, Tx,
    reference::{self, PendingLocalIds},
    timeline,
    viewer::ReadableSources,
};

use super::entity_template::EntityTemplate;
use crate::{mastodon::accounts::linked_accounts::LinkedAccounts, transport::Address};

/// The local IDs of the posts and accounts that an answer names, looked up once for all of it.
#[derive(Debug, Default)]
pub(crate) struct LocalReferences {
    ids: HashMap<InstanceId, reference::LocalIds>,
    /// The accounts of this server that the answer shows.
    pub(super) linked: LinkedAccounts,
}

impl LocalReferences {
    /// Looks up what these entities name, as who may read these sources finds it.
    pub(crate) fn find(
        tx: &mut Tx<'_>,
        shown: &[EntityTemplate],
        readable: &ReadableSources,
        address: &Address,
    ) -> Result<Self, StoreError> {
        Self::ask(tx, shown)?.read(tx, readable, address)
    }

    /// Asks for what these entities name, along with what is asked next.
    pub(crate) fn ask(
        tx: &mut Tx<'_>,
        shown: &[EntityTemplate],
    ) -> Result<PendingReferences, StoreError> {
        let mut all: HashMap<InstanceId, References> = HashMap::new();
        for (instance, referent, id) in EntityTemplate::references(shown) {
            let references = all.entry(instance).or_default();
            let ids = match referent {
                Referent::Post => &mut references.posts,
                Referent::Account => &mut references.accounts,
            };
            ids.push(UpstreamId::from(id));
        }
        let mut asked = Vec::with_capacity(all.len());
        for (instance, references) in all {
            let ids = reference::local_ids_later(tx, instance, &references)?;
            asked.push((instance, references.posts, ids));
        }
        let own = EntityTemplate::own_accounts(shown).map(str::to_owned);
        Ok(PendingReferences {
            asked,
            own_accounts: own.collect(),
        })
    }

    /// Names posts of an instance by these IDs, whatever was found.
    pub(crate) fn name_posts(&mut self, instance: InstanceId, ids: HashMap<String, LocalId>) {
        self.ids.entry(instance).or_default().posts.extend(ids);
    }

    /// The local ID of what has that ID at an instance.
    pub(crate) fn id(
        &self,
        instance: InstanceId,
        referent: Referent,
        upstream_id: &str,
    ) -> Option<u64> {
        let ids = self.ids.get(&instance)?;
        match referent {
            Referent::Post => ids.posts.get(upstream_id).map(|id| id.raw()),
            Referent::Account => {
                let id = ids.accounts.get(upstream_id)?;
                Some(self.linked.shown_id(id.raw()))
            }
        }
    }
}

/// What was asked for of what posts and accounts name.
pub(crate) struct PendingReferences {
    asked: Vec<(InstanceId, Vec<UpstreamId>, PendingLocalIds)>,
    own_accounts: HashSet<String>,
}

impl PendingReferences {
    /// What was asked for, as [`LocalReferences::find`] returns it.
    pub(crate) fn read(
        self,
        tx: &mut Tx<'_>,
        readable: &ReadableSources,
        address: &Address,
    ) -> Result<LocalReferences, StoreError> {
        let mut found = LocalReferences::default();
        for (instance, posts, ids) in self.asked {
            let mut ids = ids.read(tx)?.for_viewer(tx, readable)?;
            let names: Vec<&str> = posts.iter().map(|id| id.as_str()).collect();
            ids.posts
                .extend(timeline::named(tx, instance, &names, readable)?);
            found.ids.insert(instance, ids);
        }
        let names = self.own_accounts.iter().map(String::as_str);
        found.linked = LinkedAccounts::load(tx, names, readable.viewer(), address)?;
        Ok(found)
    }
}
