use std::collections::BTreeMap;

use driftline_core::{
    names::acct::AcctKey,
    post::Visibility,
    predicate::{Condition, CreationDays},
};
use driftline_db::{Column, Tx};
use driftline_index::{Document, Term, text_terms};
use driftline_mastodon::{RawObject, text_of_json};

use crate::{ReplicaError, entry_row, object_row::count_by, timeline::visibility};

/// Records that the index has still to read the entries at these places. Entries without a place have no document.
pub(crate) fn add_unindexed(tx: &mut Tx<'_>, mut places: Vec<i64>) -> Result<(), ReplicaError> {
    places.retain(|place| *place > 0);
    tx.execute_many(
        "insert into unindexed_place (place) {rows} on conflict (place) do nothing",
        &[],
        &[Column::i64(places)],
    )?;
    Ok(())
}

/// Records that the index has still to read all entries.
pub(crate) fn add_all_unindexed(tx: &mut Tx<'_>) -> Result<(), ReplicaError> {
    tx.execute(
        "insert into unindexed_place (place) select distinct place from entry where place > 0
         on conflict (place) do nothing",
        &[],
    )?;
    Ok(())
}

/// The places up to one that the index has still to read, descending.
pub(crate) fn unindexed(tx: &mut Tx<'_>, up_to: i64, limit: u32) -> Result<Vec<i64>, ReplicaError> {
    Ok(tx.query(
        "select place from unindexed_place where place <= $1 order by place desc limit $2",
        &[&up_to, &limit],
        |row| row.i64("place"),
    )?)
}

/// The number of places that the index has still to read.
pub(crate) fn count_unindexed(tx: &mut Tx<'_>) -> Result<usize, ReplicaError> {
    count_by(tx, "select count(*) as number from unindexed_place", &[])
}

/// Writes the documents of the newest places that the index has still to read, at most `limit`, as the server at `origin` shows
/// their posts. Returns the number of these places.
pub(crate) fn index_newest(
    tx: &mut Tx<'_>,
    origin: &str,
    limit: u32,
) -> Result<usize, ReplicaError> {
    let places = unindexed(tx, i64::MAX, limit)?;
    if places.is_empty() {
        return Ok(0);
    }
    let mut documents: BTreeMap<i64, Document> = BTreeMap::new();
    for row in entry_row::at(tx, &places)? {
        let Some(status) = row.status() else {
            continue;
        };
        let (author, terms) = terms(status.get(), origin);
        // Libraries that have the same place have the same post there, perhaps in two versions.
        let document = documents.entry(row.place).or_insert_with(|| Document {
            place: row.place,
            post_id: row.place,
            instance_id: INSTANCE,
            author,
            terms: Vec::new(),
        });
        // An author may have another name in a version.
        if document.author != author {
            document.author = None;
        }
        document.terms.extend(terms);
    }
    let mut documents: Vec<Document> = documents.into_values().collect();
    for document in &mut documents {
        document.terms.sort_unstable();
        document.terms.dedup();
    }
    driftline_index::remove(tx, INSTANCE, &places)?;
    driftline_index::write(tx, &documents)?;
    let indexed = places.len();
    tx.execute(
        "delete from unindexed_place where place {in $1}",
        &[&Column::i64(places)],
    )?;
    Ok(indexed)
}

/// The number by which the index knows an author, whose name may be without the host of the server at `origin`.
pub(crate) fn author_number(acct: &str, origin: &str) -> Option<i64> {
    let key = AcctKey::new(acct, origin)?;
    Some(key.account_id().cast_signed())
}

/// The number of a post's author, and the terms of the post, which the server at `origin` showed.
fn terms(status: &str, origin: &str) -> (Option<i64>, Vec<Term>) {
    let post = RawObject::parse(status).unwrap_or_default();
    let text = text_of_json(status);
    let mut terms = text_terms(&text.joined);
    terms.extend(text.labels_at(origin).map(|label| Term::label(&label)));
    // Of a visibility that is not known, the narrowest is assumed, as in the exact check.
    let visibility = Condition::Visibility(visibility(&post).unwrap_or(Visibility::Direct));
    terms.extend(visibility.label().map(|label| Term::label(&label)));
    let created = post.time_ms("created_at").map(CreationDays::containing);
    let days = created.into_iter().flat_map(CreationDays::post_labels);
    terms.extend(days.map(|label| Term::label(&label)));
    let acct = post.object("account").text("acct");
    let author = acct.and_then(|acct| AcctKey::new(&acct, origin));
    let number = author.as_ref().map(|key| key.account_id().cast_signed());
    terms.extend(number.map(Term::author));
    let host = author
        .as_ref()
        .and_then(|key| key.as_str().rsplit_once('@'));
    terms.extend(host.map(|(_, host)| Term::instance(host)));
    (number, terms)
}

/// The index has documents of one server.
const INSTANCE: i64 = 0;
