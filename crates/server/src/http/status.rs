//! Posts as Mastodon shows them.

use std::borrow::Cow;

use driftline_core::post::Visibility;
use driftline_id::Layout;
use driftline_store::{
    history::{EndedBy, Version},
    timeline::TimelinePost,
};
use jiff::Timestamp;

use super::{
    account::{self, AccountNames},
    entity::{Copied, Kind, copy, list},
    members::Members,
    names::Names,
    object::Object,
};

/// A stored post with its JSON taken apart.
#[derive(Debug)]
pub(super) struct Status<'p> {
    post: &'p TimelinePost,
    entity: Entity<'p>,
    boosted: Option<Entity<'p>>,
}

impl<'p> Status<'p> {
    /// Takes a post's JSON apart. One that cannot be read leaves what the store knows beside it.
    pub(super) fn of(post: &'p TimelinePost) -> Self {
        let members = Members::parse(&post.raw).unwrap_or_else(|| {
            tracing::warn!(post = %post.post_id, "a stored post is no JSON object");
            Members::default()
        });
        // Others may call a boost public although what it boosts is not.
        let boosted = members
            .object("reblog")
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

    /// The upstream IDs of the posts that it refers to.
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

    /// Writes the entity `Status`.
    pub(super) fn write(&self, out: &mut Vec<u8>, names: &Names) {
        let post = self.post;
        let place = Place {
            names,
            post,
            origin: names.origin(post.instance),
        };
        let mut object = Object::open(out);
        object.value("id", &post.id);
        object.value("created_at", &iso_8601(created_at_ms(post)));
        object.value("edited_at", &post.edited_at_ms.map(iso_8601));
        object.value("visibility", post.visibility.name());
        object.value(
            "uri",
            &place.uri(post.uri.as_deref(), post.url.as_deref(), &post.upstream_id),
        );
        object.value("url", &post.url);
        let account = post
            .account
            .map_or_else(|| NOBODY.to_owned(), |id| id.to_string());
        account::write(
            object.key("account"),
            &self.entity.account,
            &account,
            place.origin,
        );
        self.entity.write_rest(&mut object, &place);
        match &self.boosted {
            Some(boosted) => boosted.write_boosted(object.key("reblog"), &place),
            None => object.json("reblog", "null"),
        }
        object.close();
    }

    /// Writes the entity `StatusEdit` of what is shown now.
    pub(super) fn write_edit(&self, out: &mut Vec<u8>, names: &Names) {
        let written_ms = self
            .post
            .edited_at_ms
            .unwrap_or_else(|| created_at_ms(self.post));
        self.write_edit_of(out, names, &self.entity, &iso_8601(written_ms));
    }

    /// Writes the entity `StatusEdit` of an earlier version, unless it is not for anyone: `false`
    /// then.
    pub(super) fn write_version(
        &self,
        out: &mut Vec<u8>,
        names: &Names,
        version: &Version,
    ) -> bool {
        let shown = Members::parse(&version.raw)
            .filter(|members| version.ended_by == EndedBy::Edit && is_for_anyone(members));
        let Some(members) = shown else { return false };
        let written = members
            .text("edited_at")
            .or_else(|| members.text("created_at"));
        let written = written.unwrap_or_else(|| Cow::Owned(iso_8601(created_at_ms(self.post))));
        self.write_edit_of(out, names, &Entity::of(members), &written);
        true
    }

    fn write_edit_of(&self, out: &mut Vec<u8>, names: &Names, entity: &Entity<'_>, written: &str) {
        let origin = names.origin(self.post.instance);
        let id = self
            .post
            .account
            .map_or_else(|| NOBODY.to_owned(), |id| id.to_string());
        let mut object = Object::open(out);
        object.value("created_at", written);
        account::write(object.key("account"), &entity.account, &id, origin);
        copy(&mut object, &entity.members, COPIED_OF_EDIT);
        if let Some(poll) = entity.members.object("poll") {
            let mut poll_object = Object::open(object.key("poll"));
            copy(&mut poll_object, &poll, COPIED_OF_EDITED_POLL);
            poll_object.close();
        }
        object.close();
    }
}

/// A post's JSON and its author's.
#[derive(Debug)]
struct Entity<'p> {
    members: Members<'p>,
    account: Members<'p>,
}

/// Where an entity was seen.
struct Place<'a> {
    names: &'a Names,
    post: &'a TimelinePost,
    origin: &'a str,
}

impl Place<'_> {
    /// A post's name across servers; for one without, the best that can be said.
    fn uri(&self, uri: Option<&str>, url: Option<&str>, upstream_id: &str) -> String {
        match uri.or(url) {
            Some(uri) => uri.to_owned(),
            None => format!("{}/statuses/{upstream_id}", self.origin),
        }
    }
}

impl<'p> Entity<'p> {
    fn of(members: Members<'p>) -> Self {
        Self {
            account: members.object("account").unwrap_or_default(),
            members,
        }
    }

    /// What a post and a boosted post have in common.
    fn write_rest(&self, object: &mut Object<'_>, place: &Place<'_>) {
        let (members, instance) = (&self.members, place.post.instance);
        let replied_to = members
            .id("in_reply_to_id")
            .and_then(|id| place.names.post(instance, &id));
        let replied_account = members
            .id("in_reply_to_account_id")
            .and_then(|id| place.names.account(instance, &id))
            .or_else(|| replied_to?.account);
        object.value("in_reply_to_id", &replied_to.map(|post| post.id));
        object.value("in_reply_to_account_id", &replied_account);
        copy(object, members, COPIED);
        list(
            object.key("mentions"),
            &members.objects("mentions"),
            |object, mention| {
                write_mention(object, mention, place);
            },
        );
        list(
            object.key("tags"),
            &members.objects("tags"),
            |object, tag| {
                copy(object, tag, COPIED_OF_TAG);
            },
        );
        match members.object("poll") {
            Some(poll) => {
                let mut poll_object = Object::open(object.key("poll"));
                if let Some(id) = poll.id("id") {
                    poll_object.value("id", &id);
                }
                copy(&mut poll_object, &poll, COPIED_OF_POLL);
                poll_object.close();
            }
            None => object.json("poll", "null"),
        }
    }

    fn write_boosted(&self, out: &mut Vec<u8>, place: &Place<'_>) {
        let (members, instance) = (&self.members, place.post.instance);
        let upstream_id = members.id("id").unwrap_or_default();
        let named = place.names.post(instance, &upstream_id);
        let mut object = Object::open(out);
        match named {
            Some(named) => object.value("id", &named.id),
            None => object.value("id", &upstream_id),
        }
        let boosted_at = || Cow::Owned(iso_8601(created_at_ms(place.post)));
        object.value(
            "created_at",
            &members.text("created_at").unwrap_or_else(boosted_at),
        );
        object.value("edited_at", &members.text("edited_at"));
        object.value("visibility", visibility(members).name());
        let (uri, url) = (members.text("uri"), members.text("url"));
        object.value(
            "uri",
            &place.uri(uri.as_deref(), url.as_deref(), &upstream_id),
        );
        object.value("url", &url);
        let account_id = self.account.id("id").unwrap_or(Cow::Borrowed(NOBODY));
        let local_id = named
            .and_then(|named| named.account)
            .or_else(|| place.names.account(instance, &account_id))
            .map(|id| Cow::Owned(id.to_string()));
        let id = local_id.unwrap_or(account_id);
        account::write(object.key("account"), &self.account, &id, place.origin);
        self.write_rest(&mut object, place);
        object.json("reblog", "null");
        object.close();
    }
}

fn write_mention(object: &mut Object<'_>, mention: &Members<'_>, place: &Place<'_>) {
    let upstream_id = mention.id("id").unwrap_or(Cow::Borrowed(NOBODY));
    match place.names.account(place.post.instance, &upstream_id) {
        Some(id) => object.value("id", &id),
        None => object.value("id", &upstream_id),
    }
    let names = AccountNames::of(mention, place.origin);
    object.value("username", &names.username);
    object.value("acct", &names.acct);
    object.value("url", &mention.text("url").unwrap_or_default());
}

fn visibility(status: &Members<'_>) -> Visibility {
    Visibility::named_or_narrowest(&status.text("visibility").unwrap_or_default())
}

fn is_for_anyone(status: &Members<'_>) -> bool {
    matches!(
        visibility(status),
        Visibility::Public | Visibility::Unlisted
    )
}

/// When a post was written; if the upstream does not tell, when it came.
fn created_at_ms(post: &TimelinePost) -> i64 {
    post.created_at_ms
        .unwrap_or_else(|| Layout::PULSATE.time_ms(post.post_id.raw().into()))
}

fn iso_8601(unix_ms: i64) -> String {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

/// The ID of an author whom the upstream leaves out.
const NOBODY: &str = "0";

const COPIED: &[Copied] = &[
    Copied::always("content", Kind::Text, "\"\""),
    Copied::always("sensitive", Kind::Bool, "false"),
    Copied::always("spoiler_text", Kind::Text, "\"\""),
    Copied::always("media_attachments", Kind::List, "[]"),
    Copied::always("emojis", Kind::List, "[]"),
    Copied::always("reblogs_count", Kind::Whole, "0"),
    Copied::always("favourites_count", Kind::Whole, "0"),
    Copied::always("replies_count", Kind::Whole, "0"),
    Copied::always("card", Kind::Object, "null"),
    Copied::always("language", Kind::Text, "null"),
    Copied::optional("application", Kind::Object),
];

const COPIED_OF_TAG: &[Copied] = &[
    Copied::always("name", Kind::Text, "\"\""),
    Copied::always("url", Kind::Text, "\"\""),
];

/// Without `voted` and `own_votes`, which concern the token's account.
const COPIED_OF_POLL: &[Copied] = &[
    Copied::always("expires_at", Kind::Text, "null"),
    Copied::always("expired", Kind::Bool, "false"),
    Copied::always("multiple", Kind::Bool, "false"),
    Copied::always("votes_count", Kind::Whole, "0"),
    Copied::always("voters_count", Kind::Whole, "null"),
    Copied::always("options", Kind::List, "[]"),
    Copied::always("emojis", Kind::List, "[]"),
];

const COPIED_OF_EDIT: &[Copied] = &[
    Copied::always("content", Kind::Text, "\"\""),
    Copied::always("spoiler_text", Kind::Text, "\"\""),
    Copied::always("sensitive", Kind::Bool, "false"),
    Copied::always("media_attachments", Kind::List, "[]"),
    Copied::always("emojis", Kind::List, "[]"),
];

const COPIED_OF_EDITED_POLL: &[Copied] = &[Copied::always("options", Kind::List, "[]")];
