//! Actions towards accounts to whose copies the acting account may have earlier relations.
//!
//! An action replaces or ends such a relation, so that there is one relation to the account.

use driftline_core::social::{Relation, RelationMove, RelationRefused};
use driftline_db::Tx;

use super::{
    account_note::{self, AccountNoteRefused},
    list_member, mute, notification,
    relation::{self, ChangeRefused, FollowOptions, RelationRow},
};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId},
};

/// The IDs to which an account may have relations if it has them to one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelatedAccount {
    /// The ID under which the account is shown. Actions apply to it.
    pub canonical_id: AccountId,
    /// The ID of the account's copies on other servers.
    pub copy_id: Option<AccountId>,
}

/// An acting account and another one, at the time of an action.
#[derive(Clone, Copy, Debug)]
pub struct RelationContext {
    /// The acting account.
    pub account: LocalAccountId,
    /// The other account.
    pub other: RelatedAccount,
    /// The time of the action, in Unix ms.
    pub now_ms: i64,
}

impl RelationContext {
    /// Follows the account. A follow of its copy ends: its options and its places in lists pass to the
    /// new one. The action is refused if the acting account blocks the copy.
    ///
    /// # Errors
    /// The same as those of [`relation::follow`].
    pub fn follow(
        self,
        tx: &mut Tx<'_>,
        options: FollowOptions,
    ) -> Result<Result<RelationRow, ChangeRefused>, StoreError> {
        let (account, now_ms) = (self.account, self.now_ms);
        let canonical_id = self.other.canonical_id;
        let Some(copy_id) = self.other.copy_id else {
            return relation::follow(tx, account, canonical_id, options, now_ms);
        };
        let rows = relation::to(tx, account, &[canonical_id, copy_id])?;
        let row = |id: AccountId| {
            let mut related = rows.iter();
            related.find(|row| row.other == id && row.pair.outgoing != Relation::None)
        };
        let Some(earlier) = row(copy_id) else {
            return relation::follow(tx, account, canonical_id, options, now_ms);
        };
        if earlier.pair.outgoing == Relation::Blocking {
            return Ok(Err(RelationRefused::Blocking.into()));
        }
        let options = match row(canonical_id) {
            Some(_) => options,
            None => FollowOptions {
                show_boosts: options.show_boosts.or(Some(earlier.show_boosts)),
                notify: options.notify.or(Some(earlier.notified.is_some())),
            },
        };
        relation::prepare_several(tx)?;
        let lists = list_member::lists_with(tx, account, earlier.other)?;
        let followed = relation::follow(tx, account, canonical_id, options, now_ms)?;
        if followed.is_err() {
            return Ok(followed);
        }
        let ended = self.move_one(tx, earlier.other, RelationMove::Unfollow)?;
        for list in lists {
            // A list that already has the account refuses it, and all do until it accepts the follow.
            let _ = list_member::add(tx, account, list, &[canonical_id], now_ms)?;
        }
        Ok(ended.and(followed))
    }

    /// Performs an action towards the account.
    ///
    /// Unfollowing and unblocking apply to the copy, too, even if the account is the acting one. A block
    /// of the account replaces the relation to the copy.
    ///
    /// # Errors
    /// The same as those of [`relation::change`].
    pub fn change(
        self,
        tx: &mut Tx<'_>,
        action: RelationMove,
    ) -> Result<Result<RelationRow, ChangeRefused>, StoreError> {
        if self.other.copy_id.is_some() {
            relation::prepare_several(tx)?;
        }
        let changed = self.move_one(tx, self.other.canonical_id, action)?;
        let Some(copy) = self.other.copy_id else {
            return Ok(changed);
        };
        match action {
            RelationMove::Unfollow | RelationMove::Unblock => self.move_one(tx, copy, action),
            RelationMove::Block if changed.is_ok() => {
                // The block of the account hides the copy's posts, too.
                notification::forget_posts_by(tx, self.account, copy)?;
                for step in [RelationMove::Unfollow, RelationMove::Unblock] {
                    if let Err(refused) = self.move_one(tx, copy, step)? {
                        return Ok(Err(refused));
                    }
                }
                Ok(changed)
            }
            _ => Ok(changed),
        }
    }

    /// Mutes the account. A mute of its copy ends.
    ///
    /// # Errors
    /// The same as those of [`mute::set`].
    pub fn mute(
        self,
        tx: &mut Tx<'_>,
        notifications: bool,
        until_ms: Option<i64>,
    ) -> Result<Result<(), ChangeRefused>, StoreError> {
        let (account, now_ms) = (self.account, self.now_ms);
        let id = self.other.canonical_id;
        if self.other.copy_id.is_some() {
            relation::prepare_several(tx)?;
        }
        if !mute::set(tx, account, id, notifications, until_ms, now_ms)? {
            return Ok(Err(ChangeRefused::Oneself));
        }
        if let Some(copy) = self.other.copy_id {
            mute::remove(tx, account, copy)?;
        }
        Ok(Ok(()))
    }

    /// Sets the note on the account. A note on its copy ends.
    ///
    /// # Errors
    /// The same as those of [`account_note::set`].
    pub fn note(
        self,
        tx: &mut Tx<'_>,
        text: &str,
    ) -> Result<Result<(), AccountNoteRefused>, StoreError> {
        let (account, now_ms) = (self.account, self.now_ms);
        if self.other.copy_id.is_some() {
            relation::prepare_several(tx)?;
        }
        let set = account_note::set(tx, account, self.other.canonical_id, text, now_ms)?;
        if let (Ok(()), Some(copy)) = (set, self.other.copy_id) {
            account_note::remove(tx, account, copy)?;
        }
        Ok(set)
    }

    /// Changes the relation to one of the account's IDs.
    fn move_one(
        self,
        tx: &mut Tx<'_>,
        id: AccountId,
        action: RelationMove,
    ) -> Result<Result<RelationRow, ChangeRefused>, StoreError> {
        relation::change(tx, self.account, id, action, self.now_ms)
    }
}
