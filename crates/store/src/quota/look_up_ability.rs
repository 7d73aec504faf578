//! The ability of look-ups with a credential to find live posts, by kind of post.

use driftline_core::{clock::MAX_SKEW_MS, post::PostKind};
use driftline_db::{DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{CredentialKey, InstanceId, from_sql, sql},
};

/// The ability of look-ups with a credential for one kind of posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUpAbility {
    /// The credential.
    pub credential: CredentialKey,
    /// The kind.
    pub kind: PostKind,
    /// True if they find live posts of the kind. False if they answered 404 for posts that a page
    /// had just shown.
    pub finds: bool,
    /// The time of the last observation, in Unix ms.
    pub at_ms: i64,
}

/// The known abilities of look-ups with a credential, by kind.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn of_credential(
    tx: &mut Tx<'_>,
    credential: CredentialKey,
) -> Result<Vec<LookUpAbility>, StoreError> {
    Ok(tx.query(
        "select credential_id, instance_id, kind, finds, at_ms from look_up_ability
         where credential_id = $1 and instance_id = $2 order by kind",
        &[&credential.id(), &credential.instance_id()],
        from_row,
    )?)
}

/// The known abilities of look-ups with the credentials of an instance, by credential and kind.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn of_instance(
    tx: &mut Tx<'_>,
    instance: InstanceId,
) -> Result<Vec<LookUpAbility>, StoreError> {
    Ok(tx.query(
        "select credential_id, instance_id, kind, finds, at_ms from look_up_ability
         where instance_id = $1 order by credential_id, kind",
        &[&sql(instance)],
        from_row,
    )?)
}

/// Stores the observation of a look-up, unless a later one is known.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn learn(tx: &mut Tx<'_>, ability: &LookUpAbility) -> Result<(), StoreError> {
    let ahead_ms = ability.at_ms.saturating_add(MAX_SKEW_MS);
    tx.execute(
        "insert into look_up_ability (credential_id, kind, finds, at_ms, instance_id)
         values ($1, $2, $3, $4, $5)
         on conflict ({key credential_id, kind + instance_id}) do update
         set finds = excluded.finds, at_ms = excluded.at_ms
         where look_up_ability.at_ms <= excluded.at_ms or look_up_ability.at_ms > $6",
        &[
            &ability.credential.id(),
            &ability.kind.name(),
            &ability.finds,
            &ability.at_ms,
            &ability.credential.instance_id(),
            &ahead_ms,
        ],
    )?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> Result<LookUpAbility, DbError> {
    let kind = row.str("kind")?.parse();
    Ok(LookUpAbility {
        credential: CredentialKey {
            id: from_sql(row.i64("credential_id")?)?,
            instance: from_sql(row.i64("instance_id")?)?,
        },
        kind: kind.map_err(|_| DbError::invalid("look-ups of an unknown kind of posts"))?,
        finds: row.bool("finds")?,
        at_ms: row.i64("at_ms")?,
    })
}
