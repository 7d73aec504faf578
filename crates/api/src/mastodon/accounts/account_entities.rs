//! Accounts as Mastodon shows them: those of this server, and authors of posts that were read.

use std::collections::{HashMap, HashSet};

use driftline_core::social::Profile;
use driftline_mastodon::iso_8601;
use driftline_store::{
    AccountId, Instance, LocalAccountId, StoreError, Tx, account, account_id, instance,
    local_account_id,
    social::{
        local_account::{self, LocalAccount},
        profile,
        relation::{self, FollowCounts},
    },
    timeline::{self, Viewer},
    viewer::ReadableSources,
};
use serde_json::{Value, json, value::RawValue};

use crate::{
    auth::RequestContext,
    mastodon::{
        answer,
        statuses::{entity_template::EntityTemplate, local_references::LocalReferences},
    },
    transport::{Address, ApiError, ApiResult},
};

/// Entities in an answer, which borrow nothing.
pub(crate) type Entities = Vec<Box<RawValue>>;

/// The accounts that `find` finds, in its order, without those that the viewer may not know of.
pub(crate) async fn entities(
    context: &RequestContext,
    find: impl Fn(&mut Tx<'_>) -> Result<Vec<AccountId>, StoreError> + Send + 'static,
) -> ApiResult<Entities> {
    let (viewer, address) = (context.viewer, context.address.clone());
    let read = context.read(move |tx| {
        let ids = find(tx)?;
        Ok(AccountEntities::load(tx, &ids, viewer, &address)?.in_order(ids))
    });
    read.await
}

/// An account; not found if the viewer may not know of it.
pub(crate) async fn entity(context: &RequestContext, id: AccountId) -> ApiResult<Box<RawValue>> {
    let mut found = entities(context, move |_| Ok(vec![id])).await?;
    found.pop().ok_or(ApiError::NotFound)
}

/// The accounts that an answer shows, by their IDs.
#[derive(Debug, Default)]
pub(crate) struct AccountEntities(HashMap<AccountId, Box<RawValue>>);

impl AccountEntities {
    /// Those of `ids` that a viewer may know of: accounts of this server if it has one itself, and authors of
    /// posts that it may read, or to whom it has a relation. Also returns what they name without a local
    /// ID.
    pub(crate) fn load(
        tx: &mut Tx<'_>,
        ids: &[AccountId],
        viewer: Viewer,
        address: &Address,
    ) -> Result<Self, StoreError> {
        let (mut local, mut authors) = (Vec::new(), Vec::new());
        for id in ids {
            match local_account_id(*id) {
                Some(id) => local.push(id),
                None => authors.push(*id),
            }
        }
        let mut entities = Self::default();
        if viewer != Viewer::Anonymous {
            entities.add_local(tx, &local, viewer, address)?;
        }
        entities.add_authors(tx, &authors, viewer, address)?;
        Ok(entities)
    }

    fn add_local(
        &mut self,
        tx: &mut Tx<'_>,
        ids: &[LocalAccountId],
        viewer: Viewer,
        address: &Address,
    ) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let profiles = profile::by_ids(tx, ids)?;
        let profiles: HashMap<LocalAccountId, Profile> = profiles.into_iter().collect();
        let counts = relation::follow_counts(tx, ids)?;
        for account in local_account::by_ids(tx, ids)? {
            let profile = profiles.get(&account.id).cloned().unwrap_or_default();
            let counts = counts.get(&account.id).copied().unwrap_or_default();
            // Of authors elsewhere the viewer may not know.
            let following = match viewer == Viewer::Account(account.id) {
                true => counts.following,
                false => counts.following_here,
            };
            let counts = FollowCounts {
                following,
                ..counts
            };
            let entity = local_entity(&account, &profile, counts, address);
            if let Ok(json) = serde_json::value::to_raw_value(&entity) {
                self.0.insert(account_id(account.id), json);
            }
        }
        Ok(())
    }

    fn add_authors(
        &mut self,
        tx: &mut Tx<'_>,
        ids: &[AccountId],
        viewer: Viewer,
        address: &Address,
    ) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let known = known_accounts(tx, ids, viewer)?;
        let ids: Vec<AccountId> = known.into_iter().collect();
        let instances: HashMap<_, Instance> = instance::all(tx)?
            .into_iter()
            .map(|instance| (instance.id, instance))
            .collect();
        // What only others read says nothing to this viewer, who may know of the account by a server that made it up.
        let sources = ReadableSources::load(tx, viewer)?;
        // Its own instance knows it best, then the source that has shown it last.
        let rank =
            |copy: &account::Account| (copy.is_of_instance(), copy.seen_at_ms, copy.source.id);
        let mut best: HashMap<AccountId, account::Account> = HashMap::new();
        for copy in account::by_ids(tx, &ids, &sources.keys())? {
            let source = sources.of(copy.source.id);
            if !copy.is_of_instance() && source.is_none_or(|source| source.is_published()) {
                continue;
            }
            if best
                .get(&copy.id)
                .is_none_or(|other| rank(other) < rank(&copy))
            {
                best.insert(copy.id, copy);
            }
        }
        let mut templates: Vec<(AccountId, EntityTemplate)> = Vec::new();
        for account in best.values() {
            if let Some(instance) = instances.get(&account.source.instance) {
                templates.push((
                    account.id,
                    EntityTemplate::account(account, instance, address),
                ));
            }
        }
        // A viewer still knows the names of accounts that it relates to and that none of its sources shows any more.
        let nameless = ids.iter().filter(|id| !best.contains_key(id));
        let nameless: Vec<AccountId> = nameless.copied().collect();
        for (id, (instance, acct)) in account::names(tx, &nameless)? {
            if let Some(instance) = instances.get(&instance) {
                templates.push((
                    id,
                    EntityTemplate::named_account(id, &acct, instance, address),
                ));
            }
        }
        let (ids, templates): (Vec<AccountId>, Vec<EntityTemplate>) = templates.into_iter().unzip();
        let local = LocalReferences::find(tx, &templates, &sources, address)?;
        for (id, template) in ids.into_iter().zip(templates) {
            let mut body = Vec::new();
            template.write(&mut body, &local, None);
            self.0.extend(answer::raw(body).map(|json| (id, json)));
        }
        Ok(())
    }

    /// The entity `Account`; `None` of an account that the viewer may not know of.
    pub(crate) fn get(&self, id: AccountId) -> Option<&RawValue> {
        self.0.get(&id).map(|json| &**json)
    }

    /// Those of the IDs, in their order, without those that are not known.
    pub(crate) fn in_order(&self, ids: impl IntoIterator<Item = AccountId>) -> Entities {
        let found = ids.into_iter().filter_map(|id| self.get(id));
        found.map(ToOwned::to_owned).collect()
    }
}

/// Those of these accounts of other servers that a viewer may know of: authors of posts that it may read, and
/// accounts to which it has a relation.
pub(crate) fn known_accounts(
    tx: &mut Tx<'_>,
    ids: &[AccountId],
    viewer: Viewer,
) -> Result<HashSet<AccountId>, StoreError> {
    let mut known = timeline::known_authors(tx, ids, viewer)?;
    if let Viewer::Account(viewer) = viewer {
        let related = relation::to(tx, viewer, ids)?;
        known.extend(related.into_iter().map(|row| row.other));
    }
    Ok(known)
}

/// The entity `Account` of an account of this server.
pub(crate) fn local_entity(
    account: &LocalAccount,
    profile: &Profile,
    counts: FollowCounts,
    address: &Address,
) -> Value {
    let name = account.name.as_str();
    let url = address.url(&format!("/@{name}"));
    let picture = |set: &Option<String>| set.clone().unwrap_or_else(|| address.url(MISSING));
    let (avatar, header) = (picture(&profile.avatar), picture(&profile.header));
    let fields = profile.fields.iter().map(|field| {
        json!({
            "name": escaped(&field.name), "value": escaped(&field.value), "verified_at": Value::Null,
        })
    });
    json!({
        "id": account.id.to_string(),
        "username": name,
        "acct": name,
        "display_name": account.nickname.or_name(&account.name),
        "locked": profile.locked,
        "bot": profile.bot,
        "discoverable": profile.discoverable,
        "indexable": false,
        "group": false,
        "created_at": iso_8601(account.created_at_ms),
        "note": paragraphs(&profile.bio),
        "url": url,
        "uri": url,
        "avatar": avatar,
        "avatar_static": avatar,
        "header": header,
        "header_static": header,
        "followers_count": counts.followers,
        "following_count": counts.following,
        "statuses_count": 0,
        "last_status_at": Value::Null,
        "hide_collections": false,
        "noindex": true,
        "emojis": [],
        "roles": [],
        "fields": fields.collect::<Vec<_>>(),
    })
}

/// A text as HTML, by paragraphs.
fn paragraphs(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|text| !text.trim().is_empty());
    let paragraph = |text: &str| format!("<p>{}</p>", escaped(text).replace('\n', "<br>"));
    paragraphs.map(paragraph).collect()
}

fn escaped(text: &str) -> String {
    maud::html! { (text) }.into_string()
}

/// Where the picture of who has none is.
pub(crate) const MISSING: &str = "/pictures/missing.png";
