//! Mastodon's entities as the description has them: the members that are always sent. Answers hold what servers
//! add to them, too.

#![expect(dead_code, reason = "descriptions")]

use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::description::ids::{
    AccountId, ApplicationId, FilterId, FilterKeywordId, FilterStatusId, ListId,
    NotificationGroupKey, NotificationId, StatusId,
};

/// A post. HTML is clean; see `docs/api.md`.
#[derive(ToSchema)]
pub(crate) struct Status {
    id: StatusId,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    edited_at: Option<String>,
    in_reply_to_id: Option<StatusId>,
    in_reply_to_account_id: Option<AccountId>,
    sensitive: bool,
    /// Plain text.
    spoiler_text: String,
    visibility: Visibility,
    language: Option<String>,
    /// Its name across servers.
    uri: String,
    url: Option<String>,
    replies_count: u64,
    reblogs_count: u64,
    favourites_count: u64,
    /// HTML.
    content: String,
    #[schema(no_recursion)]
    reblog: Option<Box<Status>>,
    account: Account,
    media_attachments: Vec<MediaAttachment>,
    mentions: Vec<Mention>,
    tags: Vec<Tag>,
    #[schema(value_type = Vec<Object>)]
    emojis: Vec<Map<String, Value>>,
    card: Option<PreviewCard>,
    poll: Option<Poll>,
    /// Of the caller's account; without one it is not sent, and neither are the next ones.
    #[schema(required = false, nullable = false)]
    favourited: Option<bool>,
    #[schema(required = false, nullable = false)]
    reblogged: Option<bool>,
    #[schema(required = false, nullable = false)]
    muted: Option<bool>,
    #[schema(required = false, nullable = false)]
    bookmarked: Option<bool>,
    #[schema(required = false, nullable = false)]
    pinned: Option<bool>,
    #[schema(required = false, nullable = false)]
    filtered: Option<Vec<FilterResult>>,
}

/// Who may see a status.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum Visibility {
    Public,
    Unlisted,
    Private,
    Direct,
}

/// An author.
#[derive(ToSchema)]
pub(crate) struct Account {
    id: AccountId,
    username: String,
    /// With its host.
    acct: String,
    /// Plain text.
    display_name: String,
    locked: bool,
    bot: bool,
    group: bool,
    discoverable: Option<bool>,
    created_at: String,
    /// HTML.
    note: String,
    url: String,
    avatar: String,
    avatar_static: String,
    header: String,
    header_static: String,
    followers_count: u64,
    following_count: u64,
    statuses_count: u64,
    last_status_at: Option<String>,
    #[schema(value_type = Vec<Object>)]
    emojis: Vec<Map<String, Value>>,
    fields: Vec<Field>,
}

/// The caller's own account.
#[derive(ToSchema)]
pub(crate) struct CredentialAccount {
    #[serde(flatten)]
    account: Account,
    source: AccountSource,
    role: Role,
}

/// What a profile is written with.
#[derive(ToSchema)]
struct AccountSource {
    privacy: Visibility,
    sensitive: bool,
    language: Option<String>,
    /// Plain text.
    note: String,
    fields: Vec<Field>,
    follow_requests_count: u64,
    hide_collections: bool,
    discoverable: Option<bool>,
    indexable: bool,
}

/// What an account may do beside what all may.
#[derive(ToSchema)]
struct Role {
    id: String,
    name: String,
    color: String,
    permissions: String,
    highlighted: bool,
}

/// An account that is muted.
#[derive(ToSchema)]
pub(crate) struct MutedAccount {
    #[serde(flatten)]
    account: Account,
    #[schema(format = DateTime)]
    mute_expires_at: Option<String>,
}

/// How the caller's account stands to another one.
#[derive(ToSchema)]
pub(crate) struct Relationship {
    id: AccountId,
    following: bool,
    showing_reblogs: bool,
    notifying: bool,
    languages: Option<Vec<String>>,
    followed_by: bool,
    blocking: bool,
    blocked_by: bool,
    muting: bool,
    muting_notifications: bool,
    #[schema(format = DateTime)]
    muting_expires_at: Option<String>,
    requested: bool,
    requested_by: bool,
    domain_blocking: bool,
    endorsed: bool,
    note: String,
}

/// Who follows an account, of those whom the caller's account follows.
#[derive(ToSchema)]
pub(crate) struct FamiliarFollowers {
    id: AccountId,
    accounts: Vec<Account>,
}

/// What somebody did that concerns the caller's account.
#[derive(ToSchema)]
pub(crate) struct Notification {
    id: NotificationId,
    #[schema(rename = "type")]
    kind: String,
    #[schema(format = DateTime)]
    created_at: String,
    group_key: String,
    account: Account,
    /// Of the kind `status`: the post.
    status: Option<Status>,
}

/// Notifications in groups, and the accounts that they name.
#[derive(ToSchema)]
pub(crate) struct GroupedNotifications {
    accounts: Vec<Account>,
    statuses: Vec<Status>,
    notification_groups: Vec<NotificationGroup>,
}

/// Notifications that belong together.
#[derive(ToSchema)]
struct NotificationGroup {
    group_key: NotificationGroupKey,
    notifications_count: u32,
    #[schema(rename = "type")]
    kind: String,
    most_recent_notification_id: u64,
    page_min_id: NotificationId,
    page_max_id: NotificationId,
    #[schema(format = DateTime)]
    latest_page_notification_at: String,
    sample_account_ids: Vec<AccountId>,
    /// Of the kind `status`: its post.
    status_id: Option<StatusId>,
}

/// Which notifications an account filters; each policy is `accept` here.
#[derive(ToSchema)]
pub(crate) struct NotificationPolicy {
    for_not_following: String,
    for_not_followers: String,
    for_new_accounts: String,
    for_private_mentions: String,
    for_limited_accounts: String,
    summary: NotificationPolicySummary,
}

/// How many notifications are filtered.
#[derive(ToSchema)]
struct NotificationPolicySummary {
    pending_requests_count: u32,
    pending_notifications_count: u32,
}

/// The thread around a status.
#[derive(ToSchema)]
pub(crate) struct Context {
    ancestors: Vec<Status>,
    descendants: Vec<Status>,
}

/// What is found.
#[derive(ToSchema)]
pub(crate) struct Search {
    accounts: Vec<Account>,
    statuses: Vec<Status>,
    hashtags: Vec<Tag>,
}

/// An app.
#[derive(ToSchema)]
pub(crate) struct Application {
    id: ApplicationId,
    name: String,
    website: Option<String>,
    scopes: Vec<String>,
    redirect_uris: Vec<String>,
    redirect_uri: String,
    vapid_key: String,
}

/// An app, as it is registered.
#[derive(ToSchema)]
pub(crate) struct CredentialApplication {
    id: ApplicationId,
    name: String,
    website: Option<String>,
    scopes: Vec<String>,
    redirect_uris: Vec<String>,
    redirect_uri: String,
    vapid_key: String,
    client_id: String,
    /// Shown this once.
    client_secret: String,
    client_secret_expires_at: u64,
}

/// A row of a profile.
#[derive(ToSchema)]
struct Field {
    /// Plain text.
    name: String,
    /// HTML.
    value: String,
}

/// A picture, film or sound.
#[derive(ToSchema)]
struct MediaAttachment {
    #[schema(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
    preview_url: Option<String>,
    description: Option<String>,
    blurhash: Option<String>,
}

/// An account that a status names.
#[derive(ToSchema)]
struct Mention {
    id: Option<AccountId>,
    username: String,
    acct: String,
    url: String,
}

/// A hashtag.
#[derive(ToSchema)]
pub(crate) struct Tag {
    name: String,
    url: String,
}

/// The preview of a page.
#[derive(ToSchema)]
struct PreviewCard {
    url: Option<String>,
    title: Option<String>,
    description: Option<String>,
    /// HTML of frames and media alone.
    html: Option<String>,
}

/// A poll.
#[derive(ToSchema)]
struct Poll {
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    expired: bool,
    multiple: bool,
    votes_count: u64,
    voters_count: Option<u64>,
    #[schema(value_type = Vec<Object>)]
    options: Vec<Map<String, Value>>,
    #[schema(value_type = Vec<Object>)]
    emojis: Vec<Map<String, Value>>,
}

/// A version of a status.
#[derive(ToSchema)]
pub(crate) struct StatusEdit {
    /// HTML.
    content: String,
    /// Plain text.
    spoiler_text: String,
    sensitive: bool,
    #[schema(format = DateTime)]
    created_at: String,
    account: Account,
    media_attachments: Vec<MediaAttachment>,
    #[schema(value_type = Vec<Object>)]
    emojis: Vec<Map<String, Value>>,
}

/// A list.
#[derive(ToSchema)]
pub(crate) struct List {
    id: ListId,
    title: String,
    replies_policy: RepliesPolicy,
    /// Whether the posts of its accounts are left out of the home timeline.
    exclusive: bool,
}

/// Which replies a list shows.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum RepliesPolicy {
    /// To accounts that its owner follows.
    Followed,
    /// To its accounts.
    List,
    None,
}

/// What is hidden or marked.
#[derive(ToSchema)]
pub(crate) struct Filter {
    id: FilterId,
    title: String,
    context: Vec<FilterContext>,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    filter_action: FilterAction,
    keywords: Vec<FilterKeyword>,
    statuses: Vec<FilterStatus>,
}

/// A keyword of a filter, as apps see it that know version 1 of filters alone.
#[derive(ToSchema)]
#[schema(as = V1Filter)]
pub(crate) struct FilterV1 {
    id: FilterKeywordId,
    phrase: String,
    context: Vec<FilterContext>,
    whole_word: bool,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Whether what matches is left out: version 2's action `hide`.
    irreversible: bool,
}

/// Where a filter counts.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum FilterContext {
    Home,
    Notifications,
    Public,
    Thread,
    Account,
}

/// What apps do with a post that a filter matches.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum FilterAction {
    Warn,
    Hide,
    Blur,
}

/// A text that a filter matches.
#[derive(ToSchema)]
pub(crate) struct FilterKeyword {
    id: FilterKeywordId,
    keyword: String,
    whole_word: bool,
}

/// A status that a filter matches by its ID.
#[derive(ToSchema)]
pub(crate) struct FilterStatus {
    id: FilterStatusId,
    status_id: StatusId,
}

/// Why a post is hidden or marked.
#[derive(ToSchema)]
struct FilterResult {
    filter: MatchedFilter,
    keyword_matches: Option<Vec<String>>,
    status_matches: Option<Vec<StatusId>>,
}

/// A filter that matches, without its parts.
#[derive(ToSchema)]
struct MatchedFilter {
    id: FilterId,
    title: String,
    context: Vec<FilterContext>,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    filter_action: FilterAction,
}

/// How far timelines were read.
#[derive(ToSchema)]
pub(crate) struct Markers {
    home: Option<Marker>,
    notifications: Option<Marker>,
}

/// How far a timeline was read.
#[derive(ToSchema)]
struct Marker {
    last_read_id: String,
    version: u64,
    #[schema(format = DateTime)]
    updated_at: String,
}

/// What an account prefers.
#[derive(ToSchema)]
pub(crate) struct Preferences {
    #[schema(rename = "posting:default:visibility")]
    default_visibility: Visibility,
    #[schema(rename = "posting:default:sensitive")]
    default_sensitive: bool,
    #[schema(rename = "posting:default:language")]
    default_language: Option<String>,
    #[schema(rename = "posting:default:quote_policy")]
    default_quote_policy: String,
    #[schema(rename = "reading:expand:media")]
    expand_media: String,
    #[schema(rename = "reading:expand:spoilers")]
    expand_spoilers: bool,
    #[schema(rename = "reading:autoplay:gifs")]
    autoplay_gifs: bool,
}

/// A picture that stands for a name in texts.
#[derive(ToSchema)]
pub(crate) struct CustomEmoji {
    shortcode: String,
    url: String,
    static_url: String,
    visible_in_picker: bool,
    category: Option<String>,
}

/// This server, in the form of Mastodon's version 1.
#[derive(ToSchema)]
pub(crate) struct InstanceV1 {
    /// The domain.
    uri: String,
    title: String,
    short_description: String,
    /// HTML.
    description: String,
    email: String,
    version: String,
    #[schema(value_type = Object)]
    urls: Map<String, Value>,
    #[schema(value_type = Object)]
    stats: Map<String, Value>,
    thumbnail: Option<String>,
    languages: Vec<String>,
    registrations: bool,
    approval_required: bool,
    invites_enabled: bool,
    #[schema(value_type = Object)]
    configuration: Map<String, Value>,
    contact_account: Option<Account>,
    #[schema(value_type = Vec<Object>)]
    rules: Vec<Map<String, Value>>,
}

/// This server.
#[derive(ToSchema)]
pub(crate) struct InstanceV2 {
    domain: String,
    title: String,
    /// Begins with the version of Mastodon whose API this is.
    version: String,
    source_url: String,
    description: String,
    #[schema(value_type = Object)]
    usage: Map<String, Value>,
    #[schema(value_type = Object)]
    thumbnail: Map<String, Value>,
    languages: Vec<String>,
    #[schema(value_type = Object)]
    configuration: Map<String, Value>,
    #[schema(value_type = Object)]
    registrations: Map<String, Value>,
    #[schema(value_type = Object)]
    api_versions: Map<String, Value>,
    #[schema(value_type = Object)]
    contact: Map<String, Value>,
    #[schema(value_type = Vec<Object>)]
    rules: Vec<Map<String, Value>>,
}
