//! Posts and accounts as Mastodon shows them.

use std::collections::HashMap;

use driftline_id::Layout;
use driftline_mastodon::{
    AccountForm, Copier, RawObject, Referent, StatusHead, Template, ViewerOverlay, is_for_anyone,
};
use driftline_store::{
    AccountId, InstanceId, LocalId,
    account::Account,
    history::{EndedBy, Version},
    instance::Instance,
    timeline::TimelinePost,
};

use serde_json::json;

use super::local_references::LocalReferences;
use crate::transport::Address;

/// What posts say of the account that views them, by their IDs in the public timeline. A post
/// without an entry says nothing special.
pub(crate) type Overlays = HashMap<LocalId, ViewerOverlay>;

/// A stored post, or one of its versions, as it is shown once local IDs are filled in.
#[derive(Debug)]
pub(crate) struct EntityTemplate {
    instance: InstanceId,
    template: Template,
}

impl EntityTemplate {
    /// The entity `Status`. If the post's JSON cannot be parsed, it shows only the columns that the
    /// store has.
    pub(crate) fn status(post: &TimelinePost, instance: &Instance, address: &Address) -> Self {
        let members = RawObject::parse(&post.raw).unwrap_or_else(|_| {
            tracing::warn!(post = %post.post_id, "invalid JSON of a stored post: expected an object");
            RawObject::default()
        });
        let head = StatusHead {
            id: post.id.raw(),
            public_id: post.public_id.raw(),
            account: post.account.map(|id| id.raw()),
            created_at_ms: created_at_ms(post),
            edited_at_ms: post.edited_at_ms,
            visibility: post.visibility,
            upstream_id: &post.upstream_id,
            uri: post.uri.as_deref(),
            url: post.url.as_deref(),
        };
        Self::new(instance, address, |copier, out| {
            copier.status(out, &members, &head);
        })
    }

    /// The entity `Account` of an author, as an instance last showed it.
    pub(crate) fn account(account: &Account, instance: &Instance, address: &Address) -> Self {
        let members = RawObject::parse(&account.raw).unwrap_or_default();
        Self::new(instance, address, |copier, out| {
            copier.whole_account(out, &members, account.id.raw());
        })
    }

    /// The entity `Account` of an account of which nothing but the name is known: `name`, or `name@host`.
    pub(crate) fn named_account(
        id: AccountId,
        acct: &str,
        instance: &Instance,
        address: &Address,
    ) -> Self {
        let username = acct.split('@').next().unwrap_or_default();
        let json = json!({ "username": username, "acct": acct, "display_name": username });
        let json = json.to_string();
        let members = RawObject::parse(&json).unwrap_or_default();
        Self::new(instance, address, |copier, out| {
            copier.whole_account(out, &members, id.raw());
        })
    }

    /// The entity `StatusEdit` of the current version.
    pub(crate) fn edit(post: &TimelinePost, instance: &Instance, address: &Address) -> Self {
        let members = RawObject::parse(&post.raw).unwrap_or_default();
        Self::edit_of(post, instance, &members, address)
    }

    /// The entity `StatusEdit` of an earlier version; `None` if that was not public. One that the server's edit history
    /// showed says nothing of that: it is shown to the readers that the history was fetched for.
    pub(crate) fn version(
        post: &TimelinePost,
        instance: &Instance,
        version: &Version,
        address: &Address,
    ) -> Option<Self> {
        let members = RawObject::parse(&version.raw).ok()?;
        let is_shown =
            version.ended_by == EndedBy::Edit && (version.is_fetched || is_for_anyone(&members));
        is_shown.then(|| Self::edit_of(post, instance, &members, address))
    }

    fn edit_of(
        post: &TimelinePost,
        instance: &Instance,
        members: &RawObject<'_>,
        address: &Address,
    ) -> Self {
        let account = post.account.map(|id| id.raw());
        Self::new(instance, address, |copier, out| {
            copier.status_edit(out, members, created_at_ms(post), account);
        })
    }

    fn new(
        instance: &Instance,
        address: &Address,
        copy: impl FnOnce(&Copier<'_>, &mut Template),
    ) -> Self {
        let mut template = Template::default();
        let copier = Copier {
            origin: &instance.origin,
            api: instance.api,
            own_host: address.own_host(),
        };
        copy(&copier, &mut template);
        Self {
            instance: instance.id,
            template,
        }
    }

    /// The instance that the post was seen through.
    pub(crate) fn instance(&self) -> InstanceId {
        self.instance
    }

    /// The posts and accounts that entities name, by their instances and IDs there.
    pub(crate) fn references(
        entities: &[Self],
    ) -> impl Iterator<Item = (InstanceId, Referent, &str)> {
        entities.iter().flat_map(|entity| {
            let references = entity.template.references();
            references.map(|(referent, id)| (entity.instance, referent, id))
        })
    }

    /// The names of this server's accounts that entities show.
    pub(crate) fn own_accounts(entities: &[Self]) -> impl Iterator<Item = &str> {
        let templates = entities.iter().map(|entity| &entity.template);
        templates.flat_map(Template::own_accounts)
    }

    /// The IDs at the instance of the posts within it that say something of their viewer.
    pub(crate) fn nested_posts(&self) -> impl Iterator<Item = &str> {
        self.template.nested_posts()
    }

    /// Writes entities as a list: see [`EntityTemplate::write`].
    pub(crate) fn list(
        entities: &[Self],
        local: &LocalReferences,
        overlays: Option<&Overlays>,
    ) -> Vec<u8> {
        let bytes = entities
            .iter()
            .map(|entity| entity.template.len() + ADDED_BYTES);
        let mut out = Vec::with_capacity(bytes.sum());
        out.push(b'[');
        for (index, entity) in entities.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            entity.write(&mut out, local, overlays);
        }
        out.push(b']');
        out
    }

    /// Writes the entity. `overlays` are those of the viewer; `None` for one without an account.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        local: &LocalReferences,
        overlays: Option<&Overlays>,
    ) {
        let overlay = |post: Option<u64>| {
            let overlays = overlays?;
            let found = post.and_then(|id| overlays.get(&LocalId::new(id)));
            Some(found.cloned().unwrap_or_default())
        };
        let id = |referent, id: &str| local.id(self.instance, referent, id);
        let own = |form: AccountForm, name: &str| local.linked.get(form, name);
        self.template.fill(out, id, overlay, own);
    }
}

/// When a post was written; if the upstream does not say, when it took its place.
fn created_at_ms(post: &TimelinePost) -> i64 {
    post.created_at_ms
        .unwrap_or_else(|| Layout::PULSATE.time_ms(post.id.raw().into()))
}

/// About how long the local IDs of a post are.
const ADDED_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;
    use driftline_core::{api::Api, post::Visibility};

    fn written(post: &TimelinePost, overlays: Option<&Overlays>) -> Value {
        let mut out = Vec::new();
        let instance = Instance {
            id: post.instance,
            origin: "https://a.example".to_owned(),
            api: Api::Mastodon,
        };
        let address = Address::local();
        let shown = EntityTemplate::status(post, &instance, &address);
        shown.write(&mut out, &LocalReferences::default(), overlays);
        serde_json::from_slice(&out).expect("JSON")
    }

    #[test]
    fn only_a_viewer_with_an_account_sees_its_overlay() {
        let id = LocalId::new(7);
        let boosted = json!({ "id": "6", "visibility": "public", "muted": true });
        let post = TimelinePost {
            id,
            post_id: id,
            public_id: id,
            instance: InstanceId::new(1),
            upstream_id: "7".to_owned(),
            uri: None,
            url: None,
            account: None,
            created_at_ms: Some(0),
            edited_at_ms: None,
            visibility: Visibility::Public,
            boost_of: None,
            raw: json!({ "id": "7", "bookmarked": true, "reblog": boosted }).to_string(),
            copies: Vec::new(),
        };
        let members = "favourited reblogged muted bookmarked pinned filtered";
        let overlay_of = |status: &Value| -> Vec<Value> {
            let members = members.split(' ');
            members.map(|name| json!(status.get(name))).collect()
        };
        let status = written(&post, None);
        for status in [&status, &status["reblog"]] {
            assert!(overlay_of(status).iter().all(Value::is_null), "{status}");
        }
        let overlay = ViewerOverlay {
            favourited: true,
            pinned: Some(false),
            filtered: vec![to_raw_value(&json!({ "filter": {} })).expect("JSON")],
            ..ViewerOverlay::default()
        };
        let status = written(&post, Some(&Overlays::from([(id, overlay)])));
        assert_eq!(
            json!(overlay_of(&status)),
            json!([true, false, false, false, false, [{ "filter": {} }]])
        );
        assert_eq!(
            json!(overlay_of(&status["reblog"])),
            json!([false, false, false, false, null, []])
        );
    }
}
