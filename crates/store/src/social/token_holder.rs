//! The account of a token, read with the token itself, so that a freeze of the account takes effect
//! at once.

use driftline_core::social::{AccountName, AccountState, Role};
use driftline_db::Row;

use super::parsed;
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, from_sql},
};

/// The account for which a token, a family or a session acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHolder {
    /// Its ID.
    pub id: LocalAccountId,
    /// Its name.
    pub name: AccountName,
    /// Its state.
    pub state: AccountState,
    /// True if it waits for approval.
    pub awaits_approval: bool,
    /// Its role.
    pub role: Role,
}

/// The columns of an account joined as `h`.
pub(super) const COLUMNS: &str =
    "h.id as holder_id, h.name as holder_name, h.state as holder_state,
    h.awaits_approval as holder_awaits_approval, h.role as holder_role";

pub(super) fn from_row(row: &Row<'_>) -> Result<TokenHolder, StoreError> {
    let name = AccountName::new(row.str("holder_name")?);
    Ok(TokenHolder {
        id: from_sql(row.i64("holder_id")?)?,
        name: name.map_err(|error| StoreError::unreadable("an account's name", &error))?,
        state: parsed("an account's state", row.str("holder_state")?)?,
        awaits_approval: row.bool("holder_awaits_approval")?,
        role: parsed("an account's role", row.str("holder_role")?)?,
    })
}
