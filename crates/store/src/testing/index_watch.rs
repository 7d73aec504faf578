//! The law of the search index: it learns of each post that has changed.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Store, StoreError, Tx, index_pending};

/// An index that knows the facts about each post that matter to a search index, and learns of
/// changes by [`index_pending`] alone.
#[derive(Debug, Default)]
pub struct IndexWatch {
    known: Facts,
}

/// The known facts about each post, by its instance and its ID.
type Facts = BTreeMap<(i64, i64), BTreeSet<String>>;

impl IndexWatch {
    /// Checks that all posts that have changed since the last call are pending, and reads them.
    /// Returns their number.
    ///
    /// # Panics
    /// If a post has changed and is not pending.
    pub fn check(&mut self, store: &Store) -> usize {
        let now = store.read_blocking(facts).expect("a read");
        let pending = forget_all(store);
        let all: BTreeSet<_> = self.known.keys().chain(now.keys()).collect();
        for post in all {
            let (before, now) = (self.known.get(post), now.get(post));
            let is_pending = pending.contains(post);
            assert!(
                before == now || is_pending,
                "the index does not learn of {post:?}: {before:?} became {now:?}"
            );
        }
        self.known = now;
        pending.len()
    }
}

fn forget_all(store: &Store) -> BTreeSet<(i64, i64)> {
    let mut pending = BTreeSet::new();
    loop {
        let next = store
            .read_blocking(|tx| index_pending::unindexed(tx, PORTION))
            .expect("a read");
        let Some(first) = next.first().copied() else {
            return pending;
        };
        let of_one = next.iter().filter(|of| of.instance == first.instance);
        pending.extend(of_one.map(|of| (raw(of.instance.raw()), raw(of.post.raw()))));
        let forget =
            move |tx: &mut Tx<'_>| index_pending::forget_indexed(tx, first.instance, &next);
        store
            .write_blocking(crate::Root::none(), forget)
            .expect("a write");
    }
}

fn facts(tx: &mut Tx<'_>) -> Result<Facts, StoreError> {
    let mut facts = Facts::new();
    for (columns, table) in TABLES {
        let query = format!("select {columns} from {table}");
        let rows = tx.query(&query, &[], |row| {
            let values = (2..columns.split(',').count()).map(|at| row.opt_text(at));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            Ok(((row.i64(0)?, row.i64(1)?), format!("{table} {values:?}")))
        })?;
        for (post, fact) in rows {
            facts.entry(post).or_default().insert(fact);
        }
    }
    Ok(facts)
}

fn raw(id: u64) -> i64 {
    id.cast_signed()
}

/// The columns that matter of each table, as texts after the instance and the post.
const TABLES: [(&str, &str); 4] = [
    (
        "instance_id, id, cast(content_hash as text), cast(content_scope as text), cast(in_public as text),
         cast(listed as text), cast(public_id as text), cast(deleted_at_ms is null as text), visibility",
        "post",
    ),
    (
        "instance_id, post_id, cast(scope as text), cast(content_hash as text)",
        "scoped_content",
    ),
    (
        "instance_id, post_id, cast(source_id as text), cast(id as text)",
        "entry",
    ),
    (
        "instance_id, post_id, cast(content_hash as text), labels",
        "post_text",
    ),
];
const PORTION: u32 = 1_000;
