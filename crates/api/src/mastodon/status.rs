//! Posts as Mastodon shows them.

use std::{borrow::Cow, collections::HashMap};

use driftline_core::post::Visibility;
use driftline_id::Layout;
use driftline_mastodon::{
    ObjectWriter, RawObject, ViewerOverlay, copy_status, iso_8601, write_account, write_status_edit,
};
use driftline_store::{
    LocalId,
    history::{EndedBy, Version},
    timeline::TimelinePost,
};

use super::local_references::LocalReferences;

/// What posts say of the account that views them, by their IDs in the public timeline. A post
/// without an entry says nothing special.
pub(super) type Overlays = HashMap<LocalId, ViewerOverlay>;

/// A stored post with its JSON parsed.
#[derive(Debug)]
pub(super) struct Status<'p> {
    post: &'p TimelinePost,
    entity: Entity<'p>,
    boosted: Option<Entity<'p>>,
}

impl<'p> Status<'p> {
    /// Parses a post's JSON. If that fails, the entity shows only the columns that the store has.
    pub(super) fn of(post: &'p TimelinePost) -> Self {
        let members = RawObject::parse(&post.raw).unwrap_or_else(|_| {
            tracing::warn!(post = %post.post_id, "invalid JSON of a stored post: expected an object");
            RawObject::default()
        });
        // A boost may be public although the boosted post is not.
        let boosted = members
            .get("reblog")
            .and_then(RawObject::of)
            .filter(is_for_anyone)
            .map(Entity::of);
        Self {
            post,
            entity: Entity::of(members),
            boosted,
        }
    }

    /// The stored post.
    pub(super) fn post(&self) -> &'p TimelinePost {
        self.post
    }

    /// The author's ID at the upstream.
    pub(super) fn account_id(&self) -> Option<Cow<'p, str>> {
        self.entity.account.id("id")
    }

    /// The upstream IDs of the posts that the status refers to.
    pub(super) fn references(&self) -> impl Iterator<Item = Cow<'p, str>> {
        let boosted = self.boosted.as_ref();
        [
            self.entity.members.id("in_reply_to_id"),
            boosted.and_then(|boosted| boosted.members.id("id")),
            boosted.and_then(|boosted| boosted.members.id("in_reply_to_id")),
        ]
        .into_iter()
        .flatten()
    }

    /// Writes the entity `Status`. `overlays` are those of the viewer; `None` for one without an
    /// account.
    pub(super) fn write(
        &self,
        out: &mut Vec<u8>,
        local: &LocalReferences,
        overlays: Option<&Overlays>,
    ) {
        let post = self.post;
        let context = Context {
            local,
            overlays,
            post,
            origin: local.origin(post.instance),
        };
        let mut object = ObjectWriter::open(out);
        object.value("id", &post.id);
        object.value("created_at", &iso_8601(created_at_ms(post)));
        object.value("edited_at", &post.edited_at_ms.map(iso_8601));
        object.value("visibility", post.visibility.name());
        object.value(
            "uri",
            &context.uri(post.uri.as_deref(), post.url.as_deref(), &post.upstream_id),
        );
        object.value("url", &post.url);
        let account = object.key("account");
        write_account(
            account,
            &self.entity.account,
            self.local_account_id().as_deref(),
            context.origin,
        );
        self.entity.write_rest(&mut object, &context);
        context.write_overlay(&mut object, Some(post.public_id));
        match &self.boosted {
            Some(boosted) => boosted.write_boosted(object.key("reblog"), &context),
            None => object.json("reblog", "null"),
        }
        object.close();
    }

    /// Writes the entity `StatusEdit` of the current version.
    pub(super) fn write_edit(&self, out: &mut Vec<u8>, local: &LocalReferences) {
        let written_ms = self
            .post
            .edited_at_ms
            .unwrap_or_else(|| created_at_ms(self.post));
        self.write_edit_of(out, local, &self.entity.members, &iso_8601(written_ms));
    }

    /// Writes the entity `StatusEdit` of an earlier version. Writes nothing and returns `false` if
    /// that version was not public.
    pub(super) fn write_version(
        &self,
        out: &mut Vec<u8>,
        local: &LocalReferences,
        version: &Version,
    ) -> bool {
        let shown = RawObject::parse(&version.raw)
            .ok()
            .filter(|members| version.ended_by == EndedBy::Edit && is_for_anyone(members));
        let Some(members) = shown else { return false };
        let written = members
            .text("edited_at")
            .or_else(|| members.text("created_at"));
        let written = written.unwrap_or_else(|| Cow::Owned(iso_8601(created_at_ms(self.post))));
        self.write_edit_of(out, local, &members, &written);
        true
    }

    fn write_edit_of(
        &self,
        out: &mut Vec<u8>,
        local: &LocalReferences,
        version: &RawObject<'_>,
        written: &str,
    ) {
        let origin = local.origin(self.post.instance);
        let account = self.local_account_id();
        write_status_edit(out, version, written, account.as_deref(), origin);
    }

    fn local_account_id(&self) -> Option<String> {
        self.post.account.map(|id| id.to_string())
    }
}

/// A post's JSON and its author's.
#[derive(Debug)]
struct Entity<'p> {
    members: RawObject<'p>,
    account: RawObject<'p>,
}

/// The post that an entity was seen in, and its local references.
struct Context<'a> {
    local: &'a LocalReferences,
    overlays: Option<&'a Overlays>,
    post: &'a TimelinePost,
    origin: &'a str,
}

impl Context<'_> {
    /// A post's URI; without one its URL, or the URI that its server would give it.
    fn uri(&self, uri: Option<&str>, url: Option<&str>, upstream_id: &str) -> String {
        match uri.or(url) {
            Some(uri) => uri.to_owned(),
            None => format!("{}/statuses/{upstream_id}", self.origin),
        }
    }

    /// Writes what a post says of the viewer; a post without a local ID says nothing special.
    fn write_overlay(&self, object: &mut ObjectWriter<'_>, post: Option<LocalId>) {
        if let Some(overlays) = self.overlays {
            let overlay = post.and_then(|id| overlays.get(&id));
            overlay.unwrap_or(&ViewerOverlay::default()).write(object);
        }
    }
}

impl<'p> Entity<'p> {
    fn of(members: RawObject<'p>) -> Self {
        Self {
            account: members.object("account"),
            members,
        }
    }

    /// The members that a post and a boosted post have in common.
    fn write_rest(&self, object: &mut ObjectWriter<'_>, context: &Context<'_>) {
        let (members, instance) = (&self.members, context.post.instance);
        let replied_to = members
            .id("in_reply_to_id")
            .and_then(|id| context.local.post(instance, &id));
        let replied_account = members
            .id("in_reply_to_account_id")
            .and_then(|id| context.local.account(instance, &id))
            .or_else(|| replied_to?.account);
        object.value("in_reply_to_id", &replied_to.map(|post| post.id));
        object.value("in_reply_to_account_id", &replied_account);
        copy_status(object, members, context.origin, |id| {
            context.local.account(instance, id)
        });
    }

    fn write_boosted(&self, out: &mut Vec<u8>, context: &Context<'_>) {
        let (members, instance) = (&self.members, context.post.instance);
        let upstream_id = members.id("id").unwrap_or_default();
        let local_post = context.local.post(instance, &upstream_id);
        let mut object = ObjectWriter::open(out);
        match local_post {
            Some(post) => object.value("id", &post.id),
            None => object.value("id", &upstream_id),
        }
        let boosted_at = || Cow::Owned(iso_8601(created_at_ms(context.post)));
        object.value(
            "created_at",
            &members.text("created_at").unwrap_or_else(boosted_at),
        );
        object.value("edited_at", &members.text("edited_at"));
        object.value("visibility", visibility(members).name());
        let (uri, url) = (members.text("uri"), members.text("url"));
        object.value(
            "uri",
            &context.uri(uri.as_deref(), url.as_deref(), &upstream_id),
        );
        object.value("url", &url);
        let upstream_account = self.account.id("id");
        let account = local_post.and_then(|post| post.account).or_else(|| {
            let id = upstream_account.as_deref()?;
            context.local.account(instance, id)
        });
        let account = account.map(|id| Cow::Owned(id.to_string()));
        write_account(
            object.key("account"),
            &self.account,
            account.or(upstream_account).as_deref(),
            context.origin,
        );
        self.write_rest(&mut object, context);
        context.write_overlay(&mut object, local_post.map(|post| post.id));
        object.json("reblog", "null");
        object.close();
    }
}

fn visibility(status: &RawObject<'_>) -> Visibility {
    Visibility::named_or_narrowest(&status.text("visibility").unwrap_or_default())
}

fn is_for_anyone(status: &RawObject<'_>) -> bool {
    matches!(
        visibility(status),
        Visibility::Public | Visibility::Unlisted
    )
}

/// When a post was written; if the upstream does not say, when it was stored.
fn created_at_ms(post: &TimelinePost) -> i64 {
    post.created_at_ms
        .unwrap_or_else(|| Layout::PULSATE.time_ms(post.post_id.raw().into()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;
    use driftline_store::InstanceId;

    fn written(post: &TimelinePost, overlays: Option<&Overlays>) -> Value {
        let mut out = Vec::new();
        Status::of(post).write(&mut out, &LocalReferences::default(), overlays);
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
