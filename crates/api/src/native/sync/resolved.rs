use driftline_core::sync::{ObjectKind, PushChange};
use driftline_store::{
    AccountId, LocalId, StoreError, Tx, Viewer, find, social::list_entry, sync::Resolved,
};

use crate::{
    mastodon::accounts::find::{named, related},
    transport::Address,
};

/// Finds the posts and accounts that the keys of changes name, as far as the viewer may see them.
pub(super) fn resolve(
    tx: &mut Tx<'_>,
    changes: &[PushChange],
    viewer: Viewer,
    address: &Address,
) -> Result<Resolved, StoreError> {
    let domain = address.domain();
    let mut resolved = Resolved::default();
    for change in changes {
        match change.key.kind() {
            // A relation to an account of this server ends only while both are locked.
            Some(
                ObjectKind::Follow | ObjectKind::Block | ObjectKind::Mute | ObjectKind::AccountNote,
            ) => {
                let acct = change.key.name();
                let Some(id) = account(tx, acct, domain)? else {
                    continue;
                };
                if let Some(other) = related(tx, id, viewer, address)? {
                    resolved.related.insert(acct.to_owned(), other);
                }
            }
            _ if change.value.is_none() => {}
            Some(ObjectKind::Bookmark | ObjectKind::Favourite) => {
                let name = change.key.name();
                let id = match name.strip_prefix(OWN_ID) {
                    Some(id) => id.parse().ok().map(LocalId::new),
                    None => find::shown_post(tx, name, viewer)?,
                };
                let Some(id) = id else { continue };
                if let Some(post) = list_entry::status(tx, id, viewer)? {
                    resolved.posts.insert(name.to_owned(), post.key());
                }
            }
            Some(ObjectKind::ListMember) => {
                let Some((_, acct)) = change.key.list_and_acct() else {
                    continue;
                };
                if let Some(id) = account(tx, acct, domain)? {
                    resolved.accounts.insert(acct.to_owned(), id);
                }
            }
            _ => {}
        }
    }
    Ok(resolved)
}

/// The account of an `acct` as keys have it.
fn account(tx: &mut Tx<'_>, acct: &str, domain: &str) -> Result<Option<AccountId>, StoreError> {
    match acct.split_once('@') {
        Some((name, LOCAL_HOST)) => named(tx, name, domain),
        Some((id, UNNAMED_HOST)) => Ok(id.parse().ok().map(AccountId::new)),
        _ => named(tx, acct, domain),
    }
}

/// The beginning of the name of a post without a URI.
const OWN_ID: &str = "id:";
/// The host of this server's accounts in keys.
const LOCAL_HOST: &str = "local";
/// The host of accounts in keys that have their IDs as names.
const UNNAMED_HOST: &str = "unnamed";
