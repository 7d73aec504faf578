//! Accounts as sources have shown them.
//!
//! Servers may show one account differently to each token, so a source's rows are for its readers alone. A row is
//! written when the source shows other names than before.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

use driftline_core::{names::acct::AcctKey, post::Author};
use driftline_db::{Column, DbError, PendingRows, Tx};
use driftline_index::text_terms;

use super::account::StoredIds;
use crate::{id_types::SourceKey, text::without_nul};

/// The profiles of accounts that a source has shown, by upstream ID.
pub(crate) struct StoredProfiles(HashMap<String, Names>);

/// Profiles that were requested: for [`StoredProfiles::read`].
pub(crate) struct PendingProfiles(PendingRows<'static, (String, Names)>);

struct Names {
    acct: String,
    display_name: String,
    url: Option<String>,
    /// The time at which the source first showed these, in Unix ms.
    seen_at_ms: i64,
}

impl Names {
    fn are_of(&self, profile: &Profile<'_>) -> bool {
        self.are(&profile.acct, &profile.display_name, profile.url.as_deref())
    }

    fn are(&self, acct: &str, display_name: &str, url: Option<&str>) -> bool {
        self.acct == acct && self.display_name == display_name && self.url.as_deref() == url
    }
}

impl StoredProfiles {
    /// Requests the profiles that a source has shown of these authors, together with the next
    /// statement.
    pub(crate) fn ask<'a>(
        tx: &mut Tx<'_>,
        source: SourceKey,
        authors: impl IntoIterator<Item = &'a Author>,
    ) -> Result<PendingProfiles, DbError> {
        let ids = authors
            .into_iter()
            .map(|author| without_nul(author.id.as_str()));
        let ids: HashSet<Cow<'_, str>> = ids.filter(|id| !id.is_empty()).collect();
        let rows = tx.query_each_later(
            "select a.upstream_id, p.acct, p.display_name, p.url, p.seen_at_ms from account a
             join account_profile p on p.source_id = $2 and p.account_id = a.id and p.instance_id = $1
             where a.upstream_id = {row 1} and a.instance_id = $1",
            &[&source.instance_id(), &source.id()],
            &[Column::text(ids.iter().map(|id| &**id))],
            |row| {
                let names = Names {
                    acct: row.text("acct")?,
                    display_name: row.text("display_name")?,
                    url: row.opt_text("url")?,
                    seen_at_ms: row.i64("seen_at_ms")?,
                };
                Ok((row.text("upstream_id")?, names))
            },
        )?;
        Ok(PendingProfiles(rows))
    }

    /// Reads the requested profiles.
    pub(crate) fn read(tx: &mut Tx<'_>, pending: PendingProfiles) -> Result<Self, DbError> {
        Ok(Self(tx.rows(pending.0)?.into_iter().collect()))
    }

    /// True if the source has shown the author under other names than these, and not since an hour: a name that is a clock
    /// changes with each page.
    pub(crate) fn is_renamed(&self, author: &Author, now_ms: i64) -> bool {
        let names = self.0.get(&*without_nul(author.id.as_str()));
        let url = author.url.as_deref().map(without_nul);
        let (acct, name) = (without_nul(&author.acct), without_nul(&author.display_name));
        let is_other = |names: &Names| {
            // A time that is further ahead is of a clock that was set back, and would hold names up for as long.
            let is_new = now_ms.abs_diff(names.seen_at_ms) < MIN_TIME_OF_NAMES_MS;
            !is_new && !names.are(&acct, &name, url.as_deref())
        };
        !author.acct.is_empty() && names.is_some_and(is_other)
    }
}

/// An account as a source shows it.
struct Profile<'a> {
    account_id: i64,
    acct_id: i64,
    acct_key: Option<AcctKey>,
    acct: Cow<'a, str>,
    display_name: Cow<'a, str>,
    url: Option<Cow<'a, str>>,
    raw: Cow<'a, str>,
    /// The source's last USN if the source has shown the account before.
    change_usn: Option<i64>,
}

/// Stores new or changed profiles of authors that a source has shown. Their accounts must be
/// stored. `usn` is the source's last USN: replicas below it lack the changed profiles.
pub(crate) fn store<'a>(
    tx: &mut Tx<'_>,
    source: SourceKey,
    known: &StoredProfiles,
    accounts: &StoredIds,
    authors: impl IntoIterator<Item = &'a Author>,
    usn: i64,
    now_ms: i64,
) -> Result<(), DbError> {
    // All writes lock rows in the same order. If an answer shows an author twice, the last one
    // counts.
    let mut changed: BTreeMap<i64, Profile<'_>> = BTreeMap::new();
    for author in authors {
        let Some(stored) = accounts.of(author).filter(|_| !author.acct.is_empty()) else {
            continue;
        };
        let names = known.0.get(&*without_nul(author.id.as_str()));
        let profile = Profile {
            account_id: stored.id,
            acct_id: stored.acct_id,
            acct_key: AcctKey::new(&without_nul(&author.acct), &accounts.origin),
            acct: without_nul(&author.acct),
            display_name: without_nul(&author.display_name),
            url: author.url.as_deref().map(without_nul),
            raw: without_nul(&author.raw),
            change_usn: names.map(|_| usn),
        };
        match names {
            Some(names) if names.are_of(&profile) => changed.remove(&stored.id),
            _ => changed.insert(stored.id, profile),
        };
    }
    let rows = || changed.values();
    tx.execute_many_later(
        "insert into account_profile (source_id, instance_id, account_id, acct_id, acct_key, acct, display_name, url,
             raw, seen_at_ms, change_usn)
         select $1, $2, r.account_id, r.acct_id, r.acct_key, r.acct, r.display_name, r.url, r.raw, $3, r.change_usn
         from {rows as r(account_id, acct_id, acct_key, acct, display_name, url, raw, change_usn)} where true
         on conflict ({key source_id, account_id + instance_id}) do update
         set acct_id = excluded.acct_id, acct_key = excluded.acct_key, acct = excluded.acct,
             display_name = excluded.display_name, url = excluded.url, raw = excluded.raw,
             seen_at_ms = excluded.seen_at_ms,
             change_usn = coalesce(excluded.change_usn, account_profile.change_usn)",
        &[&source.id(), &source.instance_id(), &now_ms],
        &[
            Column::i64(rows().map(|row| row.account_id)),
            Column::i64(rows().map(|row| row.acct_id)),
            Column::text(rows().map(|row| row.acct_key.as_ref().map_or("", AcctKey::as_str))),
            Column::text(rows().map(|row| &*row.acct)),
            Column::text(rows().map(|row| &*row.display_name)),
            Column::text(rows().map(|row| row.url.as_deref())),
            Column::text(rows().map(|row| &*row.raw)),
            Column::i64(rows().map(|row| row.change_usn)),
        ],
    )?;
    store_terms(tx, source, &changed)
}

/// The USNs under which a source last showed other names of authors than before, by `account.acct_id`. Authors whose names
/// have not changed are missing.
pub(crate) fn change_usns(
    tx: &mut Tx<'_>,
    source: SourceKey,
    acct_ids: HashSet<i64>,
) -> Result<HashMap<i64, i64>, DbError> {
    if acct_ids.is_empty() {
        return Ok(HashMap::new());
    }
    // A server may give two accounts one name.
    let found = tx.query(
        "select acct_id, max(change_usn) as change_usn from account_profile
         where source_id = $1 and instance_id = $2 and acct_id {in $3} and change_usn is not null
         group by acct_id",
        &[&source.id(), &source.instance_id(), &Column::i64(acct_ids)],
        |row| Ok((row.i64("acct_id")?, row.i64("change_usn")?)),
    )?;
    Ok(found.into_iter().collect())
}

/// Removes the profiles that a source has shown, with the terms of their names: a name may have hundreds.
pub(crate) fn remove_all(tx: &mut Tx<'_>, source: SourceKey) -> Result<(), DbError> {
    let (id, instance_id) = (source.id(), source.instance_id());
    let mut after = i64::MIN;
    loop {
        let accounts = tx.query(
            "select account_id from account_profile
             where source_id = $1 and instance_id = $2 and account_id > $3
             order by account_id limit $4",
            &[&id, &instance_id, &after, &REMOVED_AT_ONCE],
            |row| row.i64("account_id"),
        )?;
        let Some(last) = accounts.last().copied() else {
            return Ok(());
        };
        tx.execute(
            "delete from nickname_term
             where account_id {in $3} and source_id = $1 and instance_id = $2",
            &[&id, &instance_id, &Column::i64(accounts)],
        )?;
        tx.execute(
            "delete from account_profile
             where source_id = $1 and instance_id = $2 and account_id > $3 and account_id <= $4",
            &[&id, &instance_id, &after, &last],
        )?;
        after = last;
    }
}

const REMOVED_AT_ONCE: i64 = 1_000;

/// Stores the terms by which searches find these authors by their display names.
fn store_terms(
    tx: &mut Tx<'_>,
    source: SourceKey,
    changed: &BTreeMap<i64, Profile<'_>>,
) -> Result<(), DbError> {
    if changed.is_empty() {
        return Ok(());
    }
    tx.execute_later(
        "delete from nickname_term
         where account_id {in $3} and source_id = $1 and instance_id = $2",
        &[
            &source.id(),
            &source.instance_id(),
            &Column::i64(changed.keys().copied()),
        ],
    )?;
    let terms = changed.iter().flat_map(|(account_id, profile)| {
        let beginning: String = profile.display_name.chars().take(INDEXED_CHARS).collect();
        let terms = text_terms(&beginning).into_iter();
        terms.map(|term| (*account_id, i64::from(term.number())))
    });
    let terms: Vec<(i64, i64)> = terms.collect();
    tx.execute_many_later(
        "insert into nickname_term (source_id, instance_id, account_id, term)
         select $1, $2, r.account_id, r.term from {rows as r(account_id, term)}",
        &[&source.id(), &source.instance_id()],
        &[
            Column::i64(terms.iter().map(|(account_id, _)| *account_id)),
            Column::i64(terms.iter().map(|(_, term)| *term)),
        ],
    )
}

/// The beginning of a display name by which searches find its account. A server may send names of any
/// length.
const INDEXED_CHARS: usize = 200;
/// The shortest time between two names of an author that are no new or edited post's.
const MIN_TIME_OF_NAMES_MS: u64 = 60 * 60 * 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_once_an_hour_whatever_the_clock() {
        const SEEN_MS: i64 = 1_700_000_000_000;
        const HOUR_MS: i64 = 3_600_000;
        let names = Names {
            acct: "eve".to_owned(),
            display_name: "11:59".to_owned(),
            url: None,
            seen_at_ms: SEEN_MS,
        };
        let known = StoredProfiles(HashMap::from([("7".to_owned(), names)]));
        let author = |display_name: &str| Author {
            id: "7".into(),
            acct: "eve".to_owned(),
            display_name: display_name.to_owned(),
            url: None,
            uri: None,
            raw: String::new(),
        };
        for (after_ms, expected) in [
            (0, false),
            (HOUR_MS - 1, false),
            (HOUR_MS, true),
            // The clock was set back.
            (-60_000, false),
            (-HOUR_MS, true),
            (i64::MIN, true),
        ] {
            let now_ms = SEEN_MS.saturating_add(after_ms);
            assert_eq!(known.is_renamed(&author("12:00"), now_ms), expected);
            assert!(!known.is_renamed(&author("11:59"), now_ms));
        }
    }
}
