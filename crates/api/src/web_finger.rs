//! Host-meta and WebFinger: how apps find the server of an address, and the page of an account.
//!
//! Nothing here is for other servers: they cannot read Driftline by a protocol, so no link says that they can.

use std::sync::Arc;

use axum::{
    Json,
    http::{
        HeaderMap, HeaderValue,
        header::{ACCEPT, CONTENT_TYPE, VARY},
    },
    response::{IntoResponse as _, Response},
};
use driftline_core::social::AccountName;
use driftline_mastodon::escape_html;
use driftline_store::{social::local_account, timeline::Viewer};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{MayRead, needs},
    transport::{Address, ApiError, ApiResult, Params, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(host_meta))
        .routes(routes!(host_meta_json))
        .routes(routes!(web_finger))
}

/// [RFC 6415](https://www.rfc-editor.org/rfc/rfc6415): where WebFinger is.
#[derive(Serialize, ToSchema)]
struct HostMeta {
    links: [HostMetaLink; 1],
}

/// A link of the host.
#[derive(Serialize, ToSchema)]
struct HostMetaLink {
    rel: &'static str,
    /// An address with `{uri}` in place of what is asked for.
    template: String,
}

impl HostMeta {
    fn new(address: &Address) -> Self {
        Self {
            links: [HostMetaLink {
                rel: "lrdd",
                template: address.url("/.well-known/webfinger?resource={uri}"),
            }],
        }
    }

    fn json(&self) -> Response {
        ([(CONTENT_TYPE, JRD)], Json(self)).into_response()
    }

    fn xml(&self) -> Response {
        let [HostMetaLink { rel, template }] = &self.links;
        let template = escape_html(template);
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <XRD xmlns=\"http://docs.oasis-open.org/ns/xri/xrd-1.0\">\n  \
             <Link rel=\"{rel}\" template=\"{template}\"/>\n</XRD>\n"
        );
        ([(CONTENT_TYPE, XRD)], body).into_response()
    }
}

/// Where WebFinger is: XRD, or JSON for those who ask for it.
#[utoipa::path(
    get, path = "/.well-known/host-meta", tag = "server", security(()),
    responses((status = 200, body = HostMeta)),
)]
async fn host_meta(address: Address, headers: HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let is_json = accepted.is_some_and(|accept| accept.contains("json"));
    let host_meta = HostMeta::new(&address);
    let mut response = match is_json {
        true => host_meta.json(),
        false => host_meta.xml(),
    };
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// The same as JSON.
#[utoipa::path(
    get, path = "/.well-known/host-meta.json", tag = "server", security(()),
    responses((status = 200, body = HostMeta)),
)]
async fn host_meta_json(address: Address) -> Response {
    HostMeta::new(&address).json()
}

/// What WebFinger is asked for.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Query {
    /// `acct:name@domain`, or the address of an account of this server.
    #[param(example = "acct:ann@drift.example")]
    resource: String,
}

/// [RFC 7033](https://www.rfc-editor.org/rfc/rfc7033): an account of this server.
#[derive(Serialize, ToSchema)]
struct WebFinger {
    subject: String,
    aliases: [String; 1],
    links: [WebFingerLink; 1],
}

/// A link of an account.
#[derive(Serialize, ToSchema)]
struct WebFingerLink {
    rel: &'static str,
    r#type: &'static str,
    href: String,
}

/// An account of this server, for those who may know of it.
///
/// People of this server know each other; strangers know none of them, so without an account's token each answer is 404.
#[utoipa::path(
    get, path = "/.well-known/webfinger", tag = "server", params(Query),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = WebFinger), (status = 404, body = Problem)),
)]
async fn web_finger(
    reader: MayRead<needs::ReadAccounts>,
    Params(Query { resource }): Params<Query>,
) -> ApiResult {
    if reader.viewer == Viewer::Anonymous {
        return Err(ApiError::NotFound);
    }
    let address = &reader.address;
    let name = name_of(&resource, address).ok_or(ApiError::NotFound)?;
    let found = reader
        .read(move |tx| local_account::by_name(tx, &name))
        .await?;
    let account = found.ok_or(ApiError::NotFound)?;
    let page = address.url(&format!("/@{}", account.name));
    let found = WebFinger {
        subject: format!("acct:{}@{}", account.name, address.domain()),
        aliases: [page.clone()],
        links: [WebFingerLink {
            rel: "http://webfinger.net/rel/profile-page",
            r#type: "text/html",
            href: page,
        }],
    };
    Ok(([(CONTENT_TYPE, JRD)], Json(found)).into_response())
}

/// The name of the account of this server that a resource is of.
fn name_of(resource: &str, address: &Address) -> Option<AccountName> {
    let name = match resource.strip_prefix("acct:") {
        Some(acct) => {
            let acct = acct.strip_prefix('@').unwrap_or(acct);
            let (name, host) = acct.rsplit_once('@')?;
            host.eq_ignore_ascii_case(address.domain())
                .then_some(name)?
        }
        None => resource.strip_prefix(&address.url("/@"))?,
    };
    AccountName::new(name).ok()
}

const JRD: &str = "application/jrd+json; charset=utf-8";
const XRD: &str = "application/xrd+xml; charset=utf-8";
