use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{
        HeaderMap, HeaderValue,
        header::{SET_COOKIE, USER_AGENT},
        request::Parts,
    },
    response::{IntoResponse, Response},
};
use driftline_store::{
    LocalAccountId, Root, StoreError, Tx,
    social::{
        TokenHolder,
        web_session::{self, WebSession},
    },
};
use maud::{Markup, html};
use secrecy::ExposeSecret as _;

use super::{cookies::Cookie, form_token, language::Language, layout::Page, texts::Texts};
use crate::{
    App,
    auth::{
        DEVICE_LIFETIME_MS, KnownDevice,
        opaque_secret::{OpaqueSecret, SecretKind, random_text},
    },
    transport::{ApiError, ApiResult},
};

/// A browser: its cookies, and who is logged in with it.
pub(crate) struct Browser {
    pub(crate) app: Arc<App>,
    pub(crate) language: Language,
    form: String,
    is_new: bool,
    session_text: Option<String>,
    /// Who is logged in, whatever their state.
    pub(crate) logged_in: Option<(WebSession, TokenHolder)>,
    /// The account that has logged in with it last, also if it has logged out.
    pub(super) device: Option<KnownDevice>,
    user_agent: String,
}

impl Browser {
    /// The texts of the browser's language.
    pub(crate) fn texts(&self) -> &'static Texts {
        self.language.texts()
    }

    /// Whether the form came from a page that this browser was given.
    pub(crate) fn sent(&self, form_token: &str) -> bool {
        !self.is_new && form_token::is(&self.form_token(), form_token)
    }

    /// The form's hidden token.
    pub(crate) fn hidden_token(&self) -> Markup {
        html! { input type="hidden" name="form_token" value=(self.form_token()); }
    }

    fn form_token(&self) -> String {
        form_token::of_cookies(&self.form, self.session_text.as_deref())
    }

    /// The answer with the cookie that its forms need.
    pub(crate) fn answer(&self, answer: impl IntoResponse) -> Response {
        let cookie = self
            .is_new
            .then(|| Cookie::Form.set(&self.app, Some(&self.form), FORM_LIFETIME_MS));
        with_cookie(answer, cookie.flatten())
    }

    /// Begins a session of an account under a secret that is made for it, in place of the one before, if
    /// there was one; returns the secret.
    pub(super) fn begin_session(
        &self,
    ) -> impl FnMut(
        &mut Tx<'_>,
        LocalAccountId,
    ) -> Result<Result<OpaqueSecret, ApiError>, StoreError>
    + Send
    + 'static {
        let (browser, before) = (self.user_agent.clone(), self.session());
        let now_ms = self.app.people.now_ms();
        move |tx, account| {
            let made = OpaqueSecret::generate(SecretKind::WebSession, Some(account));
            let secret = match made {
                Ok(secret) => secret,
                Err(error) => return Ok(Err(error)),
            };
            if let Some((account, session)) = before {
                web_session::end(tx, account, session)?;
            }
            web_session::begin(tx, account, &secret.hash(), &browser, now_ms)?;
            Ok(Ok(secret))
        }
    }

    /// The answer with the cookies of an account's session, and of its device.
    pub(super) fn with_session(
        &self,
        account: LocalAccountId,
        secret: &OpaqueSecret,
        answer: impl IntoResponse,
    ) -> Result<Response, ApiError> {
        let known = self.device.clone();
        let device = match known.filter(|device| device.account == account) {
            Some(known) => known,
            None => KnownDevice {
                account,
                id: random_text()?,
            },
        };
        let people = &self.app.people;
        let device = people.native.sign_device(&device, people.now_ms()).ok();
        let device = device.and_then(|token| {
            Cookie::Device.set(&self.app, Some(token.expose_secret()), DEVICE_LIFETIME_MS)
        });
        let value = Some(secret.expose());
        let session = Cookie::Session.set(&self.app, value, web_session::LIFETIME_MS);
        Ok(with_cookie(with_cookie(answer, session), device))
    }

    /// Logs out who is logged in.
    pub(super) async fn log_out(&self, answer: impl IntoResponse) -> Result<Response, ApiError> {
        if let Some((account, session)) = self.session() {
            let end = move |tx: &mut Tx<'_>| web_session::end(tx, account, session);
            self.app.store.write(Root::none(), end).await?;
        }
        Ok(with_cookie(answer, Cookie::Session.set(&self.app, None, 0)))
    }

    fn session(&self) -> Option<(LocalAccountId, web_session::WebSessionId)> {
        let (session, _) = self.logged_in.as_ref()?;
        Some((session.account, session.id))
    }
}

/// What goes wrong is told as a page, in the reader's language.
impl FromRequestParts<Arc<App>> for Browser {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let Ok(language) = Language::from_request_parts(parts, app).await;
        let known = Self::load(parts, app, language).await;
        known.map_err(|error| Page::of_error(language, error))
    }
}

impl Browser {
    async fn load(parts: &Parts, app: &Arc<App>, language: Language) -> ApiResult<Self> {
        let headers = &parts.headers;
        let form = Cookie::Form
            .read(app, headers)
            .filter(|text| text.len() == 22);
        let (form, is_new) = match form {
            Some(form) => (form.to_owned(), false),
            None => (random_text()?, true),
        };
        let session_text = Cookie::Session.read(app, headers).map(str::to_owned);
        let logged_in = match session_text.as_deref() {
            Some(text) => find(app, text).await?,
            None => None,
        };
        let device = Cookie::Device.read(app, headers);
        let now_ms = app.people.now_ms();
        let device = device.and_then(|text| app.people.native.device(text, now_ms).ok());
        Ok(Self {
            app: Arc::clone(app),
            language,
            form,
            is_new,
            session_text,
            logged_in,
            device,
            user_agent: user_agent(headers),
        })
    }
}

async fn find(app: &App, text: &str) -> Result<Option<(WebSession, TokenHolder)>, ApiError> {
    let secret = OpaqueSecret::parse(SecretKind::WebSession, text);
    let Some((secret, account)) = secret.and_then(|secret| {
        let account = secret.account?;
        Some((secret, account))
    }) else {
        return Ok(None);
    };
    let (hash, now_ms) = (secret.hash(), app.people.now_ms());
    let find = move |tx: &mut Tx<'_>| web_session::find_with_holder(tx, account, &hash, now_ms);
    Ok(app.store.read(find).await?)
}

/// What the browser calls itself, cut short.
pub(crate) fn user_agent(headers: &HeaderMap) -> String {
    let text = headers.get(USER_AGENT).and_then(|text| text.to_str().ok());
    text.unwrap_or_default().chars().take(200).collect()
}

fn with_cookie(answer: impl IntoResponse, cookie: Option<HeaderValue>) -> Response {
    let mut answer = answer.into_response();
    if let Some(cookie) = cookie {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}

const FORM_LIFETIME_MS: i64 = 365 * 86_400_000;
