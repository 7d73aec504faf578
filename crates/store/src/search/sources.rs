//! The sources in which a viewer is shown posts.

use std::collections::{HashMap, HashSet};

use driftline_core::post::Visibility;
use driftline_db::{Column, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{LocalId, sql},
    posts::timeline::TimelinePost,
    viewer::{ReadableSource, ReadableSources},
};

/// The names of the sources in which a viewer is shown these posts or copies of them, by the posts'
/// places. A source of the viewer's own has its own name and its name with the account's.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn sources(
    tx: &mut Tx<'_>,
    posts: &[TimelinePost],
    readable: &ReadableSources,
) -> Result<HashMap<LocalId, Vec<String>>, StoreError> {
    // A copy may be among the posts, too.
    let mut places: HashMap<i64, Vec<LocalId>> = HashMap::new();
    let mut instances: HashSet<i64> = HashSet::new();
    for post in posts {
        for key in post.copies.iter().copied().chain([post.key()]) {
            places.entry(sql(key.post)).or_default().push(post.id);
            instances.insert(sql(key.instance));
        }
    }
    let all = readable.of_timelines();
    if places.is_empty() || all.is_empty() {
        return Ok(HashMap::new());
    }
    let names = names(tx, &all)?;
    let ids = Column::i64(places.keys().copied());
    let instances = Column::i64(instances);
    let of_sources = Column::i64(all.iter().map(|source| sql(source.key.id)));
    let select = |which: &str| {
        format!(
            "select e.source_id, e.post_id, e.visibility as narrowest, p.visibility, p.claimed
             from entry e join post p on p.id = e.post_id and p.instance_id = e.instance_id
             where {which} and e.source_id {{in $3}} and e.instance_id {{in $2}} and not e.gone
                 and p.deleted_at_ms is null and e.returns = p.returns"
        )
    };
    let row = |row: &Row<'_>| {
        let visibility = Visibility::named_or_narrowest(row.str("visibility")?);
        let narrowness = visibility.narrowness().max(row.i64("narrowest")?);
        let shown = (narrowness, row.bool("claimed")?);
        Ok((row.i64("source_id")?, row.i64("post_id")?, shown))
    };
    let mut found = Vec::new();
    for which in [
        "e.id {in $1} and e.post_id = e.id",
        "e.post_id {in $1} and e.id <> e.post_id",
    ] {
        found.extend(tx.query(&select(which), &[&ids, &instances, &of_sources], row)?);
    }
    let mut by_place: HashMap<LocalId, Vec<String>> = HashMap::new();
    for (source_id, post_id, (narrowness, is_claimed)) in found {
        let source = all.iter().find(|source| sql(source.key.id) == source_id);
        let is_shown = source.is_some_and(|source| source.shows_post(narrowness, is_claimed));
        for place in places.get(&post_id).into_iter().flatten() {
            let names = names.get(&source_id).into_iter().flatten();
            let names = names.filter(|_| is_shown).cloned();
            by_place.entry(*place).or_default().extend(names);
        }
    }
    Ok(by_place)
}

/// The names of these sources, by their IDs.
fn names(
    tx: &mut Tx<'_>,
    sources: &[ReadableSource],
) -> Result<HashMap<i64, Vec<String>>, StoreError> {
    let own: HashSet<i64> = sources
        .iter()
        .filter(|source| source.shows_all())
        .map(|source| sql(source.key.id))
        .collect();
    Ok(tx
        .query(
            "select id, name from source where id {in $1} and instance_id {in $2}",
            &[
                &Column::i64(sources.iter().map(|source| sql(source.key.id))),
                &Column::i64(sources.iter().map(|source| source.key.instance_id())),
            ],
            |row| {
                let (id, name) = (row.i64("id")?, row.text("name")?);
                let short = name.split_once('/').map(|(_, short)| short.to_owned());
                let short = short.filter(|_| own.contains(&id));
                Ok((id, short.into_iter().chain([name]).collect()))
            },
        )?
        .into_iter()
        .collect())
}
