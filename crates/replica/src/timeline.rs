use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use driftline_core::{
    post::Visibility,
    predicate::{Matcher, NeededFacts, PostFacts, Predicate},
    sync::{ObjectKey, ObjectKind},
};
use driftline_db::Tx;
use driftline_index::TermQuery;
use driftline_mastodon::{RawObject, StatedFacts};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::{
    Replica, ReplicaError, author_row,
    entry_row::{self, EntryRow},
    lookup, object_row,
    subscription::in_words,
    subscription_row::{self, SubscriptionRow},
    sync_predicate,
};

/// The arguments of [`Replica::timeline`].
#[derive(Clone, Debug, Default)]
pub struct TimelineQuery {
    /// The name of a subscribed source; all subscriptions without one.
    pub source: Option<String>,
    /// Only posts below this place.
    pub below: Option<i64>,
    /// The largest number of posts.
    pub limit: usize,
    /// Only posts that match this predicate, in its text form.
    pub matching: Option<String>,
}

/// A post of a subscribed source, or of a bookmark.
#[derive(Clone, Debug, Serialize)]
pub struct ReplicaPost {
    /// The place in the source's timeline, in decimal digits. Later entries have larger ones. Of a bookmark, the ID by which the
    /// server knows the post.
    pub place: String,
    /// The source's name; empty for a bookmark's post.
    pub source: String,
    /// Its name across servers.
    pub uri: Option<String>,
    /// Its address for people.
    pub url: Option<String>,
    /// Its author, `name@host`.
    pub author: String,
    /// Its time of creation in Unix ms.
    pub created_at_ms: Option<i64>,
    /// Its visibility; `None` if this version does not know it.
    pub visibility: Option<Visibility>,
    /// Its text, with its warning, the options of its poll and the descriptions of its media.
    pub text: String,
    /// True if it, or the post that it boosts, is bookmarked here.
    pub bookmarked: bool,
    /// The note on it, or on the post that it boosts.
    pub note: Option<String>,
    /// Mastodon's entity.
    pub status: Box<RawValue>,
}

impl Replica {
    /// The posts of one subscription or of all, by descending places. Each post comes once, at its highest place among them.
    /// With a predicate, the search index finds candidates, and entries that it has still to read are read one after the other.
    /// If all subscriptions were read from their newest posts, the posts of bookmarks that are in none of them follow.
    ///
    /// # Errors
    /// [`ReplicaError::NotSubscribed`] if there is no subscription of the source; [`ReplicaError::Query`] if the predicate is
    /// not valid, or has a term that a filter of a synced library must not have; [`ReplicaError::Db`] if the database fails.
    pub async fn timeline(&self, query: TimelineQuery) -> Result<Vec<ReplicaPost>, ReplicaError> {
        let origin = self.url.origin();
        let filter = query.matching.as_deref();
        let filter = filter.map(|text| Filter::parse(text, &origin));
        let filter = filter.transpose()?;
        self.read(move |tx| {
            let terms = filter
                .as_ref()
                .map(|filter| lookup::prepare(tx, &filter.predicate, &origin, MAX_NAMED));
            let scan = Scan {
                query: &query,
                filter: filter.as_ref(),
                terms: terms.transpose()?.flatten(),
                origin: &origin,
                subscriptions: subscription_row::list(tx)?,
                names: HashSet::new(),
                page_size: PAGE_SIZE,
            };
            scan.run(tx)
        })
        .await
    }
}

/// A compiled predicate.
struct Filter {
    predicate: Predicate,
    matcher: Matcher,
    needed: NeededFacts,
}

impl Filter {
    fn parse(text: &str, origin: &str) -> Result<Self, ReplicaError> {
        let predicate = sync_predicate::parse(text, origin, sync_predicate::SEARCH)?;
        Ok(Self {
            matcher: Matcher::new(&predicate),
            needed: predicate.needed_facts(),
            predicate,
        })
    }
}

/// One reading of the entries.
struct Scan<'a> {
    query: &'a TimelineQuery,
    filter: Option<&'a Filter>,
    /// The look-up in the index; without one all entries are read.
    terms: Option<TermQuery>,
    origin: &'a str,
    subscriptions: Vec<SubscriptionRow>,
    /// The names of the posts that were found.
    names: HashSet<String>,
    /// The number of entries, or of candidates, that are read at once.
    page_size: u32,
}

/// Entries that follow one another, and the place and library of the last candidate.
struct EntryPage {
    rows: Vec<EntryRow>,
    end: (i64, String),
}

impl Scan<'_> {
    fn run(mut self, tx: &mut Tx<'_>) -> Result<Vec<ReplicaPost>, ReplicaError> {
        let one = self.library()?;
        let mut posts = Vec::new();
        // No library's name is below the empty one, so the place itself is left out.
        let mut end = (self.query.below.unwrap_or(i64::MAX), String::new());
        while posts.len() < self.query.limit {
            let Some(page) = self.page(tx, one.as_deref(), &end)? else {
                break;
            };
            end = page.end;
            for row in &page.rows {
                if posts.len() < self.query.limit {
                    posts.extend(self.post(tx, row)?);
                }
            }
        }
        if let Some(filter) = self
            .filter
            .filter(|_| one.is_none() && self.query.below.is_none())
        {
            self.add_bookmarked(tx, filter, &mut posts)?;
        }
        Ok(posts)
    }

    /// The next entries that may match, of one library or of all; `None` at the end.
    fn page(
        &self,
        tx: &mut Tx<'_>,
        one: Option<&str>,
        (place, library): &(i64, String),
    ) -> Result<Option<EntryPage>, ReplicaError> {
        if let Some(terms) = &self.terms {
            let places = lookup::places(tx, terms, *place, self.page_size)?;
            let Some(last) = places.last() else {
                return Ok(None);
            };
            let end = (*last, String::new());
            let mut rows = entry_row::at(tx, &places)?;
            rows.retain(|row| one.is_none_or(|one| row.library == one));
            return Ok(Some(EntryPage { rows, end }));
        }
        let rows = match one {
            Some(one) => entry_row::below_in(tx, one, *place, self.page_size)?,
            None => entry_row::below(tx, *place, library, self.page_size)?,
        };
        let end = rows.last().map(|last| (last.place, last.library.clone()));
        Ok(end.map(|end| EntryPage { rows, end }))
    }

    /// True if a post matches. A word may be in each of its author's nicknames, which are those of the subscriptions, and `other`.
    fn is_match(
        &self,
        tx: &mut Tx<'_>,
        filter: &Filter,
        status: &str,
        other: Option<String>,
    ) -> Result<bool, ReplicaError> {
        let mut stated = StatedFacts::read_needed(status, self.origin, filter.needed);
        let post = RawObject::parse(status).unwrap_or_default();
        if filter.needed.entries {
            stated.entries.extend(author_row::names_of(tx, &post)?);
            stated.entries.extend(other);
        }
        let account = post.object("account");
        let others = PostFacts {
            author_id: account.id("id").and_then(|id| id.parse().ok()),
            // Of a visibility that is not known, the narrowest is assumed.
            visibility: visibility(&post).unwrap_or(Visibility::Direct),
            created_at_ms: post.time_ms("created_at"),
            ..PostFacts::bare(0, "")
        };
        Ok(stated.is_match(&filter.matcher, others))
    }

    /// Adds posts of bookmarks that match and were not found already. Reads no more of their copies than it needs. They are in no
    /// index: an account has few of them next to its sources' posts, and their order is not that of places.
    fn add_bookmarked(
        &mut self,
        tx: &mut Tx<'_>,
        filter: &Filter,
        posts: &mut Vec<ReplicaPost>,
    ) -> Result<(), ReplicaError> {
        if posts.len() >= self.query.limit {
            return Ok(());
        }
        for key in object_row::bookmarks(tx)? {
            if posts.len() >= self.query.limit {
                break;
            }
            let Some((place, status)) = object_row::copy(tx, &key)? else {
                continue;
            };
            let post = RawObject::parse(status.get()).unwrap_or_default();
            let nickname = post.object("account").some_text("display_name");
            let nickname = nickname.map(Cow::into_owned);
            if !self.is_match(tx, filter, status.get(), nickname)? {
                continue;
            }
            let uri = post.some_text("uri").map(Cow::into_owned);
            if uri.is_none_or(|uri| self.names.insert(uri)) {
                posts.push(shown(tx, &status, (place, String::new()), self.origin)?);
            }
        }
        Ok(())
    }

    /// The library of the source that is asked for.
    fn library(&self) -> Result<Option<String>, ReplicaError> {
        let Some(name) = &self.query.source else {
            return Ok(None);
        };
        let mut rows = self.subscriptions.iter();
        match rows.find(|row| row.source == *name) {
            Some(row) => Ok(Some(row.progress.library.clone())),
            None => Err(ReplicaError::NotSubscribed {
                name: name.clone(),
                known: in_words(self.subscriptions.iter().map(|row| row.source.as_str())),
            }),
        }
    }

    /// The post of an entry; `None` if it is not one to show, or was found already.
    fn post(
        &mut self,
        tx: &mut Tx<'_>,
        row: &EntryRow,
    ) -> Result<Option<ReplicaPost>, ReplicaError> {
        let Some(status) = row.status() else {
            return Ok(None);
        };
        let json = status.get();
        if let Some(filter) = self.filter
            && !self.is_match(tx, filter, json, None)?
        {
            return Ok(None);
        }
        let post = RawObject::parse(json).unwrap_or_default();
        let uri = post.some_text("uri").map(Cow::into_owned);
        let local_name = || format!("{} {}", row.library, row.key);
        let name = uri.unwrap_or_else(local_name);
        if !self.names.insert(name) || self.was_above(tx, row)? {
            return Ok(None);
        }
        let mut subscriptions = self.subscriptions.iter();
        let source = subscriptions.find(|of| of.progress.library == row.library);
        let source = source.map(|of| of.source.clone()).unwrap_or_default();
        let status = with_newest_profiles(tx, &row.library, status)?;
        shown(tx, &status, (row.place.to_string(), source), self.origin).map(Some)
    }

    /// True if another source has the post at a place that is not below the one that is asked for: it was shown there.
    fn was_above(&self, tx: &mut Tx<'_>, row: &EntryRow) -> Result<bool, ReplicaError> {
        match (self.query.below, &self.query.source) {
            (Some(below), None) if !row.has_local_key() => {
                entry_row::is_at_or_above(tx, &row.key, below)
            }
            _ => Ok(false),
        }
    }
}

/// A post with the newest profiles from a library of its author, and of the author of the post that it boosts. Its other values
/// pass as they are written.
fn with_newest_profiles(
    tx: &mut Tx<'_>,
    library: &str,
    status: &RawValue,
) -> Result<Box<RawValue>, ReplicaError> {
    let Ok(mut post) = serde_json::from_str::<Members>(status.get()) else {
        return Ok(status.to_owned());
    };
    let boosted = post.get("reblog").map(|of| serde_json::from_str(of.get()));
    let mut is_changed = set_newest_profile(tx, library, &mut post)?;
    if let Some(Ok(mut boosted)) = boosted
        && set_newest_profile(tx, library, &mut boosted)?
    {
        post.insert("reblog".to_owned(), raw(&boosted)?);
        is_changed = true;
    }
    match is_changed {
        true => raw(&post),
        false => Ok(status.to_owned()),
    }
}

/// The members of an object, unread.
type Members = BTreeMap<String, Box<RawValue>>;

/// Returns true if the author of a post has a newer profile, which it has now.
fn set_newest_profile(
    tx: &mut Tx<'_>,
    library: &str,
    post: &mut Members,
) -> Result<bool, ReplicaError> {
    let Some(account) = post.get_mut("account") else {
        return Ok(false);
    };
    match author_row::newest(tx, library, account.get())? {
        Some(newest) if newest != account.get() => {
            *account = RawValue::from_string(newest).map_err(ReplicaError::damaged)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn raw(object: &Members) -> Result<Box<RawValue>, ReplicaError> {
    serde_json::value::to_raw_value(object).map_err(ReplicaError::damaged)
}

/// A post as it is returned, with its place and the name of its source.
fn shown(
    tx: &mut Tx<'_>,
    status: &RawValue,
    (place, source): (String, String),
    origin: &str,
) -> Result<ReplicaPost, ReplicaError> {
    let post = RawObject::parse(status.get()).unwrap_or_default();
    let stated = StatedFacts::read(status.get(), origin);
    let boosted = post.object("reblog");
    let marked = match boosted.get("id") {
        Some(_) => &boosted,
        None => &post,
    };
    let note = mark(tx, ObjectKind::Note, marked)?;
    Ok(ReplicaPost {
        place,
        source,
        uri: post.some_text("uri").map(Cow::into_owned),
        url: post.some_text("url").map(Cow::into_owned),
        author: stated.author,
        created_at_ms: post.time_ms("created_at"),
        visibility: visibility(&post),
        text: stated.entries.join("\n\n"),
        bookmarked: mark(tx, ObjectKind::Bookmark, marked)?.is_some(),
        note: note.and_then(|note| Some(note["text"].as_str()?.to_owned())),
        status: status.to_owned(),
    })
}

/// The value of the bookmark of a post, or of the note on it.
fn mark(
    tx: &mut Tx<'_>,
    kind: ObjectKind,
    post: &RawObject<'_>,
) -> Result<Option<Value>, ReplicaError> {
    let uri = post.some_text("uri").unwrap_or_default();
    let key = ObjectKey::named(kind, &uri).or_else(|_| {
        let id = post.some_text("id").unwrap_or_default();
        ObjectKey::named(kind, &format!("id:{id}"))
    });
    match key {
        Ok(key) => Ok(object_row::get(tx, &key)?.and_then(|object| object.value)),
        Err(_) => Ok(None),
    }
}

/// The visibility of a post, if this version knows it.
pub(crate) fn visibility(post: &RawObject<'_>) -> Option<Visibility> {
    post.text("visibility")?.parse().ok()
}

/// The usual number of entries that are read at once.
const PAGE_SIZE: u32 = 200;
/// The number of authors that one predicate looks up by the words of their names. For words in more names all posts are read.
const MAX_NAMED: usize = 2_000;

#[cfg(test)]
mod tests;
