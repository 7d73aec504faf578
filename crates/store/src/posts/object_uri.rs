//! The names of posts and accounts across servers. Each instance has its own copy of an object.
//! Among the objects of an instance with one name the first counts, so that nobody can give one
//! name to many objects.

use std::collections::HashMap;

use driftline_core::names::object_uri::{UriEvidence, UriKey};
use driftline_db::{Column, DbError, PendingRows, Tx};
use strum::IntoStaticStr;

use crate::{new_ids::TakenIds, text::without_nul};

/// The kinds of objects with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum NamedKind {
    Post,
    Account,
}

impl NamedKind {
    fn name(self) -> &'static str {
        self.into()
    }
}

/// A post with a name, and its instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedPost {
    pub(crate) post_id: i64,
    pub(crate) instance_id: i64,
    /// The evidence that the post has this name.
    pub(crate) evidence: UriEvidence,
}

/// Records the names of an instance's objects, each with its ID, which may come from `ids`. The
/// instance must be held.
pub(crate) fn add<'u>(
    tx: &mut Tx<'_>,
    (instance_id, origin): (i64, &str),
    kind: NamedKind,
    named: impl Iterator<Item = (i64, &'u str)>,
    ids: &TakenIds,
) -> Result<(), DbError> {
    let mut rows: HashMap<UriKey, (i64, UriEvidence)> = HashMap::new();
    for (id, uri) in named {
        let uri = without_nul(uri);
        if let Some(key) = UriKey::new(&uri) {
            let evidence = UriEvidence::for_uri(&uri, origin);
            rows.entry(key).or_insert((id, evidence));
        }
    }
    let mut rows: Vec<(UriKey, (i64, UriEvidence))> = rows.into_iter().collect();
    // Rows that are neighbours in the index are written faster.
    rows.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let row = || rows.iter();
    tx.execute_many_later(
        "insert into object_uri (uri_key, instance_id, kind, object_id, known) {rows}
         on conflict (uri_key, instance_id, kind) do nothing",
        &[],
        &[
            Column::text(row().map(|(key, _)| key.as_str())),
            Column::i64(row().map(|_| instance_id)),
            Column::text(row().map(|_| kind.name())),
            ids.column(row().map(|(_, (id, _))| *id)),
            Column::text(row().map(|(_, (_, evidence))| evidence.name())),
        ],
    )
}

/// The posts of these instances with these names. Requested together with the next statement.
pub(crate) fn posts_named_later(
    tx: &mut Tx<'_>,
    names: &[UriKey],
    instance_ids: &[i64],
) -> Result<PendingRows<'static, (UriKey, NamedPost)>, DbError> {
    tx.query_later(
        "select uri_key, instance_id, object_id, known from object_uri
         where uri_key {in $1} and instance_id {in $2} and kind = 'post'",
        &[
            &Column::text(names.iter().map(UriKey::as_str)),
            &Column::i64(instance_ids.iter().copied()),
        ],
        |row| {
            let known = row.str("known")?;
            let named = NamedPost {
                post_id: row.i64("object_id")?,
                instance_id: row.i64("instance_id")?,
                evidence: known
                    .parse()
                    .map_err(|_| DbError::invalid("a name that is known in an unknown way"))?,
            };
            Ok((UriKey::stored(row.text("uri_key")?), named))
        },
    )
}

/// Forgets the names of posts that are still stored. The instance must be held.
pub(crate) fn forget_posts(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: &[i64],
) -> Result<(), DbError> {
    let ids = Column::i64(post_ids.iter().copied());
    let names = tx.query(
        "select uri from post where id {in $1} and instance_id = $2 and uri is not null",
        &[&ids, &instance_id],
        |row| row.text("uri"),
    )?;
    let keys: Vec<UriKey> = names.iter().filter_map(|uri| UriKey::new(uri)).collect();
    let keys = Column::text(keys.iter().map(UriKey::as_str));
    tx.execute_later(
        "delete from object_uri
         where uri_key {in $2} and instance_id = $3 and kind = 'post' and object_id {in $1}",
        &[&ids, &keys, &instance_id],
    )
}
