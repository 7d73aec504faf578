//! The instance entities.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use driftline_mastodon::{
    escape_html,
    instance::{
        AccountLimits, ActiveUsers, ApiVersions, Configuration, Contact, Instance, InstanceV1,
        MediaLimits, Offers, PollLimits, Registrations, Stats, StatusLimits, Thumbnail,
        Translation, Urls, UrlsV1, Usage, Vapid,
    },
};
use driftline_store::timeline::Viewer;

use super::peers;
use crate::{
    App,
    mastodon::entities,
    people::SignUpMode,
    transport::{Address, ApiResult},
};

/// This server, in the form of Mastodon's version 1.
///
/// Accounts and posts are not counted: both counts are zero.
#[utoipa::path(
    get, path = "/api/v1/instance", tag = "server", security(()),
    responses((status = 200, body = entities::InstanceV1)),
)]
pub(crate) async fn v1(State(app): State<Arc<App>>, address: Address) -> ApiResult {
    // Servers of hidden sources must not be told by the count.
    let known = app
        .store
        .read(|tx| peers::hosts_of_sources(tx, Viewer::Anonymous));
    let known = known.await?;
    let own = &app.own;
    let sign_up = app.people.sign_up.mode;
    let instance = InstanceV1 {
        uri: address.domain(),
        title: own.info.name(),
        short_description: own.info.description(),
        description: &escape_html(own.info.description()),
        email: &own.maintainer_mail,
        version: VERSION,
        urls: UrlsV1 {
            streaming_api: &address.streaming(),
        },
        stats: Stats {
            user_count: 0,
            status_count: 0,
            domain_count: known.len(),
        },
        thumbnail: Some(&address.url(PICTURE)),
        languages: &[],
        registrations: sign_up != SignUpMode::Closed,
        approval_required: sign_up == SignUpMode::Approval,
        invites_enabled: false,
        configuration: LIMITS,
        contact_account: None,
        rules: &[],
    };
    Ok(Json(instance).into_response())
}

/// This server.
#[utoipa::path(
    get, path = "/api/v2/instance", tag = "server", security(()),
    responses((status = 200, body = entities::InstanceV2)),
)]
pub(crate) async fn v2(State(app): State<Arc<App>>, address: Address) -> Response {
    let sign_up = app.people.sign_up.mode;
    let sign_up_page = address.url("/sign-up");
    let streaming = address.streaming();
    let instance = Instance {
        domain: address.domain(),
        title: app.own.info.name(),
        version: VERSION,
        source_url: env!("CARGO_PKG_REPOSITORY"),
        description: app.own.info.description(),
        usage: Usage {
            users: ActiveUsers { active_month: 0 },
        },
        thumbnail: Thumbnail {
            url: &address.url(PICTURE),
        },
        icon: &[],
        languages: &[],
        configuration: Configuration {
            offers: Some(Offers {
                urls: Urls {
                    streaming: &streaming,
                },
                vapid: Vapid { public_key: "" },
                translation: Translation { enabled: false },
            }),
            ..LIMITS
        },
        registrations: Registrations {
            enabled: sign_up != SignUpMode::Closed,
            approval_required: sign_up == SignUpMode::Approval,
            message: None,
            // An app without a form of its own sends people there.
            url: (sign_up != SignUpMode::Closed).then_some(&*sign_up_page),
        },
        api_versions: ApiVersions { mastodon: 2 },
        contact: Contact {
            email: &app.own.maintainer_mail,
            account: None,
        },
        rules: &[],
    };
    Json(instance).into_response()
}

/// The picture of this server.
const PICTURE: &str = "/icon.png";

/// Nothing can be posted here; these are the values of most servers.
const LIMITS: Configuration<'static> = Configuration {
    accounts: AccountLimits {
        max_featured_tags: 10,
        max_pinned_statuses: 5,
    },
    statuses: StatusLimits {
        max_characters: 500,
        max_media_attachments: 4,
        characters_reserved_per_url: 23,
    },
    media_attachments: MediaLimits {
        supported_mime_types: &[],
        description_limit: 1500,
        image_size_limit: 0,
        image_matrix_limit: 0,
        video_size_limit: 0,
        video_frame_rate_limit: 0,
        video_matrix_limit: 0,
    },
    polls: PollLimits {
        max_options: 4,
        max_characters_per_option: 50,
        min_expiration: 300,
        max_expiration: 2_629_746,
    },
    offers: None,
};

/// Begins with the Mastodon version whose API this is: clients derive the supported requests from it.
const VERSION: &str = concat!(
    "4.3.0 (compatible; Driftline ",
    env!("CARGO_PKG_VERSION"),
    ")"
);
