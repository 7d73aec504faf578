//! The properties by which many predicates at once are compared with posts.

use std::collections::{BTreeSet, HashMap, HashSet};

use driftline_core::{
    post_text::split,
    predicate::{PostFacts, PredicateSet},
};
use driftline_db::{Column, Tx};

use super::{
    documents::texts,
    groups::{Group, Key, groups},
};
use crate::{
    error::StoreError,
    id_types::{LocalId, from_sql, sql},
    mirror::change_feed,
    posts::{instance, timeline::PostKey},
};

/// The words, hashtags and authors of a post and all copies of it, in all versions that somebody may
/// be shown.
#[derive(Clone, Debug)]
pub struct PostFeatures {
    /// The post and its copies.
    pub posts: Vec<PostKey>,
    /// Its texts, and the nicknames of its authors in all profiles.
    entries: Vec<String>,
    tags: Vec<String>,
    authors: Vec<FeatureAuthor>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FeatureAuthor {
    acct: String,
    id: Option<u64>,
}

impl PostFeatures {
    /// Returns the indexes of the predicates that the post may match, for some viewer.
    pub fn candidates(&self, predicates: &PredicateSet) -> BTreeSet<usize> {
        let entries: Vec<&str> = self.entries.iter().map(String::as_str).collect();
        let tags: Vec<&str> = self.tags.iter().map(String::as_str).collect();
        let candidates = self.authors.iter().flat_map(|author| {
            predicates.candidates(&PostFacts {
                author_id: author.id,
                entries: &entries,
                tags: &tags,
                ..PostFacts::bare(0, &author.acct)
            })
        });
        candidates.collect()
    }
}

/// The features of posts, one for each post with its copies. Posts that are not stored any more have
/// none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn features(tx: &mut Tx<'_>, posts: &[PostKey]) -> Result<Vec<PostFeatures>, StoreError> {
    let keys: Vec<Key> = posts.iter().map(Key::from).collect();
    let groups = groups(tx, &keys)?;
    let texts = texts(tx, &groups)?;
    let nicknames = nicknames(tx, &groups)?;
    let mut all = Vec::with_capacity(groups.len());
    for group in &groups {
        let (mut entries, mut tags) = (BTreeSet::new(), BTreeSet::new());
        let mut authors = Vec::new();
        for post in &group.posts {
            for text in texts.get(&post.id).into_iter().flatten() {
                entries.extend(text.entries().map(str::to_owned));
                let labels = split(&text.labels);
                tags.extend(
                    labels.filter_map(|label| Some(label.strip_prefix("tag:")?.to_owned())),
                );
            }
            let names = post.author_id.and_then(|id| nicknames.get(&id));
            entries.extend(names.into_iter().flatten().cloned());
            let acct = post.author.as_ref().map(|acct| acct.as_str().to_owned());
            let author = FeatureAuthor {
                acct: acct.unwrap_or_default(),
                id: post.author_id.map(i64::cast_unsigned),
            };
            if !authors.contains(&author) {
                authors.push(author);
            }
        }
        let posts = group.posts.iter().map(|post| {
            Ok(PostKey {
                post: from_sql(post.id)?,
                instance: from_sql(post.instance_id)?,
            })
        });
        all.push(PostFeatures {
            posts: posts.collect::<Result<_, StoreError>>()?,
            entries: entries.into_iter().collect(),
            tags: tags.into_iter().collect(),
            authors,
        });
    }
    Ok(all)
}

/// The nicknames of the authors of some posts, in the profiles that all sources have shown, by the
/// authors' IDs.
fn nicknames(tx: &mut Tx<'_>, groups: &[Group]) -> Result<HashMap<i64, Vec<String>>, StoreError> {
    let posts = groups.iter().flat_map(|group| &group.posts);
    let authors: HashSet<i64> = posts.filter_map(|post| post.author_id).collect();
    let mut all: HashMap<i64, Vec<String>> = HashMap::new();
    if authors.is_empty() {
        return Ok(all);
    }
    let instances = instance::all(tx)?.into_iter();
    let found = tx.query(
        "select distinct acct_id, display_name from account_profile
         where acct_id {in $1} and instance_id {in $2}",
        &[
            &Column::i64(authors),
            &Column::i64(instances.map(|instance| sql(instance.id))),
        ],
        |row| Ok((row.i64("acct_id")?, row.text("display_name")?)),
    )?;
    for (author, name) in found {
        all.entry(author).or_default().push(name);
    }
    Ok(all)
}

/// The posts with entries whose IDs are above one ID and not above another, in any source, at most
/// `limit` entries.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn new_posts(
    tx: &mut Tx<'_>,
    above: LocalId,
    up_to: LocalId,
    limit: u32,
) -> Result<Vec<PostKey>, StoreError> {
    let sources = change_feed::sources(tx)?;
    let instances: HashSet<i64> = sources.iter().map(|of| of.key.instance_id()).collect();
    let sources = sources.iter().map(|source| source.key.id());
    let posts = tx.query(
        "select distinct post_id, instance_id from entry
         where source_id {in $1} and instance_id {in $2} and id > $3 and id <= $4 limit $5",
        &[
            &Column::i64(sources),
            &Column::i64(instances),
            &sql(above),
            &sql(up_to),
            &i64::from(limit),
        ],
        |row| {
            Ok(PostKey {
                post: from_sql(row.i64("post_id")?)?,
                instance: from_sql(row.i64("instance_id")?)?,
            })
        },
    )?;
    Ok(posts)
}
