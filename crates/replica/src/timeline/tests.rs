#![allow(clippy::unwrap_used)]

use std::ops::Range;

use driftline_core::sync::SyncedObject;
use driftline_db::{Db, Options, Root, Target};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::*;
use crate::{index_row, replica::MIGRATIONS};

const ORIGIN: &str = "https://own.example";
/// The keys of posts that have an author each.
const MANY: Range<u64> = 100..200;
const LIBRARIES: [&str; 2] = ["source:1", "source:2"];
const TEXTS: [&str; 10] = [
    "a black cat",
    "the cats sleep",
    "地震です",
    "ねこが起きた",
    "Straße",
    "cafe\u{301} au lait",
    "👩‍👩‍👧 and 👍🏽",
    "x",
    "ok",
    "100% of it",
];
const ACCTS: [&str; 4] = ["ann", "Bob", "eve@far.example", "dan@Far.example"];
const NICKNAMES: [&str; 5] = ["Cat lover", "地震速報", "", "x", "Dan the ＣＡＴ"];
const TERMS: [&str; 48] = [
    "cat",
    "cats",
    "\"black cat\"",
    "=cat",
    "CAT",
    "ca",
    "c",
    "x",
    "ok",
    "o",
    "地震",
    "地",
    "ネコ",
    "strasse",
    "café",
    "👍",
    "%",
    "lover",
    "none",
    "{}",
    "from:ann@own.example",
    "from:ann",
    "from:eve@far.example",
    "from:dan@far.example",
    "from:a103@far.example",
    "from:b5@far.example",
    "instance:far.example",
    "instance:own.example",
    "lang:en",
    "lang:ja",
    "tag:cats",
    "#猫",
    "has:media",
    "has:poll",
    "has:cw",
    "is:reply",
    "is:boost",
    "is:edited",
    "is:sensitive",
    "visibility:public",
    "visibility:unlisted",
    "visibility:direct",
    "after:2026-01-10",
    "before:2026-01-10",
    "during:2026-01-11",
    "after:2026-01-05 before:2026-02-02",
    "{cat lang:en}",
    "sofa",
];

/// A change of the entries or of the index.
#[derive(Clone, Debug)]
enum Change {
    /// An entry comes, perhaps at another place than before.
    Put {
        library: usize,
        key: u64,
        is_moved: bool,
        looks: u64,
    },
    /// The counts of an entry come, perhaps with the profile of its author, who may have another name by now.
    PutPartial {
        library: usize,
        key: u64,
        is_moved: bool,
        looks: u64,
        is_renamed: Option<bool>,
    },
    /// Entries of 100 other authors come.
    PutMany {
        library: usize,
        looks: u64,
    },
    Remove {
        library: usize,
        key: u64,
    },
    /// A full sync ends that had the entries with an even key alone.
    Sweep {
        library: usize,
    },
    RemoveAll {
        library: usize,
    },
    /// The index reads some places.
    Index {
        limit: u32,
    },
}

fn changes() -> impl Strategy<Value = Change> {
    let entry = || (0..2_usize, prop_oneof![5 => 0..30_u64, 1 => MANY]);
    let put = || (entry(), any::<bool>(), any::<u64>());
    let partial = (put(), any::<Option<bool>>());
    let many = (0..2_usize, any::<u64>());
    prop_oneof![
        20 => put().prop_map(|((library, key), is_moved, looks)| Change::Put {
            library,
            key,
            is_moved,
            looks,
        }),
        10 => partial.prop_map(|(((library, key), is_moved, looks), is_renamed)| Change::PutPartial {
            library,
            key,
            is_moved,
            looks,
            is_renamed,
        }),
        1 => many.prop_map(|(library, looks)| Change::PutMany { library, looks }),
        3 => entry().prop_map(|(library, key)| Change::Remove { library, key }),
        1 => (0..2_usize).prop_map(|library| Change::Sweep { library }),
        1 => (0..2_usize).prop_map(|library| Change::RemoveAll { library }),
        5 => (1..12_u32).prop_map(|limit| Change::Index { limit }),
    ]
}

fn queries() -> impl Strategy<Value = String> {
    let term = select(TERMS.to_vec()).prop_map(str::to_owned);
    term.prop_recursive(3, 8, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            inner.prop_map(|one| format!("-({one})")),
            (two.clone(), select(vec!["", "OR", "XOR"]))
                .prop_map(|((one, other), sign)| format!("({one}) {sign} ({other})")),
            two.prop_map(|(one, other)| format!("({one}) -({other})")),
        ]
    })
}

/// The author of a post. Most of many have a name with one word.
fn account(key: u64, looks: u64) -> Value {
    let (number, acct) = match MANY.contains(&key) {
        true => (key, format!("a{key}@far.example")),
        false => (key % 4, ACCTS[key as usize % 4].to_owned()),
    };
    let name = match MANY.contains(&key) && !key.is_multiple_of(10) {
        true => NICKNAMES[0],
        false => NICKNAMES[(looks >> 40) as usize % NICKNAMES.len()],
    };
    json!({"id": (900 + number).to_string(), "acct": acct, "display_name": name})
}

fn synced(key: u64, is_moved: bool, mut value: Value) -> SyncedObject {
    let place = 1 + key + if is_moved { 300 } else { 0 };
    value["place"] = json!(place.to_string());
    let object =
        json!({"key": format!("post:https://far.example/{key}"), "usn": "0", "value": value});
    serde_json::from_value(object).unwrap()
}

/// The counts of a post.
fn partial(key: u64, is_moved: bool, looks: u64, is_renamed: Option<bool>) -> SyncedObject {
    let mut value = json!({"update": {"favourites_count": looks % 100}});
    if let Some(is_renamed) = is_renamed {
        value["account"] = account(key, looks);
        if is_renamed {
            value["account"]["acct"] = json!(format!("b{key}@far.example"));
        }
    }
    synced(key, is_moved, value)
}

/// A post. Its author's account depends on the key alone, and the rest on `looks`.
fn object(key: u64, is_moved: bool, looks: u64) -> SyncedObject {
    let has = |bit: u32| (looks >> bit) & 1 == 1;
    let one = |all: &[&'static str], shift: u32| all[(looks >> shift) as usize % all.len()];
    let account = account(key, looks);
    let mut status = json!({
        "id": key.to_string(), "uri": format!("https://far.example/{key}"),
        "content": format!("<p>{}</p>", one(&TEXTS, 0)), "account": account,
        "language": one(&["en", "ja", "de"], 8), "sensitive": has(12),
        "spoiler_text": if has(13) { one(&TEXTS, 16) } else { "" },
        "visibility": one(&["public", "unlisted", "private", "unknown"], 20),
        "created_at": format!("2026-01-{:02}T12:00:00.000Z", 1 + (looks >> 24) % 28),
        "in_reply_to_id": has(30).then_some("1"),
        "edited_at": has(31).then_some("2026-02-01T00:00:00.000Z"),
        "tags": if has(32) { json!([{"name": "Cats"}, {"name": "猫"}]) } else { json!([]) },
        "poll": has(33).then(|| json!({"options": [{"title": one(&TEXTS, 34)}]})),
        "media_attachments": if has(38) { json!([{"description": "a sofa"}]) } else { json!([]) },
    });
    if has(39) {
        let boosted = status.clone();
        status = json!({
            "id": status["id"], "uri": status["uri"], "content": "", "visibility": "public",
            "account": status["account"], "created_at": status["created_at"], "reblog": boosted,
        });
    }
    synced(key, is_moved, json!({"status": status}))
}

fn put(
    tx: &mut Tx<'_>,
    library: usize,
    objects: &[SyncedObject],
    full_sync: u64,
) -> Result<(), ReplicaError> {
    author_row::put_all(tx, LIBRARIES[library], objects, 1, true)?;
    // Counts of an entry that is not here change nothing.
    entry_row::put_all(tx, LIBRARIES[library], objects, full_sync).map(|_| ())
}

fn apply(tx: &mut Tx<'_>, change: &Change) -> Result<(), ReplicaError> {
    match *change {
        Change::Put {
            library,
            key,
            is_moved,
            looks,
        } => put(tx, library, &[object(key, is_moved, looks)], key % 2),
        Change::PutPartial {
            library,
            key,
            is_moved,
            looks,
            is_renamed,
        } => {
            let partial = partial(key, is_moved, looks, is_renamed);
            put(tx, library, &[partial], key % 2)
        }
        Change::PutMany { library, looks } => {
            let looks = |key: u64| looks.rotate_left((key % 64) as u32);
            let objects: Vec<_> = MANY.map(|key| object(key, false, looks(key))).collect();
            put(tx, library, &objects, 0)
        }
        Change::Remove { library, key } => {
            let key = ObjectKey::parse(format!("post:https://far.example/{key}")).unwrap();
            entry_row::remove(tx, LIBRARIES[library], &key).map(|_| ())
        }
        Change::Sweep { library } => entry_row::sweep(tx, LIBRARIES[library], 0).map(|_| ()),
        Change::RemoveAll { library } => entry_row::remove_all(tx, LIBRARIES[library]).map(|_| ()),
        Change::Index { limit } => index_row::index_newest(tx, ORIGIN, limit).map(|_| ()),
    }
}

/// The places and sources of the posts that a query finds, with the index if it may look up so many names.
fn found(
    tx: &mut Tx<'_>,
    query: &TimelineQuery,
    page_size: u32,
    max_named: Option<usize>,
) -> Result<Vec<(String, String)>, ReplicaError> {
    let filter = Filter::parse(query.matching.as_deref().unwrap(), ORIGIN)?;
    let terms = match max_named {
        Some(max_named) => lookup::prepare(tx, &filter.predicate, ORIGIN, max_named)?,
        None => None,
    };
    let scan = Scan {
        query,
        filter: Some(&filter),
        terms,
        origin: ORIGIN,
        subscriptions: subscription_row::list(tx)?,
        names: HashSet::new(),
        page_size,
    };
    let posts = scan.run(tx)?.into_iter();
    Ok(posts.map(|post| (post.place, post.source)).collect())
}

/// The numbers of places that have a document but no entry, that wait but have no entry, and that have an entry but neither.
fn misfits(tx: &mut Tx<'_>) -> Result<(i64, i64, i64), ReplicaError> {
    Ok(tx.query_one(
        "select (select count(*) from place_terms where rowid not in (select place from entry))
             + (select count(*) from indexed_place where place not in (select place from entry)) as documents,
             (select count(*) from unindexed_place where place not in (select place from entry)) as waiting,
             (select count(*) from entry where place not in (select place from indexed_place)
                 and place not in (select place from unindexed_place)) as lost",
        &[],
        |row| Ok((row.i64("documents")?, row.i64("waiting")?, row.i64("lost")?)),
    )?)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_index_finds_the_posts_that_a_scan_finds(
        changes in vec(changes(), 1..120),
        queries in vec(queries(), 12),
        limit in 1..60_usize,
        page_size in 1..12_u32,
        max_named in 1..200_usize,
        below in proptest::option::of(1..400_i64),
        source in proptest::option::of(select(vec!["one", "two"])),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replica.db");
        let db = Db::open(Options {
            readers: 1,
            group: 1,
            ..Options::new(Target::Sqlite { path }, MIGRATIONS)
        })
        .unwrap();
        let outcome = db.write_blocking(Root::none(), move |tx| {
            for (library, source) in LIBRARIES.into_iter().zip(["one", "two"]) {
                subscription_row::add(tx, library, source, None)?;
            }
            for change in &changes {
                apply(tx, change)?;
            }
            let misfits = misfits(tx)?;
            let mut differences = Vec::new();
            for text in &queries {
                let query = TimelineQuery {
                    source: source.map(str::to_owned),
                    below,
                    limit,
                    matching: Some(text.clone()),
                };
                let (with, without) = (
                    found(tx, &query, page_size, Some(max_named))?,
                    found(tx, &query, 200, None)?,
                );
                if with != without {
                    differences.push(format!("{text}: {with:?} instead of {without:?}"));
                }
            }
            Ok::<_, ReplicaError>((misfits, differences))
        });
        db.close_blocking();
        let (misfits, differences) = outcome.unwrap();
        prop_assert_eq!(misfits, (0, 0, 0));
        prop_assert!(differences.is_empty(), "{differences:?}");
    }
}
