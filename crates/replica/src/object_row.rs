use std::collections::BTreeMap;

use driftline_core::sync::{
    Base, LibraryDigest, LocalObject, ObjectKey, Outcome, Usn, object_digest,
};
use driftline_db::{DbError, Row, ToValue, Tx};
use driftline_mastodon::StatedFacts;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{ReplicaError, conflict_row};

/// An object of a replica as a person sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplicaObject {
    /// The key.
    pub key: ObjectKey,
    /// The USN of the server's version; `None` if the replica knows of none.
    pub usn: Option<Usn>,
    /// The value on this device.
    pub value: Value,
    /// True if a change was not sent yet.
    pub dirty: bool,
    /// The post of a bookmark, if the replica has a copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<PostCopy>,
}

/// The copy of a post as plain text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PostCopy {
    /// The author, `name@host`.
    pub author: String,
    /// The text, with its warning, the options of its poll and the descriptions of its media.
    pub text: String,
}

impl ReplicaObject {
    /// The object, unless it was deleted here. The copy of a post is read as the server at `origin` shows it.
    pub(crate) fn from_local(local: LocalObject, origin: &str) -> Option<Self> {
        let usn = local.base.as_ref().map(|base| base.usn);
        let dirty = local.is_dirty();
        let value = local.value?;
        let status = value.get("status").filter(|status| status.is_object());
        let copy = status.map(|status| {
            let stated = StatedFacts::read(&status.to_string(), origin);
            PostCopy {
                author: stated.author,
                text: stated.entries.join("\n\n"),
            }
        });
        Some(Self {
            key: local.key,
            usn,
            value,
            dirty,
            copy,
        })
    }
}

/// The part of a bookmark's value that has the copy of its post.
#[derive(Deserialize)]
struct CopyValue<'a> {
    #[serde(default)]
    post: Option<String>,
    #[serde(borrow)]
    status: &'a RawValue,
}

/// The keys of bookmarks, the last changed first.
pub(crate) fn bookmarks(tx: &mut Tx<'_>) -> Result<Vec<String>, ReplicaError> {
    Ok(tx.query(
        "select key from object where key >= 'bookmark:' and key < 'bookmark;' and value is not null
         order by base_usn desc, key",
        &[],
        |row| row.text("key"),
    )?)
}

/// The copy of the post that a bookmark has, with the ID by which the server knows the post.
pub(crate) fn copy(
    tx: &mut Tx<'_>,
    bookmark: &str,
) -> Result<Option<(String, Box<RawValue>)>, ReplicaError> {
    let found = tx.query_opt(
        "select value from object where key = $1 and value is not null",
        &[&bookmark],
        |row| {
            let value = serde_json::from_str::<CopyValue<'_>>(row.str("value")?).ok();
            Ok(value.map(|value| (value.post.unwrap_or_default(), value.status.to_owned())))
        },
    )?;
    Ok(found.flatten())
}

/// Reads an object.
pub(crate) fn get(tx: &mut Tx<'_>, key: &ObjectKey) -> Result<Option<LocalObject>, ReplicaError> {
    let sql = format!("select {COLUMNS} from object where key = $1");
    Ok(tx.query_opt(&sql, &[&key.as_str()], local)?)
}

/// Reads the objects whose kind has this name, or all, by their keys.
pub(crate) fn list(tx: &mut Tx<'_>, kind: Option<&str>) -> Result<Vec<LocalObject>, ReplicaError> {
    let Some(kind) = kind else {
        let sql = format!("select {COLUMNS} from object order by key");
        return Ok(tx.query(&sql, &[], local)?);
    };
    // The character after a colon is a semicolon.
    let (from, below) = (format!("{kind}:"), format!("{kind};"));
    let sql = format!("select {COLUMNS} from object where key >= $1 and key < $2 order by key");
    Ok(tx.query(&sql, &[&from, &below], local)?)
}

/// Reads the dirty objects, in the order of their edits.
pub(crate) fn dirty(tx: &mut Tx<'_>) -> Result<Vec<LocalObject>, ReplicaError> {
    let sql =
        format!("select {COLUMNS} from object where generation <> 0 order by generation, key");
    Ok(tx.query(&sql, &[], local)?)
}

/// Reads the objects that did not come in the full sync with this number, dirty ones too.
pub(crate) fn unseen(tx: &mut Tx<'_>, full_sync: u64) -> Result<Vec<LocalObject>, ReplicaError> {
    let sql = format!("select {COLUMNS} from object where seen_in <> $1");
    Ok(tx.query(&sql, &[&number(full_sync)?], local)?)
}

/// The numbers of objects by kind, by the kinds' names.
pub(crate) fn kinds(tx: &mut Tx<'_>) -> Result<BTreeMap<String, u64>, ReplicaError> {
    let kinds = tx.query(
        "select substr(key, 1, instr(key, ':') - 1) as kind, count(*) as objects
         from object where value is not null group by kind",
        &[],
        |row| {
            let objects = row.i64("objects")?.cast_unsigned();
            Ok((row.text("kind")?, objects))
        },
    )?;
    Ok(kinds.into_iter().collect())
}

/// The number of objects that were not deleted here. Reads all of them.
pub(crate) fn count(tx: &mut Tx<'_>) -> Result<usize, ReplicaError> {
    count_by(tx, "select count(value) as number from object", &[])
}

/// The number of objects with changes that were not sent yet.
pub(crate) fn count_dirty(tx: &mut Tx<'_>) -> Result<usize, ReplicaError> {
    let sql = "select count(*) as number from object where generation <> 0";
    count_by(tx, sql, &[])
}

/// The `number` that a query selects.
pub(crate) fn count_by(
    tx: &mut Tx<'_>,
    sql: &str,
    parameters: &[&dyn ToValue],
) -> Result<usize, ReplicaError> {
    let number = tx.query_one(sql, parameters, |row| row.i64("number"))?;
    Ok(usize::try_from(number).unwrap_or_default())
}

/// The digest of the server's versions of all objects.
pub(crate) fn digest(tx: &mut Tx<'_>) -> Result<LibraryDigest, ReplicaError> {
    // A sum of the whole numbers would be too large for the database.
    Ok(tx.query_one(
        "select count(*) as objects, coalesce(sum(base_digest >> 32), 0) as upper,
             coalesce(sum(base_digest & 4294967295), 0) as lower
         from object where base_digest is not null",
        &[],
        |row| {
            let objects = row.i64("objects")?.cast_unsigned();
            let (upper, lower) = (row.i64("upper")?, row.i64("lower")?);
            Ok(LibraryDigest::from_sums(objects, upper, lower))
        },
    )?)
}

/// Stores an object.
pub(crate) fn put(tx: &mut Tx<'_>, object: &LocalObject) -> Result<(), ReplicaError> {
    let base_usn = object.base.as_ref().map(|base| number(base.usn.get()));
    let base_usn = base_usn.transpose()?;
    let base_value = object.base_value().map(Value::to_string);
    let base_digest = object.base.as_ref().and_then(|base| {
        let digest = object_digest(&object.key, base.usn, base.value.as_ref()?);
        Some(digest.cast_signed())
    });
    let value = object.value.as_ref().map(Value::to_string);
    let generation = number(object.generation)?;
    let seen_in = number(object.seen_in)?;
    let parameters: [&dyn ToValue; 7] = [
        &object.key.as_str(),
        &base_usn,
        &base_value,
        &base_digest,
        &value,
        &generation,
        &seen_in,
    ];
    tx.execute(
        "insert into object (key, base_usn, base_value, base_digest, value, generation, seen_in)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (key) do update set base_usn = excluded.base_usn,
             base_value = excluded.base_value, base_digest = excluded.base_digest,
             value = excluded.value, generation = excluded.generation, seen_in = excluded.seen_in",
        &parameters,
    )?;
    Ok(())
}

/// Removes an object.
pub(crate) fn remove(tx: &mut Tx<'_>, key: &ObjectKey) -> Result<(), ReplicaError> {
    tx.execute("delete from object where key = $1", &[&key.as_str()])?;
    Ok(())
}

/// Stores the outcome for an object. `at_ms` is the time of a conflict in Unix ms.
pub(crate) fn apply(
    tx: &mut Tx<'_>,
    key: &ObjectKey,
    outcome: &Outcome,
    at_ms: i64,
) -> Result<(), ReplicaError> {
    match &outcome.object {
        Some(object) => put(tx, object)?,
        None => remove(tx, key)?,
    }
    match &outcome.conflict {
        Some(conflict) => {
            let theirs = outcome.object.as_ref();
            let theirs = theirs.and_then(|object| object.value.as_ref());
            conflict_row::add(tx, conflict, theirs, at_ms)
        }
        None => Ok(()),
    }
}

fn local(row: &Row<'_>) -> Result<LocalObject, DbError> {
    let key = ObjectKey::parse(row.str("key")?);
    let number = |number: i64| u64::try_from(number).unwrap_or_default();
    let base_value = json(row.opt_str("base_value")?)?;
    let base = row.opt_i64("base_usn")?.map(|usn| Base {
        usn: Usn::new(number(usn)),
        value: base_value,
    });
    Ok(LocalObject {
        key: key.map_err(|error| DbError::invalid(error.to_string()))?,
        base,
        value: json(row.opt_str("value")?)?,
        generation: number(row.i64("generation")?),
        seen_in: number(row.i64("seen_in")?),
    })
}

/// A value from its JSON.
pub(crate) fn json(text: Option<&str>) -> Result<Option<Value>, DbError> {
    text.map(serde_json::from_str)
        .transpose()
        .map_err(|error| DbError::invalid(error.to_string()))
}

/// A number for the database.
pub(crate) fn number(number: u64) -> Result<i64, ReplicaError> {
    i64::try_from(number).map_err(ReplicaError::damaged)
}

const COLUMNS: &str = "key, base_usn, base_value, value, generation, seen_in";
