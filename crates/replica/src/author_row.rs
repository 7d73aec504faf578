use std::collections::{HashMap, hash_map::Entry};

use driftline_db::{ToValue, Tx};
use driftline_mastodon::RawObject;

use crate::{ReplicaError, object_row::number};

/// The newest profiles of authors in an answer, whose objects are in the order of their changes.
#[derive(Clone, Debug)]
pub(crate) struct NewProfiles {
    /// False in a full sync, in which the last change comes first.
    is_ascending: bool,
    own: HashMap<String, String>,
    /// The profiles of boosted authors. A boost may have an old one.
    boosted: HashMap<String, String>,
}

impl NewProfiles {
    /// No profiles yet.
    pub(crate) fn new(is_ascending: bool) -> Self {
        Self {
            is_ascending,
            own: HashMap::new(),
            boosted: HashMap::new(),
        }
    }

    /// Adds the profiles in the value of the next object, JSON: those of the post's author, of the boosted post's author, and one
    /// that came without the post.
    pub(crate) fn add(&mut self, value: &str) {
        let value = RawObject::parse(value).unwrap_or_default();
        let status = value.object("status");
        add(
            &mut self.boosted,
            &status.object("reblog"),
            self.is_ascending,
        );
        add(&mut self.own, &status, self.is_ascending);
        add(&mut self.own, &value, self.is_ascending);
    }

    /// Stores the profiles, which a library showed in the full sync with this number or after it.
    pub(crate) fn store(
        self,
        tx: &mut Tx<'_>,
        library: &str,
        full_sync: u64,
    ) -> Result<(), ReplicaError> {
        let full_sync = number(full_sync)?;
        let own = self.own.into_iter().map(|of| (of, full_sync));
        let boosted = self.boosted.into_iter().map(|of| (of, 0));
        for ((acct, account), seen_in) in own.chain(boosted) {
            let name = display_name(&account);
            let parameters: [&dyn ToValue; 6] = [
                &acct,
                &library,
                &name,
                &account,
                &seen_in,
                &self.is_ascending,
            ];
            tx.execute(
                "insert into author (acct, library, display_name, account, seen_in)
                 values ($1, $2, $3, $4, $5)
                 on conflict (acct, library) do update set display_name = excluded.display_name,
                     account = excluded.account, seen_in = excluded.seen_in
                 where seen_in < excluded.seen_in or (seen_in = excluded.seen_in and $6)",
                &parameters,
            )?;
        }
        Ok(())
    }
}

/// Adds the profile of an object's member `account`.
fn add(profiles: &mut HashMap<String, String>, object: &RawObject<'_>, is_ascending: bool) {
    let Some(account) = object.get("account") else {
        return;
    };
    let Some(acct) = acct(&RawObject::from_value(account).unwrap_or_default()) else {
        return;
    };
    match profiles.entry(acct) {
        Entry::Occupied(_) if !is_ascending => {}
        entry => {
            entry.insert_entry(account.get().to_owned());
        }
    }
}

/// The display names of authors, read once each.
#[derive(Debug, Default)]
pub(crate) struct DisplayNames(HashMap<String, Vec<String>>);

impl DisplayNames {
    /// The display names of a post's author, in all libraries. There are none if the post does not name its author.
    pub(crate) fn get(
        &mut self,
        tx: &mut Tx<'_>,
        post: &RawObject<'_>,
    ) -> Result<&[String], ReplicaError> {
        let Some(acct) = acct(&post.object("account")) else {
            return Ok(&[]);
        };
        let names: &[String] = match self.0.entry(acct) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let names = tx.query(
                    "select distinct display_name from author where acct = $1 and display_name <> ''",
                    &[unknown.key()],
                    |row| row.text("display_name"),
                )?;
                unknown.insert(names)
            }
        };
        Ok(names)
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

/// The newest profile from a library of the account with this entity, JSON.
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

/// Removes the profiles that a library showed before the full sync with this number, and not since. Those that only boosts have
/// shown stay: nothing says when they came.
pub(crate) fn sweep(tx: &mut Tx<'_>, library: &str, full_sync: u64) -> Result<(), ReplicaError> {
    tx.execute(
        "delete from author where library = $1 and seen_in <> 0 and seen_in <> $2",
        &[&library, &number(full_sync)?],
    )?;
    Ok(())
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
