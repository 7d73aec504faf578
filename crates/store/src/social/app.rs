//! Apps that users permit to act for them, as they registered themselves.

use driftline_db::{Row, ToValue, Tx};
use driftline_id::Id;

use super::SecretHash;
use crate::{
    error::StoreError,
    id_types::{from_sql, sql},
    local_ids,
    text::without_nul,
};

/// The ID of an app.
pub type AppId = Id<App>;

/// An app that registered itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Its ID.
    pub id: AppId,
    /// The name by which it requests tokens. It is random and public.
    pub client_id: String,
    /// The hash of its secret.
    pub secret_hash: SecretHash,
    /// Its display name.
    pub name: String,
    /// Its website.
    pub website: Option<String>,
    /// The addresses to which it may redirect users; at least one.
    pub redirect_uris: Vec<String>,
    /// The largest set of permissions that it may request: names of scopes, separated by spaces.
    pub scopes: String,
    /// The time of its registration, in Unix ms.
    pub created_at_ms: i64,
}

/// An app that registers itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApp {
    /// See [`App::client_id`].
    pub client_id: String,
    /// See [`App::secret_hash`].
    pub secret_hash: SecretHash,
    /// See [`App::name`].
    pub name: String,
    /// See [`App::website`].
    pub website: Option<String>,
    /// See [`App::redirect_uris`]. They contain no line ends.
    pub redirect_uris: Vec<String>,
    /// See [`App::scopes`].
    pub scopes: String,
}

/// Adds an app. Must be written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn add(tx: &mut Tx<'_>, new: &NewApp, now_ms: i64) -> Result<AppId, StoreError> {
    let id = local_ids::take(tx, now_ms, 1)?;
    let redirect_uris = new.redirect_uris.join("\n");
    let website = new.website.as_deref().map(without_nul);
    tx.execute(
        "insert into app (client_id, id, secret_hash, name, website, redirect_uris, scopes,
             created_at_ms)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        &[
            &new.client_id,
            &id,
            &new.secret_hash,
            &&*without_nul(&new.name),
            &website.as_deref(),
            &&*without_nul(&redirect_uris),
            &new.scopes,
            &now_ms,
        ],
    )?;
    Ok(from_sql(id)?)
}

/// The app with this client ID.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_client_id(tx: &mut Tx<'_>, client_id: &str) -> Result<Option<App>, StoreError> {
    select(tx, "client_id = $1", &without_nul(client_id).as_ref())
}

/// The app with this ID.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_id(tx: &mut Tx<'_>, id: AppId) -> Result<Option<App>, StoreError> {
    select(tx, "id = $1", &sql(id))
}

fn select(tx: &mut Tx<'_>, which: &str, key: &dyn ToValue) -> Result<Option<App>, StoreError> {
    let sql = format!(
        "select id, client_id, secret_hash, name, website, redirect_uris, scopes, created_at_ms
         from app where {which}"
    );
    let read = |row: &Row<'_>| {
        Ok(App {
            id: from_sql(row.i64("id")?)?,
            client_id: row.text("client_id")?,
            secret_hash: SecretHash::read(row, "secret_hash")?,
            name: row.text("name")?,
            website: row.opt_text("website")?,
            redirect_uris: row
                .str("redirect_uris")?
                .lines()
                .map(str::to_owned)
                .collect(),
            scopes: row.text("scopes")?,
            created_at_ms: row.i64("created_at_ms")?,
        })
    };
    Ok(tx.query_opt(&sql, &[key], read)?)
}
