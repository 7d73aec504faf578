//! The credentials that may look up posts at an upstream.
//!
//! A post that only private sources have, or that its author hides from the world, is looked up
//! only with the credentials of the owners that have it. Claims decide that for the posts that they
//! take.

use std::collections::HashMap;

use driftline_core::{names::audience::Audience, post::Visibility};
use driftline_db::{Column, DbError, PendingRows, Tx};

use super::pending_lookup::PendingLookup;
use crate::{
    mirror::{
        machine::{IS_WITH_TOKEN, scope_from_row},
        source_kind::IS_LISTED,
    },
    posts::content_scope::ContentScope,
    quota::credential::Credential,
    viewer::Owner,
};

/// The credentials with which a post may be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupAccess {
    /// The owners whose tokens may be sent for it.
    owners: Vec<Owner>,
    is_shared: bool,
    /// The audience of its content. Narrower tokens may show more.
    audience: Audience,
    /// True if it may be looked up without a token.
    without_token: bool,
}

impl LookupAccess {
    /// Returns true if a credential may be used for the post.
    pub fn admits_credential(&self, credential: &Credential) -> bool {
        credential.audience >= self.audience
            && self.admits(credential.owner, credential.token.is_some())
    }

    /// Returns true if an owner may look up the post, with or without a token.
    pub fn admits(&self, owner: Owner, has_token: bool) -> bool {
        match has_token {
            true => self.owners.contains(&owner),
            false => self.without_token,
        }
    }

    /// True if the world may see it here and at the upstream. Then no account's quota is spent on
    /// it.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The access to a post of these holders. A post that came without a token, or was published,
    /// belongs to the world.
    fn of(holders: &[Holder], is_open: bool, in_public: bool, audience: Audience) -> Self {
        let is_worlds = audience == Audience::Public;
        let is_shared = is_open && in_public && is_worlds;
        let mut owners: Vec<Owner> = holders.iter().map(|holder| holder.owner).collect();
        if is_shared {
            owners.push(Owner::Operator);
        }
        owners.sort_unstable_by_key(|owner| owner.id());
        owners.dedup();
        let is_read_without = holders.iter().any(|holder| !holder.has_token);
        Self {
            owners,
            is_shared,
            audience,
            without_token: is_shared || is_open && (is_worlds || is_read_without),
        }
    }
}

/// The properties of a source that determine who may look up its posts.
#[derive(Clone, Copy, Debug)]
struct Holder {
    id: i64,
    owner: Owner,
    has_token: bool,
    scope: ContentScope,
}

/// The sources of an instance, requested together with the next query.
pub(crate) struct PendingHolders {
    instance_id: i64,
    holders: PendingRows<'static, Holder>,
}

impl PendingHolders {
    pub(crate) fn ask(tx: &mut Tx<'_>, instance_id: i64) -> Result<Self, DbError> {
        let holders = tx.query_later(
            &format!(
                "select id, token is not null as has_token, audience, owner_id, {IS_WITH_TOKEN} from source s
                 where instance_id = $1 and {IS_LISTED}"
            ),
            &[&instance_id],
            |row| {
                Ok(Holder {
                    id: row.i64("id")?,
                    owner: Owner::of(row.i64("owner_id")?)?,
                    has_token: row.bool("has_token")?,
                    scope: scope_from_row(row)?,
                })
            },
        )?;
        Ok(Self {
            instance_id,
            holders,
        })
    }

    /// Reads the sources, and their relation to these posts.
    pub(crate) fn of_posts(self, tx: &mut Tx<'_>, post_ids: &[i64]) -> Result<Holders, DbError> {
        let all = tx.rows(self.holders)?;
        let is_operators_alone = all.iter().all(|of| of.owner == Owner::Operator);
        let is_alike = all
            .windows(2)
            .all(|of| (of[0].has_token, of[0].scope) == (of[1].has_token, of[1].scope));
        let mut of_posts: HashMap<i64, Vec<Holder>> = HashMap::new();
        // If all sources are alike, it does not matter which of them have a post.
        let is_needed = !(post_ids.is_empty() || is_operators_alone && is_alike);
        if is_needed {
            let by_id: HashMap<i64, Holder> = all.iter().map(|of| (of.id, *of)).collect();
            let ids = Column::i64(post_ids.iter().copied());
            let entries = tx.query(
                "select post_id, source_id from entry
                 where instance_id = $1 and id {in $2} and id = post_id
                 union
                 select post_id, source_id from entry
                 where instance_id = $1 and post_id {in $2} and id <> post_id",
                &[&self.instance_id, &ids],
                |row| Ok((row.i64("post_id")?, row.i64("source_id")?)),
            )?;
            for (post_id, source_id) in entries {
                let holder = by_id.get(&source_id).copied();
                of_posts.entry(post_id).or_default().extend(holder);
            }
        }
        Ok(Holders {
            all,
            is_operators_alone,
            of_posts: is_needed.then_some(of_posts),
        })
    }
}

/// The sources of an instance, and the posts that they have.
pub(crate) struct Holders {
    all: Vec<Holder>,
    is_operators_alone: bool,
    /// `None` if it does not matter.
    of_posts: Option<HashMap<i64, Vec<Holder>>>,
}

impl Holders {
    /// The access to a stored post with this ID, which depends on its visibility at the upstream
    /// and here.
    pub(crate) fn access(
        &self,
        id: i64,
        is_open: bool,
        in_public: bool,
        scope: ContentScope,
    ) -> LookupAccess {
        let is_worlds = scope == ContentScope::WORLD;
        let audience = scope.audience();
        match &self.of_posts {
            None => self.operators(is_open, in_public, audience),
            Some(of_posts) => match of_posts.get(&id) {
                Some(holders) => {
                    let mut holders = holders.clone();
                    // Other owners' tokens may show other content.
                    holders.retain(|of| is_worlds || of.scope == scope);
                    LookupAccess::of(&holders, is_open, in_public, audience)
                }
                // Posts that the operator keeps without a source stay the operator's, unless they
                // may have been an account's.
                None if self.is_operators_alone => self.operators(is_open, in_public, audience),
                None => LookupAccess::of(&[], is_open, in_public, audience),
            },
        }
    }

    fn operators(&self, is_open: bool, in_public: bool, audience: Audience) -> LookupAccess {
        let is_read_without = self.all.iter().any(|of| !of.has_token) || self.all.is_empty();
        let kept = Holder {
            id: 0,
            owner: Owner::Operator,
            has_token: !is_read_without,
            scope: ContentScope::owner(Owner::Operator),
        };
        LookupAccess::of(&[kept], is_open, in_public, audience)
    }

    /// The access to a post that is known only by its ID: that of its requester.
    pub(crate) fn access_of_pending(&self, lookup: &PendingLookup) -> LookupAccess {
        let holder = self.all.iter().find(|of| of.id == lookup.source_id);
        LookupAccess::of(
            holder.map(std::slice::from_ref).unwrap_or_default(),
            true,
            false,
            holder.map_or(Audience::Private, |of| of.scope.audience()),
        )
    }
}

pub(crate) fn is_open(visibility: Visibility) -> bool {
    matches!(visibility, Visibility::Public | Visibility::Unlisted)
}
