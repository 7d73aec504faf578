//! The timelines of bookmarks and of favourites.

use std::collections::HashSet;

use driftline_core::social::Mark;
use driftline_db::Tx;

use super::marked_post::{self, MarkedPost};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId},
    posts::timeline::{self, Range, TimelinePost},
    viewer::Viewer,
};

/// A page of the posts that an account has marked and may see now, the latest mark first, each with
/// its mark's ID, which determines its position in pages. Posts that are gone or hidden are
/// replaced by others.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn page(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mark: Mark,
    range: &Range,
) -> Result<Vec<(LocalId, TimelinePost)>, StoreError> {
    let limit = usize::from(range.limit);
    let mut shown = Vec::with_capacity(limit);
    let mut once = HashSet::new();
    let mut rest = *range;
    rest.limit = rest.limit.max(MIN_READ);
    while shown.len() < limit {
        let mut marks = marked_post::page(tx, account, mark, &rest)?;
        let is_last = marks.len() < usize::from(rest.limit);
        let keys: Vec<_> = marks.iter().map(|mark| mark.key).collect();
        let mut posts = timeline::by_post_ids(tx, &keys, Viewer::Account(account))?;
        if range.min.is_some() {
            // The lowest comes first, because the page goes up from there.
            marks.reverse();
        }
        if let Some(last) = marks.last() {
            match range.min {
                Some(_) => rest.min = Some(last.id),
                None => rest.max = Some(last.id),
            }
        }
        for MarkedPost { id, key } in marks {
            // Copies of one post may have been marked before they were known to be copies.
            if let Some(post) = posts.remove(&key.post)
                && once.insert(post.id)
            {
                shown.push((id, post));
            }
        }
        if is_last {
            break;
        }
    }
    shown.truncate(limit);
    if range.min.is_some() {
        shown.reverse();
    }
    Ok(shown)
}

/// The smallest number of marks that are read at once, because some posts may be hidden.
const MIN_READ: u16 = 20;
