//! The law of searchable texts: each version that somebody may be shown has one, and no other.

use std::collections::BTreeMap;

use driftline_core::post_text::{PostText, split};

use crate::{Store, StoreError, Tx, posts::post_text};

/// Checks that exactly the shown versions of posts have texts, and that each text is the one that
/// `extract` makes of the version's JSON, and may have more labels. Returns the number of texts.
///
/// # Panics
/// If a text is missing, is too many, or differs.
pub fn check_post_texts(store: &Store, extract: fn(&str) -> PostText) -> usize {
    let (expected, stored) = store
        .read_blocking(move |tx| Ok::<_, StoreError>((expected(tx, extract)?, stored(tx)?)))
        .expect("a read");
    let without_labels = |texts: &BTreeMap<Key, PostText>| -> BTreeMap<Key, PostText> {
        let texts = texts.iter().map(|(key, text)| {
            let labels = String::new();
            let text = text.clone();
            (*key, PostText { labels, ..text })
        });
        texts.collect()
    };
    assert_eq!(
        without_labels(&stored),
        without_labels(&expected),
        "the texts that are stored, and those of the versions"
    );
    for (key, text) in &expected {
        let known: Vec<&str> = split(&stored[key].labels).collect();
        for label in split(&text.labels) {
            assert!(
                known.contains(&label),
                "the text of {key:?} lacks {label:?}: {known:?}"
            );
        }
    }
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
    let mut expected: BTreeMap<Key, PostText> = BTreeMap::new();
    for (key, text) in versions {
        let merged = match expected.remove(&key) {
            Some(other) => {
                assert_eq!(
                    other.joined, text.joined,
                    "versions with one hash have one text: {key:?}"
                );
                text.with_labels_of(&other)
            }
            None => text,
        };
        expected.insert(key, merged);
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
