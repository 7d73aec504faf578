use axum::{
    extract::{Query, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse as _, Response},
};
use driftline_core::social::PassphraseError;
use maud::{Markup, html};
use secrecy::SecretString;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    language::Language,
    layout::Page,
    log_in::{self, Destination},
    session::Browser,
};
use crate::{
    people::SignUpMode,
    sign_up::{self, Faults, NameFault, SignUpRequest},
    transport::{ApiError, ClientAddress, Params},
};

/// The form.
#[derive(Default, Deserialize, ToSchema)]
pub(super) struct SignUpForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    mail: String,
    #[schema(value_type = String)]
    #[serde(default)]
    passphrase: SecretString,
    #[serde(default)]
    reason: String,
    /// The page of ours that follows the first log-in.
    to: Option<String>,
}

/// The form to sign up.
#[utoipa::path(
    get, path = "/sign-up", tag = "pages", params(Destination),
    security(()),
    responses((status = 200, body = String, content_type = "text/html"), (status = 403, body = String, content_type = "text/html", description = "Nobody may sign up here")),
)]
pub(super) async fn show(
    browser: Browser,
    uri: Uri,
    query: Result<Query<Destination>, QueryRejection>,
) -> Response {
    if browser.app.people.sign_up.mode == SignUpMode::Closed {
        return closed(browser.language).at(uri).into_response();
    }
    let sent = SignUpForm {
        to: query.ok().and_then(|Query(query)| query.to),
        ..SignUpForm::default()
    };
    let faults = Faults::default();
    browser.answer(form(&browser, &sent, &faults, None).at(uri))
}

/// Signs somebody up.
///
/// Whoever's address it is, the page is the same.
#[utoipa::path(
    post, path = "/sign-up", tag = "pages",
    request_body(content = SignUpForm, content_type = "application/x-www-form-urlencoded"),
    security(("form" = [])),
    responses((status = 200, body = String, content_type = "text/html"), (status = 403, body = String, content_type = "text/html", description = "Nobody may sign up here, the form is not of this browser, or it comes from another site"), (status = 422, body = String, content_type = "text/html", description = "Values that cannot be used")),
)]
pub(super) async fn submit(
    ClientAddress(address): ClientAddress,
    browser: Browser,
    headers: HeaderMap,
    params: Result<Params<SignUpForm>, ApiError>,
) -> Response {
    let submitted = async {
        let Params(sent) = params?;
        if browser.app.people.sign_up.mode == SignUpMode::Closed {
            return Ok(closed(browser.language).into_response());
        }
        if !browser.sent(&sent.form_token) {
            let expired = Some(browser.texts().form_expired);
            let page = form(&browser, &sent, &Faults::default(), expired);
            let status = StatusCode::FORBIDDEN;
            return Ok(browser.answer(Page { status, ..page }));
        }
        let request = SignUpRequest {
            name: sent.name.clone(),
            mail: sent.mail.clone(),
            passphrase: sent.passphrase.clone(),
            reason: sent.reason.clone(),
            language: browser.language,
            continue_to: log_in::own(sent.to.as_deref()).map(str::to_owned),
        };
        match sign_up::sign_up(&browser.app, &headers, address, request).await? {
            Ok(_) => Ok(browser.answer(sent_page(
                &browser,
                sent.mail.trim(),
                log_in::own(sent.to.as_deref()),
            ))),
            Err(faults) => {
                let page = form(&browser, &sent, &faults, None);
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                Ok(browser.answer(Page { status, ..page }))
            }
        }
    };
    Page::or_error(browser.language, submitted).await
}

/// The form of `POST /sign-up/resend`.
#[derive(Deserialize, ToSchema)]
pub(super) struct ResendForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    mail: String,
    /// As in the form to sign up.
    to: Option<String>,
}

/// Sends the mail of a sign-up again.
///
/// Whether anything is sent is not told.
#[utoipa::path(
    post, path = "/sign-up/resend", tag = "pages",
    request_body(content = ResendForm, content_type = "application/x-www-form-urlencoded"),
    security(("form" = [])),
    responses((status = 200, body = String, content_type = "text/html"), (status = 403, body = String, content_type = "text/html", description = "Nobody may sign up here, the form is not of this browser, or it comes from another site")),
)]
pub(super) async fn resend(
    ClientAddress(address): ClientAddress,
    browser: Browser,
    headers: HeaderMap,
    params: Result<Params<ResendForm>, ApiError>,
) -> Response {
    let submitted = async {
        let Params(sent) = params?;
        if !browser.sent(&sent.form_token) {
            let text = browser.texts().form_expired;
            return Ok(Page::error(browser.language, StatusCode::FORBIDDEN, text).into_response());
        }
        sign_up::resend(&browser.app, &headers, address, &sent.mail).await?;
        Ok(browser.answer(sent_page(
            &browser,
            sent.mail.trim(),
            log_in::own(sent.to.as_deref()),
        )))
    };
    Page::or_error(browser.language, submitted).await
}

fn closed(language: Language) -> Page {
    let texts = language.texts();
    let status = StatusCode::FORBIDDEN;
    let body = html! { p { (texts.sign_up_closed) } };
    Page {
        status,
        ..Page::new(language, texts.sign_up, body)
    }
}

fn form(browser: &Browser, sent: &SignUpForm, faults: &Faults, error: Option<&str>) -> Page {
    let (language, texts) = (browser.language, browser.texts());
    let name_fault = faults.name.map(|fault| match fault {
        NameFault::Invalid => texts.bad_name,
        NameFault::Taken => texts.name_taken,
    });
    let passphrase_fault = faults.passphrase.map(|fault| match fault {
        PassphraseError::Short => texts.short_passphrase,
        PassphraseError::Long => texts.long_passphrase,
    });
    // The first that is wrong is where to go on.
    let wrong = [
        name_fault.is_some(),
        faults.mail,
        passphrase_fault.is_some(),
        faults.reason,
    ];
    let first = wrong.iter().position(|is_wrong| *is_wrong);
    let invalid = |at: usize| wrong[at].then_some("true");
    let body = html! {
        @if let Some(error) = error {
            p.error role="alert" { (error) }
        }
        form method="post" action={ "/sign-up?lang=" (language.tag()) } {
            (browser.hidden_token())
            @if let Some(to) = log_in::own(sent.to.as_deref()) {
                input type="hidden" name="to" value=(to);
            }
            div.field {
                label for="name" { (texts.name) }
                input #name type="text" name="name" value=(sent.name) required autocomplete="username"
                    autocapitalize="none" spellcheck="false" maxlength="64" aria-describedby="name-hint"
                    aria-invalid=[invalid(0)] autofocus[first == Some(0)];
                (below("name-hint", texts.name_hint, name_fault))
            }
            div.field {
                label for="mail" { (texts.mail) }
                input #mail type="email" name="mail" value=(sent.mail) required autocomplete="email"
                    maxlength="319" aria-describedby="mail-hint"
                    aria-invalid=[invalid(1)] autofocus[first == Some(1)];
                (below("mail-hint", texts.mail_hint, faults.mail.then_some(texts.bad_mail)))
            }
            div.field {
                label for="passphrase" { (texts.passphrase) }
                input #passphrase type="password" name="passphrase" required autocomplete="new-password"
                    maxlength="2048" aria-describedby="passphrase-hint"
                    aria-invalid=[invalid(2)] autofocus[first == Some(2)];
                (below("passphrase-hint", texts.passphrase_hint, passphrase_fault))
            }
            @if browser.app.people.sign_up.mode == SignUpMode::Approval {
                div.field {
                    label for="reason" { (texts.reason) }
                    textarea #reason name="reason" required maxlength="500" aria-describedby="reason-hint"
                    aria-invalid=[invalid(3)] autofocus[first == Some(3)] {
                        (sent.reason)
                    }
                    (below("reason-hint", texts.reason_hint, faults.reason.then_some(texts.reason_needed)))
                }
            }
            button type="submit" { (texts.sign_up) }
        }
        p.after { (texts.have_account) " " a href=(log_in::address(language, log_in::own(sent.to.as_deref()))) { (texts.log_in) } }
    };
    Page::new(language, texts.sign_up, body)
}

/// What is wrong with a field, else what it is for.
fn below(id: &str, hint: &str, fault: Option<&str>) -> Markup {
    html! {
        @match fault {
            Some(fault) => p.error #(id) role="alert" { (fault) },
            None => p.hint #(id) { (hint) },
        }
    }
}

fn sent_page(browser: &Browser, mail: &str, to: Option<&str>) -> Page {
    let (language, texts) = (browser.language, browser.texts());
    let (before, after) = texts.mail_sent_text.split_once("{}").unwrap_or_default();
    let body = html! {
        p { (before) strong { (mail) } (after) }
        p.hint { (texts.mail_sent_hint) }
        form.after method="post" action={ "/sign-up/resend?lang=" (language.tag()) } {
            (browser.hidden_token())
            input type="hidden" name="mail" value=(mail);
            @if let Some(to) = to {
                input type="hidden" name="to" value=(to);
            }
            button.second type="submit" { (texts.resend) }
        }
        p.hint {
            (texts.wrong_mail) " "
            a href=(log_in::with_destination("/sign-up", language, to)) { (texts.sign_up) }
        }
    };
    Page::new(language, texts.mail_sent, body)
}
