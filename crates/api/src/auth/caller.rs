//! Whom a request is from, and what it may do.
//!
//! A route's extractor is its permission. [`LoggedIn`], [`MayRead`] and [`WithToken`] each take the scope that
//! the route needs as a type, so no route can forget to name it:
//!
//! | extractor | without a token | an app's own token | an account's token |
//! |---|---|---|---|
//! | `LoggedIn<S>` | 401 | 422 | 403 without the scope |
//! | `WithToken<S>` | 401 | 403 without the scope | 403 without the scope |
//! | `MayRead<S>` | as anonymous | 403 without the scope | 403 without the scope |
//! | `OperatorOrAccount<S>` | 401 | 422 | 403 without the scope |
//!
//! A token that is unknown, revoked or expired is 401 on each, and one of a frozen account 403.

use std::{
    marker::PhantomData,
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use driftline_core::social::{AccountAction, AccountState};
use driftline_store::{
    LocalAccountId, Root, StoreError, Tx,
    social::{
        TokenHolder,
        access_token::{self, AccessToken, AccessTokenId, USED_PRECISION_MS},
        app::AppId,
        local_account,
        token_family::{self, TokenFamilyId},
    },
    timeline::Viewer,
};

use super::{
    authorization::bearer,
    native_token::AuthToken,
    opaque_secret::{self, OpaqueSecret, SecretKind},
    request_context::RequestContext,
    scope::{RouteScope, ScopeSet},
};
use crate::{
    App,
    transport::{ApiError, ApiResult},
};

/// Whom a request is from, and what it may do.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) kind: CallerKind,
    pub(crate) scopes: ScopeSet,
}

/// Whom a request is from.
#[derive(Clone, Debug)]
pub(crate) enum CallerKind {
    /// Anyone.
    Anonymous,
    /// The operator, by their token.
    Operator,
    /// An app that acts for nobody.
    App(AppId),
    /// A person.
    Account {
        /// Whose account.
        account: Arc<CallerAccount>,
        /// By what.
        by: Credential,
    },
}

/// The account that a request is from.
pub(crate) type CallerAccount = TokenHolder;

/// What a person's request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    /// A token of an app.
    Token(AccessTokenId, AppId),
    /// A native token.
    Family(TokenFamilyId),
}

impl Caller {
    const ANONYMOUS: Self = Self {
        kind: CallerKind::Anonymous,
        scopes: ScopeSet::DEFAULT,
    };

    fn operator() -> Self {
        Self {
            kind: CallerKind::Operator,
            scopes: ScopeSet::all(),
        }
    }

    pub(crate) fn account(&self) -> Option<&Arc<CallerAccount>> {
        match &self.kind {
            CallerKind::Account { account, .. } => Some(account),
            _ => None,
        }
    }

    pub(crate) fn account_id(&self) -> Option<LocalAccountId> {
        self.account().map(|account| account.id)
    }

    /// What they see of stored posts in Mastodon's API. This is the one place that says so.
    pub(crate) fn viewer(&self) -> Viewer {
        match &self.kind {
            CallerKind::Account { account, .. } => Viewer::Account(account.id),
            CallerKind::Operator => Viewer::Operator,
            CallerKind::App(_) | CallerKind::Anonymous => Viewer::Anonymous,
        }
    }

    /// Whether the scope `S` is among theirs.
    pub(crate) fn check<S: RouteScope>(&self) -> Result<(), ApiError> {
        check::<S>(self.scopes)
    }

    #[cfg(test)]
    pub(super) fn of_account_for_tests(id: LocalAccountId) -> Self {
        Self {
            kind: CallerKind::Account {
                account: Arc::new(TokenHolder {
                    id,
                    name: driftline_core::social::AccountName::new("ann").unwrap(),
                    state: AccountState::Active,
                    awaits_approval: false,
                    role: driftline_core::social::Role::Member,
                }),
                by: Credential::Family(TokenFamilyId::new(1)),
            },
            scopes: ScopeSet::all(),
        }
    }
}

/// A request of a person, by a token with the scope `S`.
pub(crate) struct LoggedIn<S> {
    context: RequestContext,
    pub(crate) account: Arc<CallerAccount>,
    pub(crate) by: Credential,
    scopes: ScopeSet,
    _scope: PhantomData<S>,
}

impl<S> LoggedIn<S> {
    /// Reads what the account has in the store.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        mut read: impl FnMut(&mut Tx<'_>, LocalAccountId) -> Result<T, StoreError> + Send + 'static,
    ) -> ApiResult<T> {
        let account = self.account.id;
        self.context.read(move |tx| read(tx, account)).await
    }

    /// Reads what the account has in the store and what may take long, in the account's turn.
    pub(crate) async fn long_read<T: Send + 'static>(
        &self,
        mut read: impl FnMut(&mut Tx<'_>, LocalAccountId) -> Result<T, StoreError> + Send + 'static,
    ) -> ApiResult<T> {
        let account = self.account.id;
        self.context.long_read(move |tx| read(tx, account)).await
    }

    /// Writes to what the account has in the store.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        mut write: impl FnMut(&mut Tx<'_>, LocalAccountId) -> Result<T, StoreError> + Send + 'static,
    ) -> ApiResult<T> {
        let (account, root) = (self.account.id, local_account::root(self.account.id));
        let write = move |tx: &mut Tx<'_>| write(tx, account);
        Ok(self.app.store.write(root, write).await?)
    }

    /// Whether another scope is among the token's, which only some requests of a route need.
    pub(crate) fn check<Other: RouteScope>(&self) -> Result<(), ApiError> {
        check::<Other>(self.scopes)
    }
}

fn check<S: RouteScope>(scopes: ScopeSet) -> Result<(), ApiError> {
    match S::SCOPE {
        Some(scope) if !scopes.covers(scope) => Err(ApiError::OutsideScopes),
        _ => Ok(()),
    }
}

/// A request of anyone; if it has a token, one with the scope `S`.
pub(crate) struct MayRead<S>(RequestContext, PhantomData<S>);

/// A request of an app or a person, by a token with the scope `S`.
pub(crate) struct WithToken<S>(pub(crate) Caller, pub(crate) PhantomData<S>);

/// A request of the operator, or of a person by a token with the scope `S`.
pub(crate) struct OperatorOrAccount<S>(RequestContext, PhantomData<S>);

impl<S> Deref for LoggedIn<S> {
    type Target = RequestContext;

    fn deref(&self) -> &RequestContext {
        &self.context
    }
}

impl<S> Deref for MayRead<S> {
    type Target = RequestContext;

    fn deref(&self) -> &RequestContext {
        &self.0
    }
}

impl<S> Deref for OperatorOrAccount<S> {
    type Target = RequestContext;

    fn deref(&self) -> &RequestContext {
        &self.0
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        if let Some(known) = parts.extensions.get::<Caller>() {
            return Ok(known.clone());
        }
        let caller = authenticate(&parts.headers, app).await?;
        parts.extensions.insert(caller.clone());
        Ok(caller)
    }
}

impl<S: RouteScope> FromRequestParts<Arc<App>> for LoggedIn<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        match caller.kind {
            CallerKind::Account { ref account, by } => {
                caller.check::<S>()?;
                Ok(Self {
                    context: RequestContext::new(parts, app, caller.viewer()).await,
                    account: Arc::clone(account),
                    by,
                    scopes: caller.scopes,
                    _scope: PhantomData,
                })
            }
            _ if bearer(&parts.headers).is_none() => Err(ApiError::TokenNeeded),
            _ => Err(ApiError::AccountNeeded),
        }
    }
}

impl<S: RouteScope> FromRequestParts<Arc<App>> for MayRead<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        if !matches!(caller.kind, CallerKind::Anonymous) {
            caller.check::<S>()?;
        }
        let context = RequestContext::new(parts, app, caller.viewer()).await;
        Ok(Self(context, PhantomData))
    }
}

impl<S: RouteScope> FromRequestParts<Arc<App>> for WithToken<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        if bearer(&parts.headers).is_none() {
            return Err(ApiError::TokenNeeded);
        }
        caller.check::<S>()?;
        Ok(Self(caller, PhantomData))
    }
}

impl<S: RouteScope> FromRequestParts<Arc<App>> for OperatorOrAccount<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let viewer = match caller.kind {
            CallerKind::App(_) => return Err(ApiError::AccountNeeded),
            CallerKind::Operator => Viewer::Operator,
            CallerKind::Account { .. } => {
                caller.check::<S>()?;
                caller.viewer()
            }
            CallerKind::Anonymous => {
                app.authorization.check(&parts.headers)?;
                Viewer::Operator
            }
        };
        let context = RequestContext::new(parts, app, viewer).await;
        Ok(Self(context, PhantomData))
    }
}

/// Whom a request with these headers is from.
pub(crate) async fn authenticate(headers: &HeaderMap, app: &App) -> Result<Caller, ApiError> {
    let Some(presented) = bearer(headers) else {
        return Ok(Caller::ANONYMOUS);
    };
    if app.authorization.is_operators(presented) {
        return Ok(Caller::operator());
    }
    let unknown = ApiError::Unauthorized { presented: true };
    let Ok(text) = std::str::from_utf8(presented) else {
        return Err(unknown);
    };
    let people = &app.people;
    let (hash, now, now_ms) = (opaque_secret::hash(text), Instant::now(), people.now_ms());
    if let Some(known) = people.callers.find(&hash, now, now_ms) {
        return Ok(known);
    }
    let begin = people.callers.begin_read(now);
    let (caller, expires_at_ms) =
        if let Some(secret) = OpaqueSecret::parse(SecretKind::AccessToken, text) {
            (by_access_token(app, secret, now_ms).await?, i64::MAX)
        } else {
            let token = people.native.auth(text, now_ms).map_err(|_| unknown)?;
            let expires_at_ms = token.expires_at_ms;
            (by_native_token(app, token, now_ms).await?, expires_at_ms)
        };
    let caller = caller.ok_or(ApiError::Unauthorized { presented: true })?;
    people.callers.keep(hash, &caller, begin, expires_at_ms);
    Ok(caller)
}

/// True if a request with these headers is still of that viewer. A stream that its client has left open asks this every
/// [`TOKEN_CHECK`], since its token may have ended.
pub(crate) async fn is_still_of(viewer: Viewer, headers: &HeaderMap, app: &App) -> bool {
    let caller = authenticate(headers, app).await;
    caller.is_ok_and(|caller| caller.viewer() == viewer)
}

/// The longest time between two looks at the token of an open stream.
pub(crate) const TOKEN_CHECK: Duration = Duration::from_secs(5);

async fn by_access_token(
    app: &App,
    secret: OpaqueSecret,
    now_ms: i64,
) -> Result<Option<Caller>, ApiError> {
    let hash = secret.hash();
    let read = move |tx: &mut Tx<'_>| match secret.account {
        Some(account) => {
            let found = access_token::find_with_holder(tx, account, &hash)?;
            Ok::<_, StoreError>(found.map(|(token, holder)| (token, Some(holder))))
        }
        None => Ok(access_token::find(tx, None, &hash)?.map(|token| (token, None))),
    };
    let Some((token, holder)) = app.store.read(read).await? else {
        return Ok(None);
    };
    let scopes = ScopeSet::parse(&token.scopes).map_err(|_| {
        tracing::error!("a stored token has scopes that this version does not know");
        ApiError::Internal
    })?;
    let kind = match holder {
        None => CallerKind::App(token.app),
        Some(mut holder) => {
            if holder.state == AccountState::NotActivated && !holder.awaits_approval {
                holder.state = activate(app, holder.id).await?;
            }
            CallerKind::Account {
                account: allowed(holder)?,
                by: Credential::Token(token.id, token.app),
            }
        }
    };
    record_use(app, token, now_ms);
    Ok(Some(Caller { kind, scopes }))
}

async fn by_native_token(
    app: &App,
    token: AuthToken,
    now_ms: i64,
) -> Result<Option<Caller>, ApiError> {
    let (account, family) = (token.account, token.family);
    let read = move |tx: &mut Tx<'_>| token_family::find_with_holder(tx, account, family, now_ms);
    let found = app.store.read(read).await?;
    // A token of before the account was renamed is another account's name.
    let found = found.filter(|(_, holder)| holder.name.as_str() == token.account_name);
    let Some((family, holder)) = found else {
        return Ok(None);
    };
    Ok(Some(Caller {
        kind: CallerKind::Account {
            account: allowed(holder)?,
            by: Credential::Family(family.id),
        },
        scopes: ScopeSet::all(),
    }))
}

/// Activates an account that waits for nothing but its first log-in: an app that signed it up has its
/// token from then, and never logs in.
async fn activate(app: &App, account: LocalAccountId) -> Result<AccountState, ApiError> {
    let activate = move |tx: &mut Tx<'_>| {
        let known = local_account::by_id(tx, account)?.ok_or(StoreError::NoAccount)?;
        if known.state == AccountState::NotActivated && !known.awaits_approval {
            let changed = local_account::change_state(tx, account, AccountState::Active)?;
            return Ok(changed.map_or(known.state, |_| AccountState::Active));
        }
        Ok::<_, StoreError>(known.state)
    };
    let root = local_account::root(account);
    Ok(app.store.write(root, activate).await?)
}

/// The account, if its state lets it use tokens.
pub(crate) fn allowed(holder: TokenHolder) -> Result<Arc<CallerAccount>, ApiError> {
    match holder.state {
        state if state.allows(AccountAction::UseTokens) => Ok(Arc::new(holder)),
        AccountState::NotActivated => Err(ApiError::LogInDisabled(
            "Your login is currently pending approval",
        )),
        _ => Err(ApiError::LogInDisabled("Your login is currently disabled")),
    }
}

/// The request does not wait for it.
fn record_use(app: &App, token: AccessToken, now_ms: i64) {
    if token.used_at_ms > now_ms - USED_PRECISION_MS {
        return;
    }
    let store = app.store.clone();
    tokio::spawn(async move {
        let record = move |tx: &mut Tx<'_>| access_token::used(tx, &token, now_ms);
        if let Err(error) = store.write(Root::none(), record).await {
            tracing::debug!(%error, "the use of a token is not recorded");
        }
    });
}
