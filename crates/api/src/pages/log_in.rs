use axum::{
    extract::{Query, rejection::QueryRejection},
    http::{StatusCode, Uri},
    response::{IntoResponse as _, Redirect, Response},
};
use driftline_core::social::LogInRefused;
use maud::{Markup, html};
use secrecy::SecretString;
use serde::Deserialize;
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};

use super::{language::Language, layout::Page, session::Browser};
use crate::{
    auth::log_in::{self, LogInFailed},
    people::SignUpMode,
    transport::{ApiError, ClientAddress, Params},
};

/// Where a log-in leads.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Destination {
    /// The page of ours that follows.
    pub(super) to: Option<String>,
}

/// The form.
#[derive(Deserialize, ToSchema)]
pub(super) struct LogInForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    who: String,
    #[serde(default)]
    #[schema(value_type = String)]
    passphrase: SecretString,
    to: Option<String>,
}

/// The form to log in.
#[utoipa::path(
    get, path = "/log-in", tag = "pages", params(Destination),
    security(()),
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(super) async fn show(
    browser: Browser,
    uri: Uri,
    query: Result<Query<Destination>, QueryRejection>,
) -> Response {
    let to = query.ok().and_then(|Query(query)| query.to);
    let to = own(to.as_deref());
    let page = match &browser.logged_in {
        Some((_, holder)) if to.is_none() => {
            let body = welcome(&browser, holder.name.as_str());
            Page::new(browser.language, browser.texts().logged_in, body)
        }
        _ => form(&browser, to, None),
    };
    browser.answer(page.at(uri))
}

/// Logs this browser in.
#[utoipa::path(
    post, path = "/log-in", tag = "pages",
    request_body(content = LogInForm, content_type = "application/x-www-form-urlencoded"),
    security(("form" = [])),
    responses((status = 200, body = String, content_type = "text/html"), (status = 303, description = "To the page that follows"), (status = 401, body = String, content_type = "text/html", description = "No account has that name or address with that passphrase"), (status = 403, body = String, content_type = "text/html", description = "The form is not of this browser, or comes from another site"), (status = 429, body = String, content_type = "text/html")),
)]
pub(super) async fn submit(
    ClientAddress(address): ClientAddress,
    browser: Browser,
    params: Result<Params<LogInForm>, ApiError>,
) -> Response {
    let submitted = async {
        let Params(sent) = params?;
        let to = own(sent.to.as_deref());
        let texts = browser.texts();
        let refused = |status, text: &str| {
            let page = form(&browser, to, Some((&sent.who, text)));
            Ok(browser.answer(Page { status, ..page }))
        };
        if !browser.sent(&sent.form_token) {
            return refused(StatusCode::FORBIDDEN, texts.form_expired);
        }
        let begin = browser.begin_session();
        let from = (address, browser.device.as_ref());
        match log_in::log_in(&browser.app, &sent.who, &sent.passphrase, from, begin).await? {
            Ok((account, secret)) => {
                let there = Redirect::to(to.unwrap_or("/log-in"));
                browser.with_session(account.id, &secret?, there)
            }
            Err(LogInFailed::Wrong) => refused(StatusCode::UNAUTHORIZED, texts.wrong_passphrase),
            Err(LogInFailed::TooEarly(wait_s)) => {
                let text = texts.wait.replace("{}", &wait_s.to_string());
                let mut answer = refused(StatusCode::TOO_MANY_REQUESTS, &text)?;
                answer.headers_mut().insert("retry-after", wait_s.into());
                Ok(answer)
            }
            Err(LogInFailed::Refused(LogInRefused::AwaitsApproval)) => {
                refused(StatusCode::FORBIDDEN, texts.awaits_approval)
            }
            Err(LogInFailed::Refused(LogInRefused::Frozen)) => {
                refused(StatusCode::FORBIDDEN, texts.frozen)
            }
        }
    };
    Page::or_error(browser.language, submitted).await
}

/// The form of `POST /log-out`.
#[derive(Deserialize, ToSchema)]
pub(super) struct LogOutForm {
    #[serde(default)]
    form_token: String,
}

/// Logs this browser out.
#[utoipa::path(
    post, path = "/log-out", tag = "pages",
    request_body(content = LogOutForm, content_type = "application/x-www-form-urlencoded"),
    security(("form" = [])),
    responses((status = 303, description = "To the form to log in"), (status = 403, body = String, content_type = "text/html", description = "The form is not of this browser, or comes from another site")),
)]
pub(super) async fn log_out(
    browser: Browser,
    params: Result<Params<LogOutForm>, ApiError>,
) -> Response {
    let is_ours = params.is_ok_and(|Params(form)| browser.sent(&form.form_token));
    if !is_ours {
        let text = browser.texts().form_expired;
        return Page::error(browser.language, StatusCode::FORBIDDEN, text).into_response();
    }
    let out = browser.log_out(Redirect::to("/log-in")).await;
    out.unwrap_or_else(|error| Page::of_error(browser.language, error))
}

fn form(browser: &Browser, to: Option<&str>, refused: Option<(&str, &str)>) -> Page {
    let (language, texts) = (browser.language, browser.texts());
    let (who, error) = refused.unzip();
    let body = html! {
        @if let Some(error) = error {
            p.error role="alert" { (error) }
        }
        form method="post" action={ "/log-in?lang=" (language.tag()) } {
            (browser.hidden_token())
            @if let Some(to) = to {
                input type="hidden" name="to" value=(to);
            }
            div.field {
                label for="who" { (texts.who) }
                input #who type="text" name="who" value=[who] required autocomplete="username"
                    autocapitalize="none" spellcheck="false" maxlength="319" autofocus[who.is_none()];
            }
            div.field {
                label for="passphrase" { (texts.passphrase) }
                input #passphrase type="password" name="passphrase" required
                    autocomplete="current-password" maxlength="2048" autofocus[who.is_some()];
            }
            button type="submit" { (texts.log_in) }
        }
        @if browser.app.people.sign_up.mode != SignUpMode::Closed {
            p.after { (texts.no_account) " " a href=(with_destination("/sign-up", language, to)) { (texts.sign_up) } }
        }
    };
    Page::new(language, texts.log_in, body)
}

/// The address of the form, which leads to a page of ours.
pub(super) fn address(language: Language, to: Option<&str>) -> String {
    with_destination("/log-in", language, to)
}

/// A page's address that says in which language it is, and which page of ours follows.
pub(super) fn with_destination(path: &str, language: Language, to: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("lang", language.tag());
    if let Some(to) = to {
        query.append_pair("to", to);
    }
    format!("{path}?{}", query.finish())
}

fn welcome(browser: &Browser, name: &str) -> Markup {
    let texts = browser.texts();
    html! {
        p { (texts.logged_in_as) " " strong { "@" (name) } }
        p { (texts.go_to_app) }
        form method="post" action={ "/log-out?lang=" (browser.language.tag()) } {
            (browser.hidden_token())
            button.second type="submit" { (texts.log_out) }
        }
    }
}

/// A page of ours that a log-in may lead to.
pub(super) fn own(to: Option<&str>) -> Option<&str> {
    to.filter(|to| is_own(to))
}

/// Whether it is a page of ours that a log-in may lead to: nothing else, so that no link here leads
/// elsewhere.
fn is_own(to: &str) -> bool {
    to.starts_with("/oauth/authorize?")
        && to.len() <= 8_000
        && to.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_leads_to_our_own_pages_alone() {
        assert!(is_own("/oauth/authorize?client_id=1"));
        for other in [
            "",
            "/",
            "//evil.example",
            "https://evil.example/oauth/authorize?",
            "/oauth/authorize/../..//evil.example",
            "/oauth/authorize?x\r\nSet-Cookie: a=b",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
