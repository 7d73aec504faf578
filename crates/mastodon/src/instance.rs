//! The server, as it presents itself to clients. Other servers' instances leave members out, so
//! they are read as [`RawObject`](crate::RawObject)s.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::account::Account;

/// Mastodon's `Instance`.
#[derive(Debug, Clone, Serialize)]
pub struct Instance<'a> {
    /// The server's domain.
    pub domain: &'a str,
    /// Its name for people.
    pub title: &'a str,
    /// The version of its API and of its software.
    pub version: &'a str,
    /// Where its source code is.
    pub source_url: &'a str,
    /// What it is, in a sentence.
    pub description: &'a str,
    /// How much it is used.
    pub usage: Usage,
    /// Its picture.
    pub thumbnail: Thumbnail<'a>,
    /// Its icons, by size.
    pub icon: &'a [&'a RawValue],
    /// The languages of its people, ISO 639.
    pub languages: &'a [&'a str],
    /// Its limits and what it offers.
    pub configuration: Configuration<'a>,
    /// Whether accounts can be registered.
    pub registrations: Registrations<'a>,
    /// The versions of its APIs.
    pub api_versions: ApiVersions,
    /// Whom to ask.
    pub contact: Contact<'a>,
    /// Its rules.
    pub rules: &'a [&'a RawValue],
}

/// Mastodon's `V1::Instance`.
#[derive(Debug, Clone, Serialize)]
pub struct InstanceV1<'a> {
    /// The server's domain.
    pub uri: &'a str,
    /// Its name for people.
    pub title: &'a str,
    /// What it is, in a sentence.
    pub short_description: &'a str,
    /// What it is, HTML.
    pub description: &'a str,
    /// The address of its operator.
    pub email: &'a str,
    /// The version of its API and of its software.
    pub version: &'a str,
    /// Where its streams are.
    pub urls: UrlsV1<'a>,
    /// How much it holds.
    pub stats: Stats,
    /// The address of its picture.
    pub thumbnail: Option<&'a str>,
    /// The languages of its people, ISO 639.
    pub languages: &'a [&'a str],
    /// Whether accounts can be registered.
    pub registrations: bool,
    /// Whether its operator approves new accounts.
    pub approval_required: bool,
    /// Whether its people may invite others.
    pub invites_enabled: bool,
    /// Its limits.
    pub configuration: Configuration<'a>,
    /// The account of its operator.
    pub contact_account: Option<Account<'a>>,
    /// Its rules.
    pub rules: &'a [&'a RawValue],
}

/// How much a server is used.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Usage {
    /// By its accounts.
    pub users: ActiveUsers,
}

/// How many accounts use a server.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ActiveUsers {
    /// How many did in the last four weeks.
    pub active_month: u64,
}

/// A server's picture.
#[derive(Debug, Clone, Serialize)]
pub struct Thumbnail<'a> {
    /// Its address.
    pub url: &'a str,
}

/// Whether a server takes new accounts.
#[derive(Debug, Clone, Serialize)]
pub struct Registrations<'a> {
    /// Whether accounts can be registered.
    pub enabled: bool,
    /// Whether its operator approves them.
    pub approval_required: bool,
    /// Why none can be registered, HTML.
    pub message: Option<&'a str>,
    /// Where to register instead.
    pub url: Option<&'a str>,
}

/// The versions of a server's APIs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ApiVersions {
    /// Of Mastodon's.
    pub mastodon: u32,
}

/// Whom to ask about a server.
#[derive(Debug, Clone, Serialize)]
pub struct Contact<'a> {
    /// The address of its operator.
    pub email: &'a str,
    /// The account of its operator.
    pub account: Option<Account<'a>>,
}

/// Where the streams of a [`InstanceV1`] are.
#[derive(Debug, Clone, Serialize)]
pub struct UrlsV1<'a> {
    /// The address of its streams.
    pub streaming_api: &'a str,
}

/// How much a server holds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Stats {
    /// How many accounts it has.
    pub user_count: usize,
    /// How many posts they have written.
    pub status_count: usize,
    /// How many other servers it knows.
    pub domain_count: usize,
}

/// A server's limits; in an [`Instance`] also what it offers.
#[derive(Debug, Clone, Serialize)]
pub struct Configuration<'a> {
    /// Of accounts.
    pub accounts: AccountLimits,
    /// Of posts.
    pub statuses: StatusLimits,
    /// Of media.
    pub media_attachments: MediaLimits<'a>,
    /// Of polls.
    pub polls: PollLimits,
    /// What it offers.
    #[serde(flatten)]
    pub offers: Option<Offers<'a>>,
}

/// Limits of an account.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AccountLimits {
    /// The most hashtags that it features.
    pub max_featured_tags: u32,
    /// The most posts that it pins.
    pub max_pinned_statuses: u32,
}

/// Limits of a post.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StatusLimits {
    /// The most characters.
    pub max_characters: u32,
    /// The most media.
    pub max_media_attachments: u32,
    /// How many characters a link counts as.
    pub characters_reserved_per_url: u32,
}

/// Limits of a medium.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MediaLimits<'a> {
    /// The types that can be uploaded.
    pub supported_mime_types: &'a [&'a str],
    /// The most characters of its description.
    pub description_limit: u32,
    /// The largest picture, in bytes.
    pub image_size_limit: u64,
    /// The largest picture, in pixels.
    pub image_matrix_limit: u64,
    /// The largest film, in bytes.
    pub video_size_limit: u64,
    /// The most frames of a film a second.
    pub video_frame_rate_limit: u32,
    /// The largest frame of a film, in pixels.
    pub video_matrix_limit: u64,
}

/// Limits of a poll.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PollLimits {
    /// The most options.
    pub max_options: u32,
    /// The most characters of an option.
    pub max_characters_per_option: u32,
    /// The shortest time that it is open, in s.
    pub min_expiration: u32,
    /// The longest time that it is open, in s.
    pub max_expiration: u32,
}

/// What a server offers besides posts.
#[derive(Debug, Clone, Serialize)]
pub struct Offers<'a> {
    /// Where its streams are.
    pub urls: Urls<'a>,
    /// Notifications by Web Push.
    pub vapid: Vapid<'a>,
    /// Translations of posts.
    pub translation: Translation,
}

/// Where the streams of an [`Instance`] are.
#[derive(Debug, Clone, Serialize)]
pub struct Urls<'a> {
    /// The address of its streams.
    pub streaming: &'a str,
}

/// How a server signs its push messages.
#[derive(Debug, Clone, Serialize)]
pub struct Vapid<'a> {
    /// Its public key, base64; empty if it sends none.
    pub public_key: &'a str,
}

/// Translations of posts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Translation {
    /// Whether there are any.
    pub enabled: bool,
}
