//! The law of searchable texts: each version that somebody may be shown has one, and no other.

use std::collections::BTreeMap;

use driftline_core::post_text::PostText;

use crate::{Store, StoreError, Tx, posts::post_text};

/// Checks that exactly the shown versions of posts have texts, and that each text is the one that
/// `extract` makes of the version's JSON. Returns the number of texts.
///
/// # Panics
/// If a text is missing, is too many, or differs.
pub fn check_post_texts(store: &Store, extract: fn(&str) -> PostText) -> usize {
    let (expected, stored) = store
        .read_blocking(move |tx| Ok::<_, StoreError>((expected(tx, extract)?, stored(tx)?)))
        .expect("a read");
    assert_eq!(
        stored, expected,
        "the texts that are stored, and those of the versions"
    );
    stored.len()
}

/// A post's instance, its ID, and the hash of a version.
type Key = (i64, i64, i64);

fn expected(
    tx: &mut Tx<'_>,
    extract: fn(&str) -> PostText,
) -> Result<BTreeMap<Key, PostText>, StoreError> {
    let versions = tx.query(
        "select instance_id, id as post_id, content_hash, raw from post where raw is not null
         union all select instance_id, post_id, content_hash, raw from scoped_content",
        &[],
        |row| {
            let key: Key = (row.i64(0)?, row.i64(1)?, row.i64(2)?);
            Ok((key, extract(row.str("raw")?)))
        },
    )?;
    let mut expected = BTreeMap::new();
    for (key, text) in versions {
        if let Some(other) = expected.insert(key, text.clone()) {
            assert_eq!(other, text, "versions with one hash have one text: {key:?}");
        }
    }
    Ok(expected)
}

fn stored(tx: &mut Tx<'_>) -> Result<BTreeMap<Key, PostText>, StoreError> {
    let rows = tx.query(
        "select instance_id, post_id, content_hash, extraction, text, labels from post_text",
        &[],
        |row| {
            Ok((
                (row.i64(0)?, row.i64(1)?, row.i64(2)?),
                post_text::from_row(row)?,
            ))
        },
    )?;
    Ok(rows.into_iter().collect())
}
