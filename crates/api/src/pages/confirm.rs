//! The link in the mail of a sign-up. It only shows a button, since programs that look at mails follow
//! links.

use axum::{
    http::{StatusCode, Uri},
    response::{IntoResponse as _, Response},
};
use driftline_store::{LocalId, social::pending_account::VerifiedAccount};
use maud::html;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{layout::Page, log_in, session::Browser};
use crate::{
    people::SignUpMode,
    sign_up,
    transport::{ApiError, ClientAddress, Params},
};

/// What the link of a mail holds.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
struct ConfirmParams {
    id: String,
    state: String,
}

/// What was mailed.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = ConfirmForm)]
pub(super) struct Link {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    id: String,
    #[schema(value_type = String)]
    #[serde(default)]
    state: SecretString,
}

/// A button to confirm a mail address, for who follows the link of a mail.
#[utoipa::path(
    get, path = "/confirm", tag = "pages", params(ConfirmParams),
    security(()),
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(super) async fn show(
    browser: Browser,
    uri: Uri,
    params: Result<Params<Link>, ApiError>,
) -> Response {
    let Ok(Params(link)) = params else {
        return invalid(&browser).into_response();
    };
    let texts = browser.texts();
    let body = html! {
        p { (texts.confirm_text) }
        form method="post" action={ "/confirm?lang=" (browser.language.tag()) } {
            (browser.hidden_token())
            input type="hidden" name="id" value=(link.id);
            input type="hidden" name="state" value=(link.state.expose_secret());
            button type="submit" { (texts.confirm) }
        }
    };
    browser.answer(Page::new(browser.language, texts.confirm, body).at(uri))
}

/// Confirms a mail address.
#[utoipa::path(
    post, path = "/confirm", tag = "pages",
    request_body(content = Link, content_type = "application/x-www-form-urlencoded"),
    security(("form" = [])),
    responses((status = 200, body = String, content_type = "text/html"), (status = 403, body = String, content_type = "text/html", description = "The form is not of this browser, or comes from another site"), (status = 404, body = String, content_type = "text/html", description = "The link is unknown, used or expired"), (status = 429, body = String, content_type = "text/html", description = "Too many wrong links came from this address")),
)]
pub(super) async fn submit(
    ClientAddress(address): ClientAddress,
    browser: Browser,
    params: Result<Params<Link>, ApiError>,
) -> Response {
    let submitted = async {
        let Params(link) = params?;
        let texts = browser.texts();
        if !browser.sent(&link.form_token) {
            let expired = Page::error(browser.language, StatusCode::FORBIDDEN, texts.form_expired);
            return Ok(expired.into_response());
        }
        let Ok(id) = link.id.parse::<u64>() else {
            return Ok(invalid(&browser).into_response());
        };
        let confirmed =
            sign_up::confirm(&browser.app, address, LocalId::new(id), link.state).await?;
        // Which of the reasons it was would tell of other people's addresses.
        let Ok(VerifiedAccount {
            account,
            continue_to,
        }) = confirmed
        else {
            return Ok(invalid(&browser).into_response());
        };
        let waits = account.awaits_approval;
        let body = html! {
            @if waits {
                p { (texts.confirmed_waits) }
            } @else {
                p { (texts.confirmed_text) }
                p { a href=(log_in::address(browser.language, continue_to.as_deref())) { (texts.log_in) } }
            }
        };
        Ok(Page::new(browser.language, texts.confirmed, body).into_response())
    };
    Page::or_error(browser.language, submitted).await
}

fn invalid(browser: &Browser) -> Page {
    let (language, texts) = (browser.language, browser.texts());
    let mut page = Page::error(language, StatusCode::NOT_FOUND, texts.link_invalid);
    if browser.app.people.sign_up.mode != SignUpMode::Closed {
        let to = format!("/sign-up?lang={}", language.tag());
        page.body = html! { (page.body) p { a href=(to) { (texts.sign_up) } } };
    }
    page
}
