//! The link in the mail of a sign-up. It only shows a button, since programs that look at mails follow
//! links.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{StatusCode, Uri},
    response::{IntoResponse as _, Response},
};
use driftline_store::LocalId;
use maud::html;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::{Browser, Language, layout::Page};
use crate::{
    App, sign_up,
    transport::{ApiError, Params},
};

/// What was mailed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Link {
    form_token: String,
    id: String,
    state: SecretString,
}

/// `GET /confirm`.
pub(super) async fn show(
    language: Language,
    browser: Browser,
    uri: Uri,
    params: Result<Params<Link>, ApiError>,
) -> Response {
    let Ok(Params(link)) = params else {
        return invalid(language).into_response();
    };
    let texts = language.texts();
    let body = html! {
        p { (texts.confirm_text) }
        form method="post" action={ "/confirm?lang=" (language.tag()) } {
            (browser.hidden_token())
            input type="hidden" name="id" value=(link.id);
            input type="hidden" name="state" value=(link.state.expose_secret());
            button type="submit" { (texts.confirm) }
        }
    };
    browser.answer(Page::new(language, texts.confirm, body).at(uri))
}

/// `POST /confirm`.
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    language: Language,
    browser: Browser,
    params: Result<Params<Link>, ApiError>,
) -> Response {
    let submitted = async {
        let Params(link) = params?;
        let texts = language.texts();
        if !browser.sent(&link.form_token) {
            let expired = Page::error(language, StatusCode::FORBIDDEN, texts.form_expired);
            return Ok(expired.into_response());
        }
        let Ok(id) = link.id.parse::<u64>() else {
            return Ok(invalid(language).into_response());
        };
        let confirmed = sign_up::confirm(&app, LocalId::new(id), link.state).await?;
        // Which of the reasons it was would tell of other people's addresses.
        let Ok(account) = confirmed else {
            return Ok(invalid(language).into_response());
        };
        let waits = account.awaits_approval;
        let body = html! {
            @if waits {
                p { (texts.confirmed_waits) }
            } @else {
                p { (texts.confirmed_text) }
                p { a href={ "/log-in?lang=" (language.tag()) } { (texts.log_in) } }
            }
        };
        Ok(Page::new(language, texts.confirmed, body).into_response())
    };
    let answer: Result<Response, ApiError> = submitted.await;
    answer.unwrap_or_else(|error| Page::of_error(language, error))
}

fn invalid(language: Language) -> Page {
    Page::error(
        language,
        StatusCode::NOT_FOUND,
        language.texts().link_invalid,
    )
}
