//! The viewers of a store, and the owners of sources.

use std::{
    collections::{HashMap, HashSet},
    sync::OnceLock,
};

use driftline_core::{
    names::audience::{Audience, Reader},
    post::Visibility,
};
use driftline_db::{DbError, PendingRows, Tx};

use crate::{
    id_types::{InstanceId, LocalAccountId, SourceId, SourceKey, from_sql, sql},
    mirror::{
        machine::{IS_WITH_TOKEN, scope_from_row},
        source_kind::{IS_LISTED, IS_OF_THREADS},
    },
    posts::content_scope::ContentScope,
};

/// The viewer of a timeline or a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// Anyone, who sees the public posts of public sources.
    Anonymous,
    /// An account of this server, which also sees its own sources, and those for all accounts.
    Account(LocalAccountId),
    /// The operator, who has an account's rights, with the sources that belong to no account as its
    /// own.
    Operator,
}

/// The owner of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The operator.
    Operator,
    /// An account of this server.
    Account(LocalAccountId),
}

impl Owner {
    /// The ID in the store.
    pub(crate) fn id(self) -> i64 {
        match self {
            Owner::Operator => OPERATOR_ID,
            Owner::Account(id) => sql(id),
        }
    }

    pub(crate) fn of(id: i64) -> Result<Owner, DbError> {
        Ok(match id {
            OPERATOR_ID => Owner::Operator,
            id => Owner::Account(from_sql(id)?),
        })
    }
}

impl Viewer {
    /// The relation of this viewer to a source of `owner`.
    pub fn reader(self, owner: Owner) -> Reader {
        match (self, owner) {
            (Viewer::Anonymous, _) => Reader::World,
            (Viewer::Account(viewer), Owner::Account(owner)) if viewer == owner => Reader::Owner,
            (Viewer::Operator, Owner::Operator) => Reader::Owner,
            (Viewer::Account(_) | Viewer::Operator, _) => Reader::Member,
        }
    }

    /// The account of this server behind this viewer.
    pub fn account(self) -> Option<LocalAccountId> {
        match self {
            Viewer::Account(id) => Some(id),
            Viewer::Anonymous | Viewer::Operator => None,
        }
    }

    /// The owner behind this viewer; `None` for a viewer without an account.
    pub fn owner(self) -> Option<Owner> {
        match self {
            Viewer::Anonymous => None,
            Viewer::Account(id) => Some(Owner::Account(id)),
            Viewer::Operator => Some(Owner::Operator),
        }
    }
}

/// The sources that a viewer may read, each with the narrowest visibility that the viewer sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadableSources {
    viewer: Viewer,
    by_id: HashMap<SourceId, ReadableSource>,
}

/// Readable sources, requested but not read.
pub struct PendingReadableSources {
    viewer: Viewer,
    rows: PendingRows<'static, Option<ReadableSource>>,
}

/// The sources that a viewer may read, for the whole of one transaction. They are read with the first use.
#[derive(Debug)]
pub struct LazyReadableSources {
    viewer: Viewer,
    known: OnceLock<ReadableSources>,
}

/// A source that a viewer may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadableSource {
    /// The source.
    pub key: SourceKey,
    /// The relation of the viewer to it.
    pub(crate) reader: Reader,
    /// The narrowest visibility of its posts that the viewer sees.
    pub shows: Visibility,
    /// True if the world may read it.
    pub is_public: bool,
    /// Its owner, from the view of the viewer.
    pub is_of: SourceOwner,
    /// True if it is one of [`crate::thread_source`], which are not part of timelines.
    pub is_of_threads: bool,
    /// The people to whom its upstream's answers are shown.
    pub(crate) scope: ContentScope,
}

/// The owner of a source, from the view of a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceOwner {
    /// The operator.
    Operator,
    /// The viewing account.
    Viewer,
    /// Another account.
    Account,
}

impl ReadableSource {
    /// True if the viewer sees all its posts.
    pub(crate) fn shows_all(&self) -> bool {
        self.shows == Visibility::Direct
    }

    /// True if the world may read a post in it. Posts in a source that an account has published are
    /// excluded if their server only claims to know them
    /// ([`driftline_core::post::Post::is_claimed`]).
    pub(crate) fn shows_world(&self, is_claimed: bool) -> bool {
        self.is_public && (self.is_of == SourceOwner::Operator || !is_claimed)
    }

    /// True if the viewer may read a post of this narrowness in it.
    pub(crate) fn shows_post(&self, narrowness: i64, is_claimed: bool) -> bool {
        narrowness <= self.shows.narrowness() && !(is_claimed && self.is_published())
    }

    /// True if another account has published it. Its server is then trusted only about its own
    /// posts and authors.
    pub fn is_published(&self) -> bool {
        self.is_public && self.is_of == SourceOwner::Account
    }

    /// True if the viewer may read posts in it that the world may not read, and timelines show
    /// them.
    pub(crate) fn is_hidden(&self) -> bool {
        let is_worlds = self.is_public && self.is_of != SourceOwner::Viewer;
        !is_worlds && !self.is_of_threads
    }
}

impl ReadableSources {
    /// Reads the sources. A viewer without an account sees all public ones.
    ///
    /// # Errors
    /// [`DbError`] if the database fails.
    pub fn load(tx: &mut Tx<'_>, viewer: Viewer) -> Result<ReadableSources, DbError> {
        ReadableSources::ask(tx, viewer)?.read(tx)
    }

    /// [`ReadableSources::load`], requested together with the next query.
    ///
    /// # Errors
    /// [`DbError`] if the database fails.
    pub fn ask(tx: &mut Tx<'_>, viewer: Viewer) -> Result<PendingReadableSources, DbError> {
        let owner_id = viewer.owner().map(Owner::id);
        let rows = tx.query_later(
            &format!(
                "select id, instance_id, owner_id, audience, {IS_OF_THREADS} as is_of_threads, {IS_WITH_TOKEN}
                 from source s where audience = 'public' or owner_id = $1 or audience = 'members' and $2"
            ),
            &[&owner_id, &owner_id.is_some()],
            move |row| {
                let audience = Audience::named_or_narrowest(row.str("audience")?);
                let owner = Owner::of(row.i64("owner_id")?)?;
                let reader = viewer.reader(owner);
                let key = SourceKey {
                    id: from_sql(row.i64("id")?)?,
                    instance: from_sql(row.i64("instance_id")?)?,
                };
                let is_of_threads = row.bool("is_of_threads")?;
                let scope = scope_from_row(row)?;
                Ok(audience.shows(reader).map(|shows| ReadableSource {
                    key,
                    reader,
                    shows,
                    is_public: audience == Audience::Public,
                    is_of: match (owner, reader) {
                        (Owner::Operator, _) => SourceOwner::Operator,
                        (Owner::Account(_), Reader::Owner) => SourceOwner::Viewer,
                        (Owner::Account(_), _) => SourceOwner::Account,
                    },
                    is_of_threads,
                    scope,
                }))
            },
        )?;
        Ok(PendingReadableSources { viewer, rows })
    }

    /// The viewer.
    pub fn viewer(&self) -> Viewer {
        self.viewer
    }

    /// The source with this ID, if the viewer may read it.
    pub fn of(&self, id: SourceId) -> Option<ReadableSource> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn of_raw(&self, id: i64) -> Option<ReadableSource> {
        self.of(from_sql(id).ok()?)
    }

    /// All sources, by their IDs.
    pub fn all(&self) -> Vec<ReadableSource> {
        let mut all: Vec<_> = self.by_id.values().copied().collect();
        all.sort_by_key(|source| source.key.id);
        all
    }

    /// The keys of all sources, by their IDs.
    pub fn keys(&self) -> Vec<SourceKey> {
        self.all().iter().map(|source| source.key).collect()
    }

    /// The instances of all sources.
    pub(crate) fn instances(&self) -> HashSet<i64> {
        let instances = self.by_id.values().map(|source| source.key.instance_id());
        instances.collect()
    }

    /// The sources with posts that the viewer may read and the world may not, by their IDs.
    pub(crate) fn hidden(&self) -> Vec<ReadableSource> {
        let mut all = self.all();
        all.retain(ReadableSource::is_hidden);
        all
    }

    /// The sources that are part of timelines, by their IDs.
    pub fn of_timelines(&self) -> Vec<ReadableSource> {
        let mut all = self.all();
        all.retain(|source| !source.is_of_threads);
        all
    }
}

impl LazyReadableSources {
    /// The sources of a viewer, which are not read yet.
    pub fn new(viewer: Viewer) -> LazyReadableSources {
        LazyReadableSources {
            viewer,
            known: OnceLock::new(),
        }
    }

    /// The viewer.
    pub fn viewer(&self) -> Viewer {
        self.viewer
    }

    /// The sources. The first call reads them.
    ///
    /// # Errors
    /// [`DbError`] if the database fails.
    pub fn get(&self, tx: &mut Tx<'_>) -> Result<&ReadableSources, DbError> {
        self.read(tx, None)
    }

    /// Requests the sources together with the next query, unless they are known.
    ///
    /// # Errors
    /// [`DbError`] if the database fails.
    pub fn ask(&self, tx: &mut Tx<'_>) -> Result<Option<PendingReadableSources>, DbError> {
        match self.known.get() {
            Some(_) => Ok(None),
            None => ReadableSources::ask(tx, self.viewer).map(Some),
        }
    }

    /// The sources, which [`LazyReadableSources::ask`] may have requested.
    ///
    /// # Errors
    /// [`DbError`] if the database fails.
    pub fn read(
        &self,
        tx: &mut Tx<'_>,
        asked: Option<PendingReadableSources>,
    ) -> Result<&ReadableSources, DbError> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let found = match asked {
            Some(asked) => asked.read(tx)?,
            None => ReadableSources::load(tx, self.viewer)?,
        };
        Ok(self.known.get_or_init(|| found))
    }
}

impl PendingReadableSources {
    /// Reads the requested sources.
    ///
    /// # Errors
    /// [`DbError`] if the database fails.
    pub fn read(self, tx: &mut Tx<'_>) -> Result<ReadableSources, DbError> {
        let found = tx.rows(self.rows)?.into_iter().flatten();
        Ok(ReadableSources {
            viewer: self.viewer,
            by_id: found.map(|source| (source.key.id, source)).collect(),
        })
    }
}

/// The owners of an instance's sources, each with true if all its reading there uses tokens.
///
/// # Errors
/// [`DbError`] if the database fails.
pub fn owners(tx: &mut Tx<'_>, instance: InstanceId) -> Result<Vec<(Owner, bool)>, DbError> {
    let found = tx.query(
        &format!(
            "select owner_id, min(case when token is null then 0 else 1 end) as has_tokens
             from source where instance_id = $1 and {IS_LISTED} group by owner_id order by owner_id"
        ),
        &[&sql(instance)],
        |row| Ok((Owner::of(row.i64("owner_id")?)?, row.i64("has_tokens")? > 0)),
    )?;
    Ok(found)
}

/// No account has this ID.
const OPERATOR_ID: i64 = 0;
