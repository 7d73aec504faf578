use axum::{
    http::{
        HeaderName, HeaderValue, StatusCode, Uri,
        header::{
            CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
            REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use url::form_urlencoded;

use super::{
    language::Language,
    style::{STYLE, STYLE_SOURCE},
};
use crate::transport::{ApiError, ApiResult, StoreFailure};

/// A page to answer with.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) language: Language,
    pub(crate) title: String,
    pub(crate) body: Markup,
    /// Where else than here its form may lead, as a content security policy says it.
    pub(crate) form_leads_to: Option<String>,
    /// Its own address, for the links to other languages; `None` if there is no such address.
    pub(crate) address: Option<Uri>,
}

impl Page {
    pub(crate) fn new(language: Language, title: impl Into<String>, body: Markup) -> Self {
        Self {
            status: StatusCode::OK,
            language,
            title: title.into(),
            body,
            form_leads_to: None,
            address: None,
        }
    }

    /// A page that only says what is wrong.
    pub(crate) fn error(language: Language, status: StatusCode, text: &str) -> Self {
        let title = language.texts().error;
        let body = html! { p.error role="alert" { (text) } };
        Self {
            status,
            ..Self::new(language, title, body)
        }
    }

    /// What `answer` answers, or the page of its error.
    pub(crate) async fn or_error(
        language: Language,
        answer: impl Future<Output = ApiResult>,
    ) -> Response {
        answer
            .await
            .unwrap_or_else(|error| Self::of_error(language, error))
    }

    /// The page of an error that has no page of its own.
    pub(crate) fn of_error(language: Language, error: ApiError) -> Response {
        let texts = language.texts();
        let text = match &error {
            ApiError::TooManyRequests { .. } => texts.too_often,
            ApiError::BadParameter(_) | ApiError::TooLarge(_) => texts.bad_request,
            ApiError::Forbidden(_) | ApiError::LogInDisabled(_) => texts.not_allowed,
            ApiError::StoreAway(_) => texts.store_away,
            _ => texts.internal,
        };
        let mut answer = error.into_response();
        let mut page = Self::error(language, answer.status(), text).into_response();
        if let Some(after) = answer.headers().get("retry-after") {
            page.headers_mut().insert("retry-after", after.clone());
        }
        if let Some(failure) = answer.extensions_mut().remove::<StoreFailure>() {
            page.extensions_mut().insert(failure);
        }
        page
    }

    pub(crate) fn at(self, address: Uri) -> Self {
        Self {
            address: Some(address),
            ..self
        }
    }

    fn policy(&self) -> String {
        let leads_to = self.form_leads_to.as_deref().unwrap_or_default();
        format!(
            "default-src 'none'; style-src {}; form-action 'self' {leads_to}; base-uri 'none'; frame-ancestors 'none'",
            *STYLE_SOURCE
        )
    }

    fn markup(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang=(self.language.tag()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="robots" content="noindex";
                    title { (self.title) " · Driftline" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header { "Driftline" }
                    main {
                        h1 { (self.title) }
                        (self.body)
                    }
                    @if let Some(address) = &self.address {
                        footer {
                            nav aria-label=(self.language.texts().languages) {
                                @for language in Language::ALL {
                                    @if language == self.language {
                                        span aria-current="true" { (language.name()) }
                                    } @else {
                                        a href=(in_language(address, language)) lang=(language.tag()) hreflang=(language.tag()) {
                                            (language.name())
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.markup().into_string()).into_response();
        let headers = response.headers_mut();
        let fixed: [(HeaderName, &'static str); 7] = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CACHE_CONTROL, "no-store"),
            (X_FRAME_OPTIONS, "DENY"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            // Not `no-referrer`: browsers would send `Origin: null` with our own forms.
            (REFERRER_POLICY, "same-origin"),
            (VARY, "accept-language, cookie"),
            (CONTENT_LANGUAGE, self.language.tag()),
        ];
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        match HeaderValue::from_str(&self.policy()) {
            Ok(policy) => headers.insert(CONTENT_SECURITY_POLICY, policy),
            Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
        response
    }
}

/// The same address in another language.
fn in_language(address: &Uri, language: Language) -> String {
    let query = address.query().unwrap_or_default();
    let mut params = form_urlencoded::Serializer::new(String::new());
    let others = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "lang");
    params.extend_pairs(others);
    params.append_pair("lang", language.tag());
    format!("{}?{}", address.path(), params.finish())
}
