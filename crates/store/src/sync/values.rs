//! The values of objects, from the tables of their kinds.

use std::collections::HashMap;

use driftline_core::{
    social::{MarkedTimeline, Relation},
    sync::{
        AccountValue, FilterValue, FollowValue, MarkerValue, MuteValue, NoteValue, ObjectKey,
        ObjectKind, ObjectValue, PostValue, ProfileValue,
    },
};
use driftline_db::Tx;
use serde_json::Value;

use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, sql},
    library::object::{self, KnownObject},
    posts::timeline::{self, PostKey, TimelinePost},
    social::{
        account_note, draft,
        filter::{self, Filter},
        list, list_member, local_account,
        marked_post::{self, MarkedPost},
        marker, mute, note, object_keys, profile,
        relation::{self, RelationRow},
    },
    viewer::LazyReadableSources,
};

/// Writes the posts of bookmarks as devices get them, by [`TimelinePost::id`]. Posts may be missing.
pub type CopyWriter<'a> =
    &'a dyn Fn(&mut Tx<'_>, &[TimelinePost]) -> Result<HashMap<LocalId, Value>, StoreError>;

/// The posts of bookmarks and favourites, as their account is shown them in one transaction.
#[derive(Clone, Copy)]
pub struct ShownPosts<'a> {
    /// The sources that the account may read.
    pub sources: &'a LazyReadableSources,
    /// Writes the copies of bookmarks.
    pub write: CopyWriter<'a>,
}

/// The object with a key, of which the account has a value unless it was removed. `None` if the
/// account never had it.
pub(super) fn find(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    key: &ObjectKey,
) -> Result<Option<(KnownObject, Option<ObjectValue>)>, StoreError> {
    let Some(object) = object::find(tx, account, key)? else {
        return Ok(None);
    };
    let value = match object.is_removed {
        true => None,
        false => load(tx, account, std::slice::from_ref(&object), None)?.remove(key),
    };
    Ok(Some((object, value)))
}

/// The values of objects, by their keys, with one query for each kind. Objects that were removed have none. With `shown`,
/// bookmarks and favourites have what the server adds of their posts.
pub(super) fn load(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    objects: &[KnownObject],
    shown: Option<ShownPosts<'_>>,
) -> Result<HashMap<ObjectKey, ObjectValue>, StoreError> {
    let mut kinds: HashMap<ObjectKind, HashMap<i64, &ObjectKey>> = HashMap::new();
    for object in objects.iter().filter(|object| !object.is_removed) {
        if let Some(kind) = table_kind(&object.key) {
            let of_kind = kinds.entry(kind).or_default();
            of_kind.insert(object.id, &object.key);
        }
    }
    let mut values = HashMap::with_capacity(objects.len());
    for (kind, keys) in kinds {
        for (id, value) in load_kind(tx, account, kind, &keys, shown)? {
            if let Some(key) = keys.get(&id) {
                values.insert((*key).clone(), value);
            }
        }
    }
    Ok(values)
}

/// The kind of an object, with one for both that share a table.
fn table_kind(key: &ObjectKey) -> Option<ObjectKind> {
    match key.kind()? {
        ObjectKind::Favourite => Some(ObjectKind::Bookmark),
        ObjectKind::Block => Some(ObjectKind::Follow),
        kind => Some(kind),
    }
}

/// The values of objects of a kind by their IDs.
fn load_kind(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    kind: ObjectKind,
    keys: &HashMap<i64, &ObjectKey>,
    shown: Option<ShownPosts<'_>>,
) -> Result<Vec<(i64, ObjectValue)>, StoreError> {
    let ids: Vec<i64> = keys.keys().copied().collect();
    Ok(match kind {
        ObjectKind::Bookmark | ObjectKind::Favourite => {
            let marks = marked_post::by_ids(tx, account, &ids)?;
            mark_values(tx, &marks, keys, shown)?
        }
        ObjectKind::List => {
            let lists = list::by_ids(tx, account, &ids)?.into_iter();
            lists
                .map(|list| (sql(list.id), ObjectValue::List(list.settings)))
                .collect()
        }
        ObjectKind::ListMember => {
            let members = list_member::members_by_ids(tx, account, &ids)?.into_iter();
            let values = members.map(|(id, member)| {
                let account = Some(member.to_string());
                (id, ObjectValue::Account(AccountValue { account }))
            });
            values.collect()
        }
        ObjectKind::Marker => {
            let markers = marker::all(tx, account)?;
            let values = keys.iter().filter_map(|(id, key)| {
                let timeline: MarkedTimeline = key.name().parse().ok()?;
                let marker = markers.iter().find(|marker| marker.timeline == timeline)?;
                let value = MarkerValue::at(marker.last_read_id.raw());
                Some((*id, ObjectValue::Marker(value)))
            });
            values.collect()
        }
        ObjectKind::Filter => {
            let filters = filter::by_ids(tx, account, &ids)?;
            filter_values(tx, account, filters)?
        }
        ObjectKind::Follow | ObjectKind::Block => {
            let rows = relation::by_objects(tx, account, &ids)?.into_iter();
            rows.filter_map(|row| Some((sql(row.object_id?), relation_value(&row))))
                .collect()
        }
        ObjectKind::Mute => {
            let mutes = mute::by_ids(tx, account, &ids)?.into_iter();
            let values = mutes.map(|mute| {
                let value = MuteValue {
                    notifications: mute.notifications,
                    expires_at: mute.until_ms,
                    account: Some(mute.other.to_string()),
                };
                (sql(mute.id), ObjectValue::Mute(value))
            });
            values.collect()
        }
        ObjectKind::AccountNote => {
            let notes = account_note::by_ids(tx, account, &ids)?.into_iter();
            let values = notes.map(|note| {
                let value = NoteValue {
                    text: note.text,
                    account: Some(note.other.to_string()),
                };
                (note.id, ObjectValue::Note(value))
            });
            values.collect()
        }
        ObjectKind::Note => {
            let names: Vec<&str> = keys.values().map(|key| key.name()).collect();
            let mut texts = note::by_keys(tx, account, &names)?;
            let values = keys.iter().filter_map(|(id, key)| {
                let text = texts.remove(key.name())?;
                let account = None;
                Some((*id, ObjectValue::Note(NoteValue { text, account })))
            });
            values.collect()
        }
        ObjectKind::Draft => {
            let drafts = draft::by_ids(tx, account, &ids)?.into_iter();
            drafts
                .map(|(id, draft)| (id, ObjectValue::Draft(draft)))
                .collect()
        }
        ObjectKind::Profile => {
            let Some(own) = local_account::by_id(tx, account)? else {
                return Ok(Vec::new());
            };
            let value = ProfileValue::new(&own.nickname, &profile::load(tx, account)?);
            let values = ids
                .iter()
                .map(|id| (*id, ObjectValue::Profile(value.clone())));
            values.collect()
        }
    })
}

/// The values of marks: each post has the ID at which the account sees it. Bookmarks have their own
/// IDs, and what the writer makes of their posts.
fn mark_values(
    tx: &mut Tx<'_>,
    marks: &[MarkedPost],
    keys: &HashMap<i64, &ObjectKey>,
    shown: Option<ShownPosts<'_>>,
) -> Result<Vec<(i64, ObjectValue)>, StoreError> {
    let posts: Vec<PostKey> = marks.iter().map(|mark| mark.key).collect();
    let seen = match shown {
        Some(shown) => timeline::by_post_ids_in(tx, &posts, shown.sources)?,
        None => HashMap::new(),
    };
    let is_bookmark = |mark: &MarkedPost| {
        let key = keys.get(&sql(mark.id));
        key.is_some_and(|key| key.kind() == Some(ObjectKind::Bookmark))
    };
    let copied = |mark: &MarkedPost| seen.get(&mark.key.post).filter(|_| is_bookmark(mark));
    let mut statuses = HashMap::new();
    if let Some(shown) = shown {
        let posts: Vec<TimelinePost> = marks.iter().filter_map(copied).cloned().collect();
        if !posts.is_empty() {
            statuses = (shown.write)(tx, &posts)?;
        }
    }
    let values = marks.iter().map(|mark| {
        let post = seen.get(&mark.key.post).map(|post| post.id.to_string());
        let added = is_bookmark(mark).then(|| mark.id.to_string());
        let status = copied(mark).and_then(|post| statuses.get(&post.id).cloned());
        let value = PostValue {
            post,
            added,
            status,
        };
        (sql(mark.id), ObjectValue::Post(value))
    });
    Ok(values.collect())
}

/// The value of the object of an outgoing relation.
fn relation_value(row: &RelationRow) -> ObjectValue {
    let account = Some(row.other.to_string());
    let is_requested = row.pair.outgoing == Relation::RequestingFollow;
    match row.pair.outgoing {
        Relation::Blocking => ObjectValue::Account(AccountValue { account }),
        _ => ObjectValue::Follow(FollowValue {
            reblogs: row.show_boosts,
            notify: row.notified.is_some(),
            requested: is_requested.then_some(true),
            account,
        }),
    }
}

fn filter_values(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    filters: Vec<Filter>,
) -> Result<Vec<(i64, ObjectValue)>, StoreError> {
    let filtered = filters.iter().flat_map(|filter| &filter.posts);
    let filtered: Vec<PostKey> = filtered.map(|post| post.key).collect();
    let names = object_keys::post_names(tx, account, &filtered)?;
    let values = filters.into_iter().map(|filter| {
        let keywords = filter.keywords.into_iter().map(|keyword| keyword.rule);
        let posts = filter.posts.iter();
        let value = FilterValue {
            settings: filter.settings,
            keywords: keywords.collect(),
            posts: posts
                .filter_map(|post| names.get(&post.key.post).cloned())
                .collect(),
        };
        (sql(filter.id), ObjectValue::Filter(value))
    });
    Ok(values.collect())
}
