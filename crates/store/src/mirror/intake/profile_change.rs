//! Authors whom a page shows under other names than before.
//!
//! An author's names are no content of a post, so replicas would learn of other ones only with the author's next post. The
//! entries that show the author take a USN, as they do for new counts: it is no edit. At most once an hour, and not by posts
//! that some readers are not shown: these posts would tell them of changes.

use std::collections::HashMap;

use driftline_core::post::Author;
use driftline_db::Tx;

use crate::{
    error::StoreError,
    mirror::{entry, machine::LockedSource},
    posts::{
        account,
        account_profile::{self, StoredProfiles},
        instance,
    },
};

/// Stores the changed profiles of authors, and notifies the source's library. `shown` are entries whose posts have not
/// changed and are for everybody who reads the source, the oldest first, with their authors as the page shows them. Of several profiles of an author the newest post's
/// counts. Locks the instance only if a profile has changed.
pub(crate) fn take_in(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    known: &StoredProfiles,
    shown: &[(i64, &Author)],
    now_ms: i64,
) -> Result<(), StoreError> {
    let newest = shown
        .iter()
        .map(|(_, author)| (author.id.as_str(), *author));
    let mut renamed: HashMap<&str, &Author> = newest.collect();
    renamed.retain(|_, author| known.is_renamed(author, now_ms));
    if renamed.is_empty() {
        return Ok(());
    }
    let is_of_renamed = |(_, author): &&(i64, &Author)| renamed.contains_key(author.id.as_str());
    let entries = shown.iter().filter(is_of_renamed);
    let entries: Vec<(i64, i64)> = entries
        .map(|(id, _)| (*id, source.library.next_usn()))
        .collect();
    let authors = || renamed.values().copied();
    instance::hold(tx, source.instance_id)?;
    let ids = authors().map(|author| &author.id);
    let accounts = account::KnownAccount::load(tx, source.instance_id, ids)?;
    let accounts = account::store(tx, source.instance_id, accounts, authors(), [])?;
    let usn = source.library.update_count;
    account_profile::store(tx, source.key, known, &accounts, authors(), usn, now_ms)?;
    entry::give_usns(tx, source.key, &entries)?;
    Ok(())
}
