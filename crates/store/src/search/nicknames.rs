//! The display names of authors, as the sources that a viewer may read have shown them.

use std::collections::HashMap;

use driftline_db::{Column, Tx};
use driftline_index::Term;

use crate::{
    error::StoreError,
    id_types::{AccountId, from_sql, sql},
    viewer::{ReadableSource, ReadableSources},
};

/// The display names of these accounts. An account may have several, one from each source.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn nicknames(
    tx: &mut Tx<'_>,
    accounts: &[AccountId],
    readable: &ReadableSources,
) -> Result<HashMap<AccountId, Vec<String>>, StoreError> {
    let mut all: HashMap<AccountId, Vec<String>> = HashMap::new();
    if accounts.is_empty() {
        return Ok(all);
    }
    let [sources, instances, vouching] = columns(readable);
    let found = tx.query(
        &format!(
            "select distinct acct_id, display_name from account_profile
             where acct_id {{in $4}} and source_id {{in $1}} and instance_id {{in $2}}
                 and (source_id {{in $3}} or {IS_OF_SOURCE})"
        ),
        &[
            &sources,
            &instances,
            &vouching,
            &Column::i64(accounts.iter().map(|id| sql(*id))),
        ],
        |row| Ok((from_sql(row.i64("acct_id")?)?, row.text("display_name")?)),
    )?;
    for (account, name) in found {
        all.entry(account).or_default().push(name);
    }
    Ok(all)
}

/// The display names that contain at least `least` of these terms, with the IDs of their accounts,
/// which are the same at every instance. `None` if there are more than [`MAX_NAMES`].
pub(super) fn names_with(
    tx: &mut Tx<'_>,
    terms: &[Term],
    least: usize,
    readable: &ReadableSources,
) -> Result<Option<Vec<(String, i64)>>, StoreError> {
    let [sources, instances, vouching] = columns(readable);
    let numbers = Column::i64(terms.iter().map(|term| i64::from(term.number())));
    // One term of several is found without reading all names that have one.
    let grouped = match least {
        1 => "",
        _ => "group by instance_id, source_id, account_id having count(*) >= $5",
    };
    // Hits that stand for no shown name, or for one name several times, count for the limit, too: they
    // may have taken the places of names that are shown.
    let found = tx.query(
        &format!(
            "with hits as materialized (
                 select instance_id, source_id, account_id from nickname_term
                 where source_id {{in $1}} and instance_id {{in $2}} and term {{in $4}} and $5 > 0
                 {grouped} limit $6
             ), profiles as materialized (
                 select display_name, acct_id, (source_id {{in $3}} or {IS_OF_SOURCE}) as is_shown
                 from account_profile
                 where instance_id {{in $2}} and (instance_id, source_id, account_id) in (
                     select instance_id, source_id, account_id from hits)
             )
             select display_name, acct_id, is_shown, hit_count
             from (select count(*) as hit_count from hits) as counted left join profiles on true"
        ),
        &[
            &sources,
            &instances,
            &vouching,
            &numbers,
            &(least as i64),
            &(MAX_NAMES + 1),
        ],
        |row| {
            let name = match row.opt_bool("is_shown")? {
                Some(true) => Some((row.text("display_name")?, row.i64("acct_id")?)),
                // The profile is not shown, or no hit has one.
                Some(false) | None => None,
            };
            Ok((row.i64("hit_count")?, name))
        },
    )?;
    let is_whole = found.iter().all(|(hits, _)| *hits <= MAX_NAMES);
    Ok(is_whole.then(|| found.into_iter().filter_map(|(_, name)| name).collect()))
}

/// The sources that a viewer may read, their instances, and those that are trusted about accounts of
/// other servers.
fn columns(readable: &ReadableSources) -> [Column<'static>; 3] {
    let sources = readable.all();
    let vouching = sources
        .iter()
        .filter(|source: &&ReadableSource| !source.is_published());
    [
        Column::i64(sources.iter().map(|source| sql(source.key.id))),
        Column::i64(sources.iter().map(|source| source.key.instance_id())),
        Column::i64(vouching.map(|source| sql(source.key.id))),
    ]
}

/// True for a profile of an account of its source's own server.
const IS_OF_SOURCE: &str = "acct not like '%@%'";

/// The number of hits that a search reads for a word. With more, the word is not looked up in names.
const MAX_NAMES: i64 = 10_000;
