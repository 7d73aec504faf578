use std::collections::HashMap;

use driftline_core::{post::References, upstream_id::UpstreamId};
use driftline_mastodon::Referent;
use driftline_store::{
    InstanceId, LocalId, StoreError, Tx, reference,
    timeline::{self, Viewer},
};

use super::status::Shown;

/// The local IDs of the posts and accounts that an answer names, looked up once for all of it.
#[derive(Debug, Default)]
pub(super) struct LocalReferences(HashMap<InstanceId, reference::LocalIds>);

/// References without a local ID, by their instances.
pub(super) type Unmapped = Vec<(InstanceId, References)>;

impl LocalReferences {
    /// Looks up what `shown` names, as a viewer finds it. What has no local ID yet is returned too: what was stored
    /// before references got their local IDs when they were stored.
    pub(super) fn find(
        tx: &mut Tx<'_>,
        shown: &[Shown],
        viewer: Viewer,
    ) -> Result<(Self, Unmapped), StoreError> {
        let mut all: HashMap<InstanceId, References> = HashMap::new();
        for shown in shown {
            for (referent, id) in shown.references() {
                let references = all.entry(shown.instance()).or_default();
                let ids = match referent {
                    Referent::Post => &mut references.posts,
                    Referent::Account => &mut references.accounts,
                };
                ids.push(UpstreamId::from(id));
            }
        }
        let (mut found, mut unmapped) = (Self::default(), Vec::new());
        for (instance, mut references) in all {
            let mut ids = reference::local_ids(tx, instance, &references)?;
            let names: Vec<&str> = references.posts.iter().map(|id| id.as_str()).collect();
            let seen = timeline::named(tx, instance, &names, viewer)?;
            references
                .posts
                .retain(|id| !ids.posts.contains_key(id.as_str()));
            references
                .accounts
                .retain(|id| !ids.accounts.contains_key(id.as_str()));
            ids.posts.extend(seen);
            if references != References::default() {
                unmapped.push((instance, references));
            }
            found.0.insert(instance, ids);
        }
        Ok((found, unmapped))
    }

    /// Names posts of an instance by these IDs, whatever was found.
    pub(super) fn name_posts(&mut self, instance: InstanceId, ids: HashMap<String, LocalId>) {
        self.0.entry(instance).or_default().posts.extend(ids);
    }

    /// The local ID of what has that ID at an instance.
    pub(super) fn id(
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
