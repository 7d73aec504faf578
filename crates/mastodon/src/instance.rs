//! The server's description of itself for clients. Other servers' instances omit members, so they
//! are read as [`RawObject`](crate::RawObject)s.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::account::Account;

/// Mastodon's `Instance`.
#[derive(Debug, Clone, Serialize)]
pub struct Instance<'a> {
    /// The server's domain.
    pub domain: &'a str,
    /// Its display name.
    pub title: &'a str,
    /// The version of its API and of its software.
    pub version: &'a str,
    /// The address of its source code.
    pub source_url: &'a str,
    /// A description in one sentence.
    pub description: &'a str,
    /// Its usage.
    pub usage: Usage,
    /// Its picture.
    pub thumbnail: Thumbnail<'a>,
    /// Its icons, by size.
    pub icon: &'a [&'a RawValue],
    /// The languages of its users, ISO 639.
    pub languages: &'a [&'a str],
    /// Its limits and features.
    pub configuration: Configuration<'a>,
    /// The rules of registration.
    pub registrations: Registrations<'a>,
    /// The versions of its APIs.
    pub api_versions: ApiVersions,
    /// The contact.
    pub contact: Contact<'a>,
    /// Its rules.
    pub rules: &'a [&'a RawValue],
}

/// Mastodon's `V1::Instance`.
#[derive(Debug, Clone, Serialize)]
pub struct InstanceV1<'a> {
    /// The server's domain.
    pub uri: &'a str,
    /// Its display name.
    pub title: &'a str,
    /// A description in one sentence.
    pub short_description: &'a str,
    /// A description, HTML.
    pub description: &'a str,
    /// The address of its operator.
    pub email: &'a str,
    /// The version of its API and of its software.
    pub version: &'a str,
    /// The addresses of its streams.
    pub urls: UrlsV1<'a>,
    /// Its statistics.
    pub stats: Stats,
    /// The address of its picture.
    pub thumbnail: Option<&'a str>,
    /// The languages of its users, ISO 639.
    pub languages: &'a [&'a str],
    /// True if accounts can be registered.
    pub registrations: bool,
    /// True if its operator approves new accounts.
    pub approval_required: bool,
    /// True if its users may invite others.
    pub invites_enabled: bool,
    /// Its limits.
    pub configuration: Configuration<'a>,
    /// The account of its operator.
    pub contact_account: Option<Account<'a>>,
    /// Its rules.
    pub rules: &'a [&'a RawValue],
}

/// The usage of a server.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Usage {
    /// The users.
    pub users: ActiveUsers,
}

/// The number of users of a server.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ActiveUsers {
    /// The number of active users in the last four weeks.
    pub active_month: u64,
}

/// A server's picture.
#[derive(Debug, Clone, Serialize)]
pub struct Thumbnail<'a> {
    /// Its address.
    pub url: &'a str,
}

/// The rules of registration at a server.
#[derive(Debug, Clone, Serialize)]
pub struct Registrations<'a> {
    /// True if accounts can be registered.
    pub enabled: bool,
    /// True if its operator approves them.
    pub approval_required: bool,
    /// The reason why registration is closed, HTML.
    pub message: Option<&'a str>,
    /// The address of a page for registration instead.
    pub url: Option<&'a str>,
}

/// The versions of a server's APIs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ApiVersions {
    /// The version of Mastodon's API.
    pub mastodon: u32,
}

/// The contact for questions about a server.
#[derive(Debug, Clone, Serialize)]
pub struct Contact<'a> {
    /// The address of its operator.
    pub email: &'a str,
    /// The account of its operator.
    pub account: Option<Account<'a>>,
}

/// The addresses of the streams of an [`InstanceV1`].
#[derive(Debug, Clone, Serialize)]
pub struct UrlsV1<'a> {
    /// The address of its streams.
    pub streaming_api: &'a str,
}

/// The statistics of a server.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Stats {
    /// The number of its accounts.
    pub user_count: usize,
    /// The number of their posts.
    pub status_count: usize,
    /// The number of other servers that it knows.
    pub domain_count: usize,
}

/// A server's limits, and in an [`Instance`] also its features.
#[derive(Debug, Clone, Serialize)]
pub struct Configuration<'a> {
    /// The limits of accounts.
    pub accounts: AccountLimits,
    /// The limits of posts.
    pub statuses: StatusLimits,
    /// The limits of media.
    pub media_attachments: MediaLimits<'a>,
    /// The limits of polls.
    pub polls: PollLimits,
    /// Its features.
    #[serde(flatten)]
    pub offers: Option<Offers<'a>>,
}

/// Limits of an account.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AccountLimits {
    /// The largest number of featured hashtags.
    pub max_featured_tags: u32,
    /// The largest number of pinned posts.
    pub max_pinned_statuses: u32,
}

/// Limits of a post.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StatusLimits {
    /// The largest number of characters.
    pub max_characters: u32,
    /// The largest number of media.
    pub max_media_attachments: u32,
    /// The number of characters that a link counts as.
    pub characters_reserved_per_url: u32,
}

/// Limits of a medium.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MediaLimits<'a> {
    /// The types that can be uploaded.
    pub supported_mime_types: &'a [&'a str],
    /// The largest number of characters of a description.
    pub description_limit: u32,
    /// The largest picture, in bytes.
    pub image_size_limit: u64,
    /// The largest picture, in pixels.
    pub image_matrix_limit: u64,
    /// The largest video, in bytes.
    pub video_size_limit: u64,
    /// The largest number of a video's frames per second.
    pub video_frame_rate_limit: u32,
    /// The largest frame of a video, in pixels.
    pub video_matrix_limit: u64,
}

/// Limits of a poll.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PollLimits {
    /// The largest number of options.
    pub max_options: u32,
    /// The largest number of characters of an option.
    pub max_characters_per_option: u32,
    /// The shortest duration, in s.
    pub min_expiration: u32,
    /// The longest duration, in s.
    pub max_expiration: u32,
}

/// The features of a server besides posts.
#[derive(Debug, Clone, Serialize)]
pub struct Offers<'a> {
    /// The addresses of its streams.
    pub urls: Urls<'a>,
    /// Notifications by Web Push.
    pub vapid: Vapid<'a>,
    /// Translations of posts.
    pub translation: Translation,
}

/// The addresses of the streams of an [`Instance`].
#[derive(Debug, Clone, Serialize)]
pub struct Urls<'a> {
    /// The address of its streams.
    pub streaming: &'a str,
}

/// The signature of a server's push messages.
#[derive(Debug, Clone, Serialize)]
pub struct Vapid<'a> {
    /// Its public key, base64; empty if it sends no push messages.
    pub public_key: &'a str,
}

/// Translations of posts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Translation {
    /// True if the server has translations.
    pub enabled: bool,
}
