use std::collections::{HashMap, hash_map::Entry};

use driftline_db::Tx;
use driftline_mastodon::RawObject;

use crate::ReplicaError;

/// The profiles of authors that came in an answer: of each author the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewProfiles(HashMap<String, String>);

impl NewProfiles {
    /// Adds the profiles in an entry's value, JSON: those of the post's author, of the boosted post's author, and one that came
    /// without the post.
    pub(crate) fn add(&mut self, value: &str) {
        let value = RawObject::parse(value).unwrap_or_default();
        let status = value.object("status");
        for object in [status.object("reblog"), status, value] {
            let Some(account) = object.get("account") else {
                continue;
            };
            let parsed = RawObject::from_value(account).unwrap_or_default();
            if let Some(acct) = acct(&parsed) {
                self.0.insert(acct, account.get().to_owned());
            }
        }
    }

    /// Stores the profiles, which a library showed.
    pub(crate) fn store(self, tx: &mut Tx<'_>, library: &str) -> Result<(), ReplicaError> {
        for (acct, account) in self.0 {
            let name = display_name(&account);
            tx.execute(
                "insert into author (acct, library, display_name, account) values ($1, $2, $3, $4)
                 on conflict (acct, library) do update set display_name = excluded.display_name,
                     account = excluded.account
                 where account <> excluded.account",
                &[&acct, &library, &name, &account],
            )?;
        }
        Ok(())
    }
}

/// The display names of authors, read once each.
#[derive(Debug, Default)]
pub(crate) struct DisplayNames(HashMap<String, Vec<String>>);

impl DisplayNames {
    /// The display names of a post's author, in all libraries. There are none if the post does not name its author.
    pub(crate) fn of(
        &mut self,
        tx: &mut Tx<'_>,
        post: &RawObject<'_>,
    ) -> Result<&[String], ReplicaError> {
        let Some(acct) = acct(&post.object("account")) else {
            return Ok(&[]);
        };
        Ok(match self.0.entry(acct) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let names = tx.query(
                    "select distinct display_name from author where acct = $1 and display_name <> ''",
                    &[unknown.key()],
                    |row| row.text("display_name"),
                )?;
                unknown.insert(names)
            }
        })
    }
}

/// All authors with their display names, each name once.
pub(crate) fn display_names(tx: &mut Tx<'_>) -> Result<Vec<(String, String)>, ReplicaError> {
    Ok(tx.query(
        "select distinct acct, display_name from author where display_name <> ''",
        &[],
        |row| Ok((row.text("acct")?, row.text("display_name")?)),
    )?)
}

/// The profile that a library showed last of the account with this entity, JSON.
pub(crate) fn newest(
    tx: &mut Tx<'_>,
    library: &str,
    account: &str,
) -> Result<Option<String>, ReplicaError> {
    let Some(acct) = acct(&RawObject::parse(account).unwrap_or_default()) else {
        return Ok(None);
    };
    Ok(tx.query_opt(
        "select account from author where acct = $1 and library = $2",
        &[&acct, &library],
        |row| row.text("account"),
    )?)
}

/// Removes the profiles that a library showed.
pub(crate) fn remove_all(tx: &mut Tx<'_>, library: &str) -> Result<(), ReplicaError> {
    tx.execute("delete from author where library = $1", &[&library])?;
    Ok(())
}

/// The name of an account as the server shows it, in lower case.
fn acct(account: &RawObject<'_>) -> Option<String> {
    let acct = account.some_text("acct")?;
    let acct = acct.strip_prefix('@').unwrap_or(&acct);
    (!acct.is_empty()).then(|| acct.to_ascii_lowercase())
}

fn display_name(account: &str) -> String {
    let account = RawObject::parse(account).unwrap_or_default();
    let name = account.text("display_name").unwrap_or_default();
    name.into_owned()
}
