//! Stores the changes of devices by the functions that programs of people use, so that the same
//! rules hold. Each checks before it writes.

use std::fmt::Display;

use driftline_core::{
    social::{Mark, MarkedTimeline},
    sync::{MarkerValue, ObjectKey, ObjectKind, ObjectValue, ProfileValue},
};
use driftline_db::Tx;

use super::{filter_change, push::Resolved, relations};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql},
    library::object::{self, KnownObject},
    social::{draft, filter, list, list_member, marked_post, marker, note, object_keys, profile},
};

/// The account of a device, and the posts and accounts that its push names.
pub(super) struct ChangeContext<'a> {
    pub(super) account: LocalAccountId,
    pub(super) resolved: &'a Resolved,
    /// The time of the push, in Unix ms.
    pub(super) now_ms: i64,
}

/// The outcome of a change: the reason if it is refused.
pub(super) type Applied = Result<(), String>;

/// Gives an object another value, or adds it if `living` is `None`.
pub(super) fn put(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    value: ObjectValue,
    living: Option<&KnownObject>,
) -> Result<Applied, StoreError> {
    let (account, now_ms) = (context.account, context.now_ms);
    Ok(match value {
        ObjectValue::Post(_) => add_mark(tx, context, key)?,
        ObjectValue::List(settings) => match living {
            Some(known) => applied(list::set(tx, account, from_sql(known.id)?, settings)?),
            None => {
                let key = key.clone();
                applied(list::create_with_key(tx, account, key, settings, now_ms)?)
            }
        },
        ObjectValue::Account(_) if key.kind() == Some(ObjectKind::ListMember) => {
            add_member(tx, context, key)?
        }
        ObjectValue::Marker(value) => set_marker(tx, context, key, &value)?,
        ObjectValue::Note(value) if key.kind() == Some(ObjectKind::Note) => {
            applied(note::set(tx, account, key.name(), &value.text, now_ms)?)
        }
        ObjectValue::Filter(value) => filter_change::put(tx, context, key, &value, living)?,
        ObjectValue::Draft(value) => applied(draft::set(tx, account, key, &value, now_ms)?),
        ObjectValue::Profile(value) => set_profile(tx, context, value)?,
        value @ (ObjectValue::Follow(_)
        | ObjectValue::Account(_)
        | ObjectValue::Mute(_)
        | ObjectValue::Note(_)) => relations::put(tx, context, key, &value, living)?,
    })
}

/// The outcome of a write that may refuse a change.
pub(super) fn applied<T>(done: Result<T, impl Display>) -> Applied {
    done.map(drop).map_err(|refused| refused.to_string())
}

/// Deletes an object.
pub(super) fn delete(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    object: &KnownObject,
) -> Result<Applied, StoreError> {
    let account = context.account;
    match object.key.kind() {
        Some(ObjectKind::Bookmark) => {
            marked_post::remove_object(tx, account, Mark::Bookmark, object.id)?;
        }
        Some(ObjectKind::Favourite) => {
            marked_post::remove_object(tx, account, Mark::Favourite, object.id)?;
        }
        Some(ObjectKind::List) => {
            list::remove(tx, account, from_sql(object.id)?)?;
        }
        Some(ObjectKind::ListMember) => {
            object::remove_with_row(tx, account, "list_member", object.id)?;
        }
        Some(ObjectKind::Note) => {
            note::remove(tx, account, object.key.name())?;
        }
        Some(ObjectKind::Filter) => {
            filter::remove(tx, account, from_sql(object.id)?)?;
        }
        Some(ObjectKind::Draft) => object::remove_with_row(tx, account, "draft", object.id)?,
        Some(
            kind @ (ObjectKind::Follow
            | ObjectKind::Block
            | ObjectKind::Mute
            | ObjectKind::AccountNote),
        ) => return relations::delete(tx, context, kind, object),
        // A push of their deletion is refused before.
        Some(ObjectKind::Marker | ObjectKind::Profile) | None => {}
    }
    Ok(Ok(()))
}

fn add_mark(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
) -> Result<Applied, StoreError> {
    let (account, resolved, now_ms) = (context.account, context.resolved, context.now_ms);
    let (kind, mark) = match key.kind() {
        Some(ObjectKind::Favourite) => (ObjectKind::Favourite, Mark::Favourite),
        _ => (ObjectKind::Bookmark, Mark::Bookmark),
    };
    let Some(post) = resolved.posts.get(key.name()).copied() else {
        return Ok(Err("this server has no such post for you".to_owned()));
    };
    let own = object_keys::for_post(tx, account, kind, post)?;
    if own != *key {
        return Ok(Err(format!("this server knows the post as {own}")));
    }
    if marked_post::find(tx, account, mark, post.post)?.is_some() {
        return Ok(Err(
            "the post is marked already, under another key".to_owned()
        ));
    }
    let shown = resolved.shown.get(&post.post).map(String::as_str);
    let shown = shown.filter(|_| mark == Mark::Bookmark);
    marked_post::add(tx, account, mark, post, own, shown, now_ms).map(Ok)
}

fn add_member(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
) -> Result<Applied, StoreError> {
    let (account, resolved, now_ms) = (context.account, context.resolved, context.now_ms);
    let Some((list_key, acct)) = key.list_and_acct() else {
        return Ok(Err("the key names no list".to_owned()));
    };
    let list = object::find(tx, account, &list_key)?.filter(|list| !list.is_removed);
    let Some(list) = list else {
        return Ok(Err(list_member::AddRefused::NoList.to_string()));
    };
    // One answer for all accounts that are not followed: whether the server knows one may be another account's secret.
    let unknown = || "the account is not followed, or has another name here".to_owned();
    let Some(member) = resolved.accounts.get(acct).copied() else {
        return Ok(Err(unknown()));
    };
    let own = object_keys::for_members(tx, &list_key, &[member])?.pop();
    if own.is_some_and(|own| own != *key) {
        return Ok(Err(unknown()));
    }
    let added = list_member::add(tx, account, from_sql(list.id)?, &[member], now_ms)?;
    Ok(added.map_err(|refused| match refused {
        list_member::AddRefused::NotFollowed => unknown(),
        other => other.to_string(),
    }))
}

fn set_marker(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    value: &MarkerValue,
) -> Result<Applied, StoreError> {
    let timeline = key.name().parse::<MarkedTimeline>().ok();
    let (Some(timeline), Some(place)) = (timeline, value.place()) else {
        return Ok(Err("last_read is not a place in a timeline".to_owned()));
    };
    let known = marker::all(tx, context.account)?;
    let known = known.iter().find(|known| known.timeline == timeline);
    let version = known.map_or(0, |known| known.version);
    let place = LocalId::new(place);
    let (account, now_ms) = (context.account, context.now_ms);
    Ok(applied(marker::set(
        tx, account, timeline, place, version, now_ms,
    )?))
}

fn set_profile(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    value: ProfileValue,
) -> Result<Applied, StoreError> {
    let (account, now_ms) = (context.account, context.now_ms);
    match value.parts(profile::load(tx, account)?) {
        Ok((nickname, profile)) => Ok(applied(profile::set(
            tx, account, &nickname, &profile, now_ms,
        )?)),
        Err(reason) => Ok(Err(reason)),
    }
}
