//! Copies of posts: what several instances show of one, and each source that lists it.

use std::collections::{HashMap, HashSet};

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, Row, Tx};

use super::{
    Rule, TimelinePost,
    places::{Place, placed},
    stored::{self, StoredPost},
};
use crate::{error::StoreError, id_types::sql, posts::instance, viewer::ReadableSources};

/// What a timeline shows of posts at their places: each at its lowest one alone, with the content of the
/// best copy, its author's own server's first.
pub(super) struct Copies {
    /// The lowest place of each post, by any of its copies; none where each place is shown.
    lowest: Option<HashMap<i64, i64>>,
    /// The post whose content is shown in the place of another, where that is not its own.
    best: HashMap<i64, StoredPost>,
}

impl Copies {
    /// The copies of those posts, as far as a timeline takes them.
    pub(super) fn load(
        tx: &mut Tx<'_>,
        posts: &HashMap<i64, StoredPost>,
        rule: &Rule<'_>,
    ) -> Result<Copies, StoreError> {
        if let Rule::Source(_) = rule {
            let best = HashMap::new();
            return Ok(Copies { lowest: None, best });
        }
        let others = others(tx, posts)?;
        let mut lowest: HashMap<&str, i64> = HashMap::new();
        let mut all: HashMap<i64, &StoredPost> =
            others.iter().map(|(id, copy)| (*id, copy)).collect();
        all.extend(posts.iter().map(|(id, post)| (*id, post)));
        let names: HashMap<i64, String> = all.iter().map(|(id, copy)| (*id, name(copy))).collect();
        let mut shown: HashSet<i64> = HashSet::new();
        let mut stands = |id: i64, place: i64| {
            shown.insert(id);
            if let Some(name) = names.get(&id) {
                let lowest = lowest.entry(name).or_insert(place);
                *lowest = (*lowest).min(place);
            }
        };
        let entries = match rule {
            Rule::Public(hidden) if hidden.is_empty() => Vec::new(),
            _ => entries(tx, &all)?,
        };
        if let Rule::Public(_) = rule {
            for (id, copy) in all.iter().filter(|(_, copy)| copy.listed) {
                stands(*id, sql(copy.post.public_id));
            }
        }
        for entry in &entries {
            if let Some(copy) = all.get(&entry.post_id)
                && entry.returns == copy.returns
                && rule.takes_entry(entry, copy)
            {
                stands(entry.post_id, entry.place);
            }
        }
        let lowest = posts.keys().filter_map(|id| {
            let name = names.get(id)?;
            Some((*id, *lowest.get(name.as_str())?))
        });
        let lowest: HashMap<i64, i64> = lowest.collect();
        let mut best = HashMap::new();
        if !others.is_empty() {
            let origins = instance::all(tx)?.into_iter();
            let origins: HashMap<_, _> = origins.map(|known| (known.id, known.origin)).collect();
            for (id, copy) in others {
                let origin = origins.get(&copy.post.instance);
                let is_own = origin.is_some_and(|origin| is_of(&copy.post, origin));
                if is_own && shown.contains(&id) {
                    let name = name(&copy);
                    let replaced = posts.keys().find(|id| names.get(id) == Some(&name));
                    best.extend(replaced.map(|replaced| (*replaced, copy)));
                }
            }
        }
        let lowest = Some(lowest);
        Ok(Copies { lowest, best })
    }

    /// What is shown at a place; `None` if the post has a lower one.
    pub(super) fn at(
        &mut self,
        place: &Place,
        posts: &HashMap<i64, StoredPost>,
    ) -> Option<TimelinePost> {
        let lowest = self.lowest.as_ref();
        if lowest.is_some_and(|lowest| lowest.get(&place.post_id) != Some(&place.id)) {
            return None;
        }
        let shown = self
            .best
            .get(&place.post_id)
            .or_else(|| posts.get(&place.post_id))?;
        placed(&shown.post, place.id).ok()
    }
}

/// What a post goes by on all servers; one without a `uri` is known to its instance alone.
fn name(copy: &StoredPost) -> String {
    match copy.post.uri.as_deref() {
        Some(uri) => uri.to_owned(),
        None => format!("{}/{}", copy.post.instance, copy.post.upstream_id),
    }
}

/// Whether the `uri` of a post is of the server at that origin.
fn is_of(post: &TimelinePost, origin: &str) -> bool {
    let rest = post.uri.as_deref().and_then(|uri| uri.strip_prefix(origin));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// The copies of posts that other instances show.
fn others(
    tx: &mut Tx<'_>,
    posts: &HashMap<i64, StoredPost>,
) -> Result<HashMap<i64, StoredPost>, DbError> {
    // Of one instance there are none.
    let several = tx.query("select id from instance limit 2", &[], |row| row.i64("id"))?;
    if several.len() < 2 || posts.is_empty() {
        return Ok(HashMap::new());
    }
    let mut found: Vec<i64> = Vec::new();
    let mut asked = Vec::new();
    for post in posts.values() {
        if let Some(uri) = post.post.uri.as_deref() {
            let own = sql(post.post.instance);
            asked.push(tx.query_later(
                "select id from post
                 where substr(uri, length(uri) - 17) = substr($1, length($1) - 17) and uri = $1
                     and instance_id <> $2 and deleted_at_ms is null",
                &[&uri, &own],
                |row| row.i64("id"),
            )?);
        }
    }
    for rows in asked {
        found.extend(tx.rows(rows)?);
    }
    found.retain(|id| !posts.contains_key(id));
    match found.is_empty() {
        true => Ok(HashMap::new()),
        false => stored::by_ids(tx, &found, None),
    }
}

/// An entry of a post.
pub(super) struct PostEntry {
    pub(super) source_id: i64,
    post_id: i64,
    pub(super) id: i64,
    pub(super) place: i64,
    pub(super) visibility: i64,
    pub(super) author_id: Option<i64>,
    returns: i64,
}

impl PostEntry {
    fn from_row(row: &Row<'_>) -> Result<PostEntry, DbError> {
        Ok(PostEntry {
            source_id: row.i64("source_id")?,
            post_id: row.i64("post_id")?,
            id: row.i64("id")?,
            place: row.i64("place")?,
            visibility: row.i64("visibility")?,
            author_id: row.opt_i64("account_id")?,
            returns: row.i64("returns")?,
        })
    }
}

/// The entries of posts in all sources, but those that have left.
pub(super) fn entries(
    tx: &mut Tx<'_>,
    posts: &HashMap<i64, &StoredPost>,
) -> Result<Vec<PostEntry>, DbError> {
    let instance_ids = posts.values().map(|post| sql(post.post.instance));
    let instance_ids: HashSet<i64> = instance_ids.collect();
    let columns = "source_id, post_id, id, coalesce(place_id, id) as place, visibility, account_id,
        returns";
    let first = tx.query_each_later(
        &format!(
            "select {columns} from entry
             where source_id = {{row 1}} and instance_id = {{row 2}} and id = {{row 3}} and not gone"
        ),
        &[],
        &[
            Column::i64(posts.values().map(|post| post.first_source_id)),
            Column::i64(posts.values().map(|post| sql(post.post.instance))),
            Column::i64(posts.keys().copied()),
        ],
        PostEntry::from_row,
    )?;
    let others = tx.query_later(
        &format!(
            "select {columns} from entry
             where post_id {{in $1}} and instance_id {{in $2}} and id <> post_id and not gone"
        ),
        &[
            &Column::i64(posts.keys().copied()),
            &Column::i64(instance_ids),
        ],
        PostEntry::from_row,
    )?;
    let mut found = tx.rows(first)?;
    found.extend(tx.rows(others)?);
    Ok(found)
}

impl Rule<'_> {
    /// Whether the timeline takes an entry, as narrow as its post ever was since, or is now.
    fn takes_entry(&self, entry: &PostEntry, copy: &StoredPost) -> bool {
        let visibility = entry.narrowness(copy);
        match self {
            Rule::Public(hidden) => {
                let public = Visibility::Public.narrowness();
                visibility == public && hidden.iter().any(|id| sql(*id) == entry.source_id)
            }
            Rule::Home(takes, readable) => {
                let is_chosen = takes.sources.iter().any(|id| sql(*id) == entry.source_id);
                let is_followed = || {
                    let mut authors = takes.authors.iter();
                    entry
                        .author_id
                        .is_some_and(|author| authors.any(|id| sql(*id) == author))
                };
                entry.is_shown(readable, copy) && (is_chosen || is_followed())
            }
            Rule::Source(shows) => visibility <= shows.narrowness(),
        }
    }
}

impl PostEntry {
    fn narrowness(&self, copy: &StoredPost) -> i64 {
        self.visibility.max(copy.post.visibility.narrowness())
    }

    /// Whether its source shows it to a viewer.
    pub(super) fn is_shown(&self, readable: &ReadableSources, copy: &StoredPost) -> bool {
        let source = readable.of_raw(self.source_id);
        source.is_some_and(|source| self.narrowness(copy) <= source.shows.narrowness())
    }
}
