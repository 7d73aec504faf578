//! The hosts of authors. They have no rows of their own, but are parts of the authors' names.

use std::collections::{BTreeSet, HashMap};

use driftline_db::Tx;

use super::{account, timeline};
use crate::{
    error::StoreError,
    id_types::AccountId,
    viewer::{ReadableSources, Viewer},
};

/// The hosts of the authors whom a viewer may know, in order, with their ports if the names have
/// them; at most [`MAX_HOSTS`]. Reads the names of all accounts that the viewer's sources have
/// shown.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn known_to(tx: &mut Tx<'_>, viewer: Viewer) -> Result<BTreeSet<String>, StoreError> {
    let mut known = BTreeSet::new();
    let mut after = String::new();
    let sources = ReadableSources::load(tx, viewer)?.keys();
    while known.len() < MAX_HOSTS {
        let page = account::beginning_with(tx, ("", &after), &sources, BATCH)?;
        let Some((last, _)) = page.last() else { break };
        after.clone_from(last);
        let with_host = page.iter().filter_map(|(key, id)| {
            let (_, host) = key.rsplit_once('@')?;
            Some((*id, host))
        });
        // One author of a host is enough.
        let hosts: HashMap<AccountId, &str> = with_host
            .filter(|(_, host)| !host.is_empty() && !known.contains(*host))
            .collect();
        let authors: Vec<AccountId> = hosts.keys().copied().collect();
        for author in timeline::known_authors(tx, &authors, viewer)? {
            known.extend(hosts.get(&author).map(|host| (*host).to_owned()));
        }
    }
    Ok(known)
}

/// The largest number of hosts that are looked for.
pub const MAX_HOSTS: usize = 10_000;
const BATCH: u32 = 1_000;
