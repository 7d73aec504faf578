use driftline_core::names::acct::MIN_ACCOUNT_ID;
use driftline_db::DbError;
use driftline_id::Id;

use super::local_ids::MIN_LOCAL_ID;

/// Marks local IDs: those of posts, and of entries whose ID is not their post's.
#[derive(Debug)]
pub enum Local {}

/// Marks the IDs of sources.
#[derive(Debug)]
pub enum OfSource {}

/// Marks the IDs of accounts.
#[derive(Debug)]
pub enum OfAccount {}

/// Marks the IDs of local accounts.
#[derive(Debug)]
pub enum OfLocalAccount {}

/// Marks the IDs of credentials.
#[derive(Debug)]
pub enum OfCredential {}

/// Marks the IDs of instances.
#[derive(Debug)]
pub enum OfInstance {}

/// The ID of a post or an entry, in the Pulsate layout.
pub type LocalId = Id<Local>;

/// The ID of a source: a small number below every [`LocalId`]. [`crate::local_ids`] has the rule.
pub type SourceId = Id<OfSource>;

/// The ID of an account whose posts were seen, one for each `acct` on all instances. It is derived
/// from the name ([`driftline_core::names::acct`]), so it does not reveal when the account was first seen,
/// or in a post of restricted visibility. The ID of an account that posts only mention is random.
pub type AccountId = Id<OfAccount>;

/// The ID of an account of this server. It is a local ID, so it differs from the IDs of copied
/// accounts of instances.
pub type LocalAccountId = Id<OfLocalAccount>;

/// The ID of a local account among all accounts in relations.
pub fn account_id(local: LocalAccountId) -> AccountId {
    AccountId::new(local.raw())
}

/// The local account with this ID, if it may be one. IDs of copies are below every local ID (from
/// an earlier version that counted them) or above.
pub fn local_account_id(account: AccountId) -> Option<LocalAccountId> {
    let local = MIN_LOCAL_ID.unsigned_abs()..MIN_COPY_ID.unsigned_abs();
    local
        .contains(&account.raw())
        .then(|| LocalAccountId::new(account.raw()))
}

/// The smallest ID of a copied account. Local IDs reach it in 2056.
pub(crate) const MIN_COPY_ID: i64 = MIN_ACCOUNT_ID.cast_signed();

/// The ID of a credential.
pub type CredentialId = Id<OfCredential>;

/// The ID of an instance.
pub type InstanceId = Id<OfInstance>;

/// The key of a source's row and its descendants. All of them are stored with the source's
/// instance, which is part of every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceKey {
    /// The source.
    pub id: SourceId,
    /// The instance from which it is read. It never changes.
    pub instance: InstanceId,
}

impl SourceKey {
    pub(crate) fn id(self) -> i64 {
        sql(self.id)
    }

    pub(crate) fn instance_id(self) -> i64 {
        sql(self.instance)
    }
}

/// The key of a credential's row and its descendants, like a [`SourceKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialKey {
    /// The credential.
    pub id: CredentialId,
    /// The instance for which it is used.
    pub instance: InstanceId,
}

impl CredentialKey {
    pub(crate) fn id(self) -> i64 {
        sql(self.id)
    }

    pub(crate) fn instance_id(self) -> i64 {
        sql(self.instance)
    }
}

/// The integer for SQL. The store gives no ID above [`i64::MAX`], so a larger one, which only a
/// request can contain, acts like the largest.
pub(crate) fn sql<T>(id: Id<T>) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

pub(crate) fn from_sql<T>(raw: i64) -> Result<Id<T>, DbError> {
    Id::try_from(raw).map_err(|error| DbError::invalid(error.to_string()))
}
