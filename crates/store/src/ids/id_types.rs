use driftline_core::acct::MIN_ACCOUNT_ID;
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

/// The ID of a source: a small number below every [`LocalId`], by the law in [`crate::local_ids`].
pub type SourceId = Id<OfSource>;

/// The ID of an account whose posts were seen, one for each `acct`, through whichever instances: it follows
/// from the name ([`driftline_core::acct`]), so that it does not tell when the account was first seen, be
/// it in a post that few may see. That of an account that posts only name is random.
pub type AccountId = Id<OfAccount>;

/// The ID of an account of this server: a local ID, and so not one of those that copies of accounts of
/// instances get.
pub type LocalAccountId = Id<OfLocalAccount>;

/// A local account among all accounts that relations name.
pub fn account_id(local: LocalAccountId) -> AccountId {
    AccountId::new(local.raw())
}

/// Which local account it is, if it may be one: copies have IDs below every local ID, where an earlier
/// version counted them, or above.
pub fn local_account_id(account: AccountId) -> Option<LocalAccountId> {
    let local = MIN_LOCAL_ID.unsigned_abs()..MIN_COPY_ID.unsigned_abs();
    local
        .contains(&account.raw())
        .then(|| LocalAccountId::new(account.raw()))
}

/// The smallest ID that a copy of an account gets. Local IDs reach it in 2056.
pub(crate) const MIN_COPY_ID: i64 = MIN_ACCOUNT_ID.cast_signed();

/// The ID of a credential.
pub type CredentialId = Id<OfCredential>;

/// The ID of an instance.
pub type InstanceId = Id<OfInstance>;

/// Names a source's row and what hangs below it: all of it lies with the source's instance, which is
/// part of every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceKey {
    /// The source.
    pub id: SourceId,
    /// The instance that it is read from, for good.
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

/// Names a credential's row and what hangs below it, as a [`SourceKey`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialKey {
    /// The credential.
    pub id: CredentialId,
    /// The instance that it is for.
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
/// reader can bring, bounds and finds what the largest does.
pub(crate) fn sql<T>(id: Id<T>) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

pub(crate) fn from_sql<T>(raw: i64) -> Result<Id<T>, DbError> {
    Id::try_from(raw).map_err(|error| DbError::invalid(error.to_string()))
}
