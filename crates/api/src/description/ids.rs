//! The types of IDs, as the description names them: one schema for each entity, so that a client made from
//! the description mixes none up.

use utoipa::ToSchema;

macro_rules! ids {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => {
        $(
            $(#[doc = $doc])+
            #[derive(ToSchema)]
            #[schema(value_type = String, pattern = "^[0-9]{1,20}$", example = "3819239792640001")]
            pub(crate) struct $name(#[expect(dead_code, reason = "a description")] String);
        )+
    };
}

ids! {
    /// The ID of a status, or of its entry in a timeline: either finds it.
    StatusId;
    /// The ID of an account.
    AccountId;
    /// The ID of a list.
    ListId;
    /// The ID of a server, which follows from its host.
    InstanceId;
    /// The ID of a source.
    SourceId;
    /// The ID of a filter.
    FilterId;
    /// The ID of a keyword of a filter.
    FilterKeywordId;
    /// The ID of a status of a filter: not the status's own.
    FilterStatusId;
    /// The ID of a notification.
    NotificationId;
    /// The ID of an app.
    ApplicationId;
    /// The ID of something that is logged in, among those of its kind.
    DeviceId;
}

/// The key of a group of notifications.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^ungrouped-[0-9]{1,20}$", example = "ungrouped-3819239792640001")]
pub(crate) struct NotificationGroupKey(#[expect(dead_code, reason = "a description")] String);
