//! `/oauth/authorize`: a person lets an app act for them, or not.
//!
//! Whatever is wrong with the request is shown here: nobody is sent to an address that the app has not registered,
//! and none is opened without a decision on the page of consent, since anybody registers apps (RFC 9700, 4.11.2).

use axum::{
    http::{
        StatusCode, Uri,
        header::{CACHE_CONTROL, REFERRER_POLICY},
    },
    response::{IntoResponse as _, Redirect, Response},
};
use driftline_core::social::AccountAction;
use driftline_store::{
    StoreError, Tx,
    social::{
        TokenHolder,
        app::{self, App as OAuthApp},
        authorization_code::{self, NewCode},
        local_account, web_session,
    },
};
use maud::html;
use serde::Deserialize;
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};

use super::{
    redirect_uri::{self, OUT_OF_BAND},
    token::scopes_for,
};
use crate::{
    App,
    auth::{
        ScopeSet,
        opaque_secret::{OpaqueSecret, SecretKind},
    },
    pages::{language::Language, layout::Page, scope_words::scope_in_words, session::Browser},
    transport::{ApiError, Params},
};

/// What an app asks for.
#[derive(Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[schema(as = AuthorizeRequest)]
pub(crate) struct Request {
    #[serde(default)]
    response_type: String,
    #[serde(default)]
    client_id: String,
    redirect_uri: Option<String>,
    scope: Option<String>,
    state: Option<String>,
    code_challenge: Option<String>,
    code_challenge_method: Option<String>,
    force_login: Option<String>,
    /// Of the page's form alone.
    #[serde(default)]
    form_token: String,
    /// `allow`, or anything else.
    #[serde(default)]
    decision: String,
}

/// A request that may be shown for consent.
struct Checked {
    app: OAuthApp,
    redirect_uri: String,
    scopes: ScopeSet,
    challenge: Option<String>,
}

/// The page of consent.
#[utoipa::path(
    get, path = "/oauth/authorize", tag = "pages", params(Request),
    security(()),
    responses((status = 200, body = String, content_type = "text/html"), (status = 303, description = "To the page that follows"), (status = 400, body = String, content_type = "text/html", description = "The app, its address or its scopes are unknown, or the request is malformed: nobody is sent to the app")),
)]
pub(crate) async fn ask(
    browser: Browser,
    uri: Uri,
    params: Result<Params<Request>, ApiError>,
) -> Response {
    let asked = async {
        let Params(request) = params?;
        let checked = match check(&browser.app, browser.language, &request).await? {
            Ok(checked) => checked,
            Err(refused) => return Ok(refused),
        };
        let logs_in = request.force_login.as_deref() == Some("true");
        match &browser.logged_in {
            Some((_, holder)) if !logs_in && holder.state.allows(AccountAction::UseTokens) => {
                let page = consent(&browser, &request, &checked, holder);
                Ok(browser.answer(page.at(uri)))
            }
            _ => Ok(to_log_in(browser.language, &uri)),
        }
    };
    Page::or_error(browser.language, asked).await
}

/// Allows an app to act for who is logged in, or does not.
#[utoipa::path(
    post, path = "/oauth/authorize", tag = "pages",
    request_body(content = Request, content_type = "application/x-www-form-urlencoded"),
    security(("session" = [], "form" = [])),
    responses((status = 200, body = String, content_type = "text/html"), (status = 303, description = "To the page that follows"), (status = 403, body = String, content_type = "text/html", description = "The form is not of this browser, or comes from another site")),
)]
pub(crate) async fn decide(
    browser: Browser,
    params: Result<Params<Request>, ApiError>,
) -> Response {
    let decided = async {
        let Params(request) = params?;
        let texts = browser.texts();
        let forbidden =
            |text| Ok(Page::error(browser.language, StatusCode::FORBIDDEN, text).into_response());
        let (session, holder) = match &browser.logged_in {
            Some(found) if browser.sent(&request.form_token) => found,
            _ => return forbidden(texts.form_expired),
        };
        if !holder.state.allows(AccountAction::UseTokens) {
            return forbidden(texts.frozen);
        }
        let checked = match check(&browser.app, browser.language, &request).await? {
            Ok(checked) => checked,
            Err(refused) => return Ok(refused),
        };
        if request.decision != "allow" {
            if checked.redirect_uri == OUT_OF_BAND {
                let denied = Page::error(browser.language, StatusCode::BAD_REQUEST, texts.denied);
                return Ok(denied.into_response());
            }
            let mut answer = vec![("error", "access_denied")];
            answer.extend(request.state.as_deref().map(|state| ("state", state)));
            return Ok(send(&checked.redirect_uri, &answer));
        }
        let code = OpaqueSecret::generate(SecretKind::AuthorizationCode, Some(holder.id))?;
        let new = NewCode {
            account: holder.id,
            hash: code.hash(),
            app: checked.app.id,
            redirect_uri: checked.redirect_uri.clone(),
            scopes: checked.scopes.to_string(),
            challenge: checked.challenge,
        };
        let now_ms = browser.app.people.now_ms();
        let (account, session) = (holder.id, session.id);
        // Whoever freezes the account or replaces its passphrase ends its sessions and then its codes.
        let add = move |tx: &mut Tx<'_>| {
            let sessions = web_session::list(tx, account, now_ms)?;
            let is_there = sessions.iter().any(|known| known.id == session);
            if is_there {
                authorization_code::add(tx, &new, now_ms)?;
            }
            Ok::<_, StoreError>(is_there)
        };
        let added = browser.app.store.write(local_account::root(account), add);
        if !added.await? {
            return forbidden(texts.form_expired);
        }
        if checked.redirect_uri == OUT_OF_BAND {
            return Ok(
                shown_code(browser.language, &checked.app.name, code.expose()).into_response(),
            );
        }
        let mut answer = vec![("code", code.expose())];
        answer.extend(request.state.as_deref().map(|state| ("state", state)));
        Ok(send(&checked.redirect_uri, &answer))
    };
    Page::or_error(browser.language, decided).await
}

async fn check(
    app: &App,
    language: Language,
    request: &Request,
) -> Result<Result<Checked, Response>, ApiError> {
    let texts = language.texts();
    let refused = |text| {
        let page = Page::error(language, StatusCode::BAD_REQUEST, text);
        Ok(Err(page.into_response()))
    };
    let client_id = request.client_id.clone();
    let found = app.store.read(move |tx| app::by_client_id(tx, &client_id));
    let Some(client) = found.await? else {
        return refused(texts.unknown_app);
    };
    let redirect_uri = match (&request.redirect_uri, &*client.redirect_uris) {
        (Some(uri), registered) if registered.contains(uri) => uri.clone(),
        (None, [only]) => only.clone(),
        _ => return refused(texts.wrong_redirect),
    };
    if request.response_type != "code" {
        return refused(texts.bad_request);
    }
    let Some(scopes) = scopes_for(&client, request.scope.as_deref()) else {
        return refused(texts.wrong_scope);
    };
    let challenge = match (&request.code_challenge, &request.code_challenge_method) {
        (None, None) => None,
        (Some(challenge), Some(method)) if method == "S256" && is_challenge(challenge) => {
            Some(challenge.clone())
        }
        // `plain` too, which is what a missing method means: it proves nothing to who saw the request.
        _ => return refused(texts.bad_request),
    };
    Ok(Ok(Checked {
        app: client,
        redirect_uri,
        scopes,
        challenge,
    }))
}

fn is_challenge(text: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.len() == 43 && text.bytes().all(is_base64)
}

/// Sends the browser to the app.
fn send(redirect_uri: &str, params: &[(&str, &str)]) -> Response {
    let Some(address) = redirect_uri::with_params(redirect_uri, params) else {
        return ApiError::Internal.into_response();
    };
    let headers = [
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, Redirect::to(&address)).into_response()
}

/// The log-in, which leads back here. It must not be forced twice.
fn to_log_in(language: Language, uri: &Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    let mut back = form_urlencoded::Serializer::new(String::new());
    let kept = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "force_login");
    back.extend_pairs(kept);
    let back = format!("{}?{}", uri.path(), back.finish());
    let mut to = form_urlencoded::Serializer::new(String::new());
    to.append_pair("to", &back)
        .append_pair("lang", language.tag());
    Redirect::to(&format!("/log-in?{}", to.finish())).into_response()
}

fn consent(browser: &Browser, request: &Request, checked: &Checked, holder: &TokenHolder) -> Page {
    let (language, texts) = (browser.language, browser.texts());
    let hidden = |name: &str, value: Option<&str>| {
        html! {
            @if let Some(value) = value {
                input type="hidden" name=(name) value=(value);
            }
        }
    };
    let website = checked.app.website.as_deref();
    let body = html! {
        p {
            strong { bdi { (checked.app.name) } } " " (texts.wants_access) " "
            strong { "@" (holder.name.as_str()) } (texts.wants_access_end)
        }
        @if let Some(website) = website {
            p.hint { a href=(website) rel="noopener noreferrer nofollow" { (website) } }
        }
        h2 { (texts.may) }
        ul {
            @for scope in checked.scopes.iter() {
                li { (scope_in_words(scope, language)) }
            }
        }
        @if checked.redirect_uri != OUT_OF_BAND {
            p.hint { (texts.leads_to) " " bdi { (checked.redirect_uri) } }
        }
        form method="post" action={ "/oauth/authorize?lang=" (language.tag()) } {
            (browser.hidden_token())
            (hidden("response_type", Some(&request.response_type)))
            (hidden("client_id", Some(&request.client_id)))
            (hidden("redirect_uri", Some(&checked.redirect_uri)))
            (hidden("scope", request.scope.as_deref()))
            (hidden("state", request.state.as_deref()))
            (hidden("code_challenge", request.code_challenge.as_deref()))
            (hidden("code_challenge_method", request.code_challenge_method.as_deref()))
            button type="submit" name="decision" value="allow" { (texts.allow) }
            button.second type="submit" name="decision" value="deny" { (texts.deny) }
        }
        form.after method="post" action={ "/log-out?lang=" (language.tag()) } {
            (browser.hidden_token())
            (texts.not_you) " " button.link type="submit" { (texts.log_out) }
        }
    };
    let form_leads_to = match checked.redirect_uri.as_str() {
        OUT_OF_BAND => None,
        uri => redirect_uri::form_source(uri),
    };
    Page {
        form_leads_to,
        ..Page::new(language, texts.consent, body)
    }
}

fn shown_code(language: Language, app: &str, code: &str) -> Page {
    let texts = language.texts();
    let body = html! {
        p { (texts.copy_code) " " strong { bdi { (app) } } (texts.copy_code_end) }
        code.copy { (code) }
        p.hint { (texts.code_lasts) }
    };
    Page::new(language, texts.code, body)
}
