//! What a browser finds at the addresses that answers name: the server's own, and those of accounts and tags. Posts
//! are read with apps, which these pages say.

use std::sync::Arc;

use axum::{
    extract::State,
    http::Uri,
    response::{IntoResponse as _, Response},
};
use maud::{Markup, html};

use super::{language::Language, layout::Page};
use crate::{
    App,
    mastodon::answer::picture,
    people::SignUpMode,
    transport::{Address, PathText},
};

/// What this server is, and how it is read.
#[utoipa::path(
    get, path = "/", tag = "pages", security(()),
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(super) async fn server(
    State(app): State<Arc<App>>,
    language: Language,
    address: Address,
    uri: Uri,
) -> Response {
    let texts = language.texts();
    let body = html! {
        p { (app.own.info.description()) }
        p { (texts.read_with_app) }
        code.copy { (address.domain()) }
        ul {
            li { a href="/log-in" { (texts.log_in) } }
            @if app.people.sign_up.mode != SignUpMode::Closed {
                li { a href="/sign-up" { (texts.sign_up) } }
            }
            li { a href="/api/docs" { (texts.for_programs) } }
        }
    };
    let page = Page::new(language, app.own.info.name(), body);
    page.at(uri).into_response()
}

/// Where an account of this server is read. Says the same of any name, so that it tells no stranger which exist.
#[utoipa::path(
    get, path = "/@{name}", tag = "pages", params(("name" = String, Path)), security(()),
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(super) async fn account(
    language: Language,
    PathText(name): PathText,
    address: Address,
    uri: Uri,
) -> Response {
    let handle = match name.contains('@') {
        true => format!("@{name}"),
        false => format!("@{name}@{}", address.domain()),
    };
    let page = Page::new(language, handle.as_str(), in_apps(language, &handle));
    page.at(uri).into_response()
}

/// Where the posts with a tag are read.
#[utoipa::path(
    get, path = "/tags/{name}", tag = "pages", params(("name" = String, Path)), security(()),
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(super) async fn tag(language: Language, PathText(name): PathText, uri: Uri) -> Response {
    let tag = format!("#{name}");
    let page = Page::new(language, tag.as_str(), in_apps(language, &tag));
    page.at(uri).into_response()
}

fn in_apps(language: Language, searched: &str) -> Markup {
    let texts = language.texts();
    html! {
        p { (texts.shown_in_apps) }
        code.copy { (searched) }
        p { a href="/" { (texts.about_server) } }
    }
}

/// The picture of this server.
#[utoipa::path(
    get, path = "/icon.png", tag = "pages", security(()),
    responses((status = 200, body = Vec<u8>, content_type = "image/png")),
)]
pub(super) async fn icon() -> Response {
    picture(include_bytes!("icon.png"))
}

/// The same, where browsers look for it.
#[utoipa::path(
    get, path = "/favicon.ico", tag = "pages", security(()),
    responses((status = 200, body = Vec<u8>, content_type = "image/png")),
)]
pub(super) async fn favicon() -> Response {
    icon().await
}
