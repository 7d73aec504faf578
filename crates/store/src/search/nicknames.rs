//! The display names of authors, as the sources that a viewer may read have shown them.

use std::collections::HashMap;

use driftline_db::{Column, Tx};
use driftline_index::{Term, WordTerms};

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

/// The display names that may contain a word, with the IDs of their accounts, which are the same at every instance. `None`
/// if the word has no terms, or if there are more than [`MAX_NAMES`].
pub(super) fn names_with(
    tx: &mut Tx<'_>,
    word: &WordTerms,
    readable: &ReadableSources,
) -> Result<Option<Vec<(String, i64)>>, StoreError> {
    let [sources, instances, vouching] = columns(readable);
    let numbers = |terms: &[Term]| terms.iter().map(|term| i64::from(term.number())).collect();
    let (first, others): (Vec<i64>, Vec<i64>) = match word {
        WordTerms::Unknown => return Ok(None),
        WordTerms::AnyOf(any) => (numbers(any), Vec::new()),
        WordTerms::All(all) => {
            let mut all: Vec<i64> = numbers(all);
            let Some(rarest) = rarest(tx, &all, &sources, &instances)? else {
                return Ok(Some(Vec::new()));
            };
            all.retain(|number| *number != rarest);
            (vec![rarest], all)
        }
    };
    // Hits that stand for no shown name, or for one name several times, count for the limit, too: they
    // may have taken the places of names that are shown.
    let found = tx.query(
        &format!(
            "with hits as materialized (
                 select instance_id, source_id, account_id from nickname_term named
                 where source_id {{in $1}} and instance_id {{in $2}} and term {{in $4}}
                     and ($5 = 0 or $5 <= (
                         select count(*) from nickname_term other
                         where other.account_id = named.account_id and other.source_id = named.source_id
                             and other.instance_id = named.instance_id and other.term {{in $7}}))
                 limit $6
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
            &Column::i64(first),
            &(others.len() as i64),
            &(MAX_NAMES + 1),
            &Column::i64(others.iter().copied()),
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

/// The term that the fewest names have, as far as [`MAX_COUNTED`] tells; `None` if no name has one of them. Names
/// often share common terms, so a look-up begins with a rare one.
fn rarest(
    tx: &mut Tx<'_>,
    terms: &[i64],
    sources: &Column<'_>,
    instances: &Column<'_>,
) -> Result<Option<i64>, StoreError> {
    let mut counts = Vec::new();
    for term in terms.iter().take(MAX_COMPARED) {
        let count = tx.query_later(
            "select count(*) as names from (
                 select 1 from nickname_term
                 where source_id {in $1} and instance_id {in $2} and term = $3 limit $4
             ) as counted",
            &[sources, instances, term, &MAX_COUNTED],
            |row| row.i64("names"),
        )?;
        counts.push((count, *term));
    }
    let mut least: Option<(i64, i64)> = None;
    for (count, term) in counts {
        let count = tx.rows(count)?.pop().unwrap_or(0);
        if least.is_none_or(|(known, _)| count < known) {
            least = Some((count, term));
        }
    }
    Ok(least.filter(|(count, _)| *count > 0).map(|(_, term)| term))
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
/// The number of names up to which those with a term are counted.
const MAX_COUNTED: i64 = 1_000;
/// The number of a word's terms that are counted.
const MAX_COMPARED: usize = 8;
