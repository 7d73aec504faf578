use std::collections::HashMap;

use driftline_core::{post::References, upstream_id::UpstreamId};
use driftline_mastodon::Referent;
use driftline_store::{
    InstanceId, LocalId, StoreError, Tx,
    reference::{self, PendingLocalIds},
    timeline,
    viewer::ReadableSources,
};

/// The local IDs of the posts and accounts that an answer names, looked up once for all of it.
#[derive(Debug, Default)]
pub(crate) struct LocalReferences(HashMap<InstanceId, reference::LocalIds>);

impl LocalReferences {
    /// Looks up these, as who may read these sources finds them.
    pub(crate) fn find<'n>(
        tx: &mut Tx<'_>,
        named: impl Iterator<Item = (InstanceId, Referent, &'n str)>,
        readable: &ReadableSources,
    ) -> Result<Self, StoreError> {
        Self::ask(tx, named)?.read(tx, readable)
    }

    /// Asks for these, along with what is asked next.
    pub(crate) fn ask<'n>(
        tx: &mut Tx<'_>,
        named: impl Iterator<Item = (InstanceId, Referent, &'n str)>,
    ) -> Result<PendingReferences, StoreError> {
        let mut all: HashMap<InstanceId, References> = HashMap::new();
        for (instance, referent, id) in named {
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
        Ok(PendingReferences(asked))
    }

    /// Names posts of an instance by these IDs, whatever was found.
    pub(crate) fn name_posts(&mut self, instance: InstanceId, ids: HashMap<String, LocalId>) {
        self.0.entry(instance).or_default().posts.extend(ids);
    }

    /// The local ID of what has that ID at an instance.
    pub(crate) fn id(
        &self,
        instance: InstanceId,
        referent: Referent,
        upstream_id: &str,
    ) -> Option<u64> {
        let ids = self.0.get(&instance)?;
        match referent {
            Referent::Post => ids.posts.get(upstream_id).map(|id| id.raw()),
            Referent::Account => ids.accounts.get(upstream_id).map(|id| id.raw()),
        }
    }
}

/// What was asked for of what posts and accounts name.
pub(crate) struct PendingReferences(Vec<(InstanceId, Vec<UpstreamId>, PendingLocalIds)>);

impl PendingReferences {
    /// What was asked for, as [`LocalReferences::find`] returns it.
    pub(crate) fn read(
        self,
        tx: &mut Tx<'_>,
        readable: &ReadableSources,
    ) -> Result<LocalReferences, StoreError> {
        let mut found = LocalReferences::default();
        for (instance, posts, ids) in self.0 {
            let mut ids = ids.read(tx)?.for_viewer(tx, readable)?;
            let names: Vec<&str> = posts.iter().map(|id| id.as_str()).collect();
            ids.posts
                .extend(timeline::named(tx, instance, &names, readable)?);
            found.0.insert(instance, ids);
        }
        Ok(found)
    }
}
