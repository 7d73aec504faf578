//! Accounts of this server that other servers show, as authors or by naming them.
//!
//! Another server's copy of `ann@own.host` is linked to the account `ann`, where `own.host` is the
//! host of `public_url`. What the other server says about the account is not shown, and its posts
//! under that name are not posts of the account.

use std::collections::{HashMap, HashSet};

use driftline_core::{api::Api, names::acct::AcctKey, social::AccountName};
use driftline_mastodon::{AccountForm, Copier, RawObject, Template};
use driftline_store::{
    AccountId, LocalAccountId, StoreError, Tx, account, account_id, local_account_id,
    social::{
        copy_relations::RelatedAccount,
        local_account::{self, LocalAccount},
    },
    timeline::Viewer,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::account_entities::{AccountEntities, MISSING, known_accounts};
use crate::{
    auth::RequestContext,
    mastodon::answer,
    transport::{Address, ApiResult},
};

/// The accounts of this server that an answer shows because other servers do.
#[derive(Debug, Default)]
pub(crate) struct LinkedAccounts {
    entities: HashMap<String, Entities>,
    /// The IDs that are shown, by those of the copies.
    ids: HashMap<u64, u64>,
}

#[derive(Debug)]
struct Entities {
    whole: Box<RawValue>,
    mention: Box<RawValue>,
}

impl LinkedAccounts {
    /// The accounts with these names. A viewer who may not know of an account is shown its name
    /// alone, under the ID of the copy, as if there were no such account.
    pub(crate) fn load<'n>(
        tx: &mut Tx<'_>,
        names: impl Iterator<Item = &'n str>,
        viewer: Viewer,
        address: &Address,
    ) -> Result<Self, StoreError> {
        let names: HashSet<&str> = names.collect();
        let mut linked = Self::default();
        if names.is_empty() {
            return Ok(linked);
        }
        let valid = names.iter().filter_map(|name| AccountName::new(*name).ok());
        let valid: Vec<AccountName> = valid.filter(|_| viewer != Viewer::Anonymous).collect();
        let local = local_account::by_names(tx, &valid)?.into_iter();
        let local: HashMap<String, AccountId> = local
            .map(|account| (account.name.key(), account_id(account.id)))
            .collect();
        let ids: Vec<AccountId> = local.values().copied().collect();
        let known = AccountEntities::load(tx, &ids, viewer, address)?;
        for name in names {
            let Some(key) = own_key(name, address) else {
                continue;
            };
            let copy_id = key.account_id();
            let id = local.get(&name.to_ascii_lowercase()).copied();
            let whole = match id {
                Some(id) => known.get(id).map(ToOwned::to_owned),
                None => name_only(name, copy_id, &key, address),
            };
            let Some((whole, mention)) = whole.and_then(|whole| {
                let mention = mention(&whole)?;
                Some((whole, mention))
            }) else {
                continue;
            };
            linked
                .ids
                .insert(copy_id, id.map_or(copy_id, AccountId::raw));
            linked
                .entities
                .insert(name.to_owned(), Entities { whole, mention });
        }
        Ok(linked)
    }

    /// The JSON of an account, by its name.
    pub(crate) fn get(&self, form: AccountForm, name: &str) -> Option<&RawValue> {
        let entities = self.entities.get(name)?;
        Some(match form {
            AccountForm::Whole => &entities.whole,
            AccountForm::Mention => &entities.mention,
        })
    }

    /// The ID that is shown for an account with a local ID, which may be a copy's.
    pub(crate) fn shown_id(&self, id: u64) -> u64 {
        self.ids.get(&id).copied().unwrap_or(id)
    }
}

/// The IDs by which clients and relations may name one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountIds {
    /// The ID by which a client names the account, and finds it in an answer.
    pub(crate) requested_id: AccountId,
    /// The ID under which the account is shown. Actions apply to this ID.
    pub(crate) canonical_id: AccountId,
    /// The ID of the account's copies, if it is an account of this server that others can name.
    /// Relations from before `public_url` was set, or before there was such an account, have it.
    pub(crate) copy_id: Option<AccountId>,
}

impl AccountIds {
    /// The IDs of an account that a client names by one of them.
    ///
    /// # Errors
    /// [`ApiError`](crate::transport::ApiError) if the store fails.
    pub(crate) async fn find(context: &RequestContext, requested_id: AccountId) -> ApiResult<Self> {
        let found = Self::find_all(context, vec![requested_id]).await?.pop();
        Ok(found.unwrap_or_else(|| Self::sole(requested_id)))
    }

    /// [`AccountIds::load`] for the caller.
    ///
    /// # Errors
    /// [`ApiError`](crate::transport::ApiError) if the store fails.
    pub(crate) async fn find_all(
        context: &RequestContext,
        requested_ids: Vec<AccountId>,
    ) -> ApiResult<Vec<Self>> {
        let (viewer, address) = (context.viewer, context.address.clone());
        let read = context.read(move |tx| Self::load(tx, &requested_ids, viewer, &address));
        read.await
    }

    /// The IDs of the accounts that a client names by these, in the same order. A copy that the
    /// viewer may not know of is not resolved, so that the answer does not reveal whether it is stored.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub(crate) fn load(
        tx: &mut Tx<'_>,
        requested_ids: &[AccountId],
        viewer: Viewer,
        address: &Address,
    ) -> Result<Vec<Self>, StoreError> {
        let mut found: HashMap<AccountId, Self> = HashMap::new();
        if address.own_host().is_some() && viewer != Viewer::Anonymous {
            let local: Vec<LocalAccountId> = requested_ids
                .iter()
                .filter_map(|id| local_account_id(*id))
                .collect();
            let accounts = local_account::by_ids(tx, &local)?;
            let ids = |account: LocalAccount| Self {
                copy_id: copy_id(&account.name, address),
                ..Self::sole(account_id(account.id))
            };
            let accounts = accounts.into_iter().map(ids);
            found.extend(accounts.map(|ids| (ids.canonical_id, ids)));
            let copies = own_copies(tx, requested_ids, viewer, address)?;
            let copied = local_account::by_names(tx, &copies)?.into_iter().map(ids);
            found.extend(copied.filter_map(|ids| Some((ids.copy_id?, ids))));
        }
        let ids = requested_ids.iter().map(|id| Self {
            requested_id: *id,
            ..found.get(id).copied().unwrap_or_else(|| Self::sole(*id))
        });
        Ok(ids.collect())
    }

    /// The canonical ID and, if there is one, the copies'.
    pub(crate) fn all(self) -> impl Iterator<Item = AccountId> {
        [self.canonical_id].into_iter().chain(self.copy_id)
    }

    /// Both without the requested ID, as actions need them.
    pub(crate) fn related(self) -> RelatedAccount {
        RelatedAccount {
            canonical_id: self.canonical_id,
            copy_id: self.copy_id,
        }
    }

    fn sole(id: AccountId) -> Self {
        Self {
            requested_id: id,
            canonical_id: id,
            copy_id: None,
        }
    }
}

/// The names that copies among these accounts have at this server, as far as the viewer may know of
/// the copies.
fn own_copies(
    tx: &mut Tx<'_>,
    ids: &[AccountId],
    viewer: Viewer,
    address: &Address,
) -> Result<Vec<AccountName>, StoreError> {
    let others = ids.iter().filter(|id| local_account_id(**id).is_none());
    let others: Vec<AccountId> = others.copied().collect();
    let mut copies: HashMap<AccountId, AccountName> = HashMap::new();
    for (id, (_, acct)) in account::names(tx, &others)? {
        let name = acct.split('@').next().unwrap_or_default();
        let name = AccountName::new(name).ok();
        if let Some(name) = name.filter(|name| copy_id(name, address) == Some(id)) {
            copies.insert(id, name);
        }
    }
    if copies.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<AccountId> = copies.keys().copied().collect();
    let known = known_accounts(tx, &ids, viewer)?;
    copies.retain(|id, _| known.contains(id));
    Ok(copies.into_values().collect())
}

/// The ID of copies of an account of this server; `None` if other servers know no host of it.
pub(crate) fn copy_id(name: &AccountName, address: &Address) -> Option<AccountId> {
    let key = own_key(name.as_str(), address)?;
    Some(AccountId::new(key.account_id()))
}

/// True if an entity `Account` shows an account of this server, or what has the name of one.
pub(crate) fn is_own(account: &RawValue, address: &Address) -> bool {
    #[derive(Deserialize)]
    struct Name {
        acct: String,
    }
    let Ok(Name { acct }) = serde_json::from_str(account.get()) else {
        return false;
    };
    match acct.rsplit_once('@') {
        // Of all that have a name, only this server's own accounts have no host here.
        None => !acct.is_empty(),
        Some((_, host)) => address
            .own_host()
            .is_some_and(|own| own.eq_ignore_ascii_case(host)),
    }
}

fn own_key(name: &str, address: &Address) -> Option<AcctKey> {
    AcctKey::new(&format!("{name}@{}", address.own_host()?), "")
}

/// The entity `Account` of an account of which only the name is shown.
fn name_only(name: &str, id: u64, key: &AcctKey, address: &Address) -> Option<Box<RawValue>> {
    let (origin, picture) = (address.url(""), address.url(MISSING));
    let json = json!({
        "username": name, "acct": key.as_str(), "display_name": name,
        "url": address.url(&format!("/@{name}")), "avatar": picture, "header": picture,
    });
    let json = json.to_string();
    let copier = Copier {
        origin: &origin,
        api: Api::Mastodon,
        own_host: None,
    };
    let (mut template, mut body) = (Template::default(), Vec::new());
    copier.whole_account(&mut template, &RawObject::parse(&json).ok()?, id);
    template.fill(&mut body, |_, _| None, |_| None, |_, _| None);
    answer::raw(body)
}

/// The entity `Mention` of an account.
fn mention(account: &RawValue) -> Option<Box<RawValue>> {
    let account = RawObject::from_value(account)?;
    let member = |name| account.text(name);
    let mention = json!({
        "id": member("id")?, "username": member("username")?, "url": member("url")?,
        "acct": member("acct")?,
    });
    serde_json::value::to_raw_value(&mention).ok()
}
