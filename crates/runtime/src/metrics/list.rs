use super::{
    Counter, Gauge, Histogram,
    LabelValues::{Closed, Fixed, Open},
    Metric, MetricKind, MetricLabel, Part,
};

/// Declares [`METRICS`] and a handle for each metric. The comment of a metric is its help text.
macro_rules! metrics {
    ($($part:ident { $(
        $(#[doc = $help:literal])+
        $kind:ident $(($buckets:expr))? $handle:ident = $name:literal
            $({ $($label:ident: $values:expr),+ })? $(from $start:expr)?;
    )+ })+) => {
        $($(
            $(#[doc = $help])+
            pub const $handle: $kind<{ <[&str]>::len(&[$($(stringify!($label)),+)?]) }> =
                $kind(&Metric {
                    part: Part::$part,
                    name: $name,
                    kind: MetricKind::$kind $(($buckets))?,
                    labels: &[$($(MetricLabel {
                        name: stringify!($label),
                        values: $values,
                    }),+)?],
                    help: concat!($($help),+).trim_ascii(),
                    start: 0.0 $(+ $start)?,
                });
        )+)+

        /// All metrics, in the order of `docs/metrics.md`.
        pub static METRICS: &[&Metric] = &[$($($handle.0),+),+];
    };
}

metrics! {
Process {
    /// 1: the labels say which program this is.
    Gauge BUILD_INFO = "driftline_build_info" {
        version: Fixed(env!("CARGO_PKG_VERSION"), "the program's version")
    } from 1.0;
}
Store {
    /// 1 while the disk of the database file has less room than its reserve, so that nothing new is
    /// fetched or refreshed, else 0.
    Gauge INTAKE_PAUSED = "driftline_intake_paused";
    /// The bytes that may still be written to the disk of the database file; NaN on PostgreSQL.
    Gauge DISK_FREE = "driftline_disk_free_bytes" from f64::NAN;
    /// The size of the disk of the database file; NaN on PostgreSQL.
    Gauge DISK_TOTAL = "driftline_disk_total_bytes" from f64::NAN;
    /// The bytes that intake leaves free on the disk of the database file; NaN on PostgreSQL.
    Gauge DISK_RESERVE = "driftline_disk_reserve_bytes" from f64::NAN;
    /// The size of the database file; NaN on PostgreSQL.
    Gauge STORE_DATABASE_BYTES = "driftline_store_database_bytes" from f64::NAN;
    /// The size of the database file's write-ahead log; NaN on PostgreSQL.
    Gauge STORE_WAL_BYTES = "driftline_store_wal_bytes" from f64::NAN;
    /// Posts that wait for the search index, counted up to 2,001: with more than 2,000, polls wait for
    /// the index.
    Gauge INDEX_WAITING = "driftline_index_waiting_posts";
    /// The time of the snapshot in the last verified backup of the data folder's store, as Unix
    /// time, checked every 5 s; NaN without a backup.
    Gauge BACKUP_LAST_SUCCESS = "driftline_backup_last_success_timestamp_seconds" from f64::NAN;
}
Sources {
    /// 1 while the source fails or is stalled, else 0.
    Gauge SOURCE_FAILING = "driftline_source_failing" { source: Open(SOURCE) };
    /// 1 while the source is stalled, else 0: for 15 s no process has read it, or for 3 minutes its
    /// session has been at one step.
    Gauge SOURCE_STALLED = "driftline_source_stalled" { source: Open(SOURCE) };
    /// Deprecated: use driftline_source_stalled.
    Gauge SOURCE_STANDING_STILL = "driftline_source_standing_still" { source: Open(SOURCE) };
    /// The time of the last usable answer to a request, as Unix time; NaN once this process does
    /// not read the source any more.
    Gauge SOURCE_LAST_SUCCESS = "driftline_source_last_success_timestamp_seconds" {
        source: Open(SOURCE)
    };
    /// Requests of sources that were answered.
    Counter REQUESTS = "driftline_requests_total" { purpose: Closed(PURPOSES) };
    /// Requests of sources that failed or had no usable answer.
    Counter REQUEST_FAILURES = "driftline_request_failures_total" { kind: Closed(FAILURES) };
    /// Posts in the answers to requests of sources, each as often as it was fetched.
    Counter POSTS_FETCHED = "driftline_posts_fetched_total";
    /// Posts that were stored as new entries of a source.
    Counter POSTS_STORED = "driftline_posts_stored_total";
    /// Edits of entries that polls and streams showed.
    Counter EDITS = "driftline_edits_total";
    /// Deletions of entries that polls and streams showed.
    Counter DELETIONS = "driftline_deletions_total";
    /// Stored posts that a poll showed with other counts.
    Counter POSTS_RECOUNTED = "driftline_posts_recounted_total";
    /// Streams that are open.
    Gauge STREAM_CONNECTED = "driftline_stream_connected";
    /// Messages of streams.
    Counter STREAM_EVENTS = "driftline_stream_events_total" { kind: Closed(STREAM_MESSAGES) };
    /// Streams that were opened again after a failure.
    Counter STREAM_RECONNECTS = "driftline_stream_reconnects_total";
    /// Streams that failed or could not be opened.
    Counter STREAM_FAILURES = "driftline_stream_failures_total" { kind: Closed(FAILURES) };
}
Refresh {
    /// The time before which all due posts have been refreshed, as Unix time; NaN once this process
    /// does not refresh the instance any more.
    Gauge REFRESH_CAUGHT_UP = "driftline_refresh_caught_up_timestamp_seconds" {
        instance: Open(INSTANCE)
    };
    /// Deprecated: use driftline_refresh_caught_up_timestamp_seconds.
    Gauge REFRESH_OLDEST_OVERDUE = "driftline_refresh_oldest_overdue_seconds" {
        instance: Open(INSTANCE)
    };
    /// Posts that are due and not refreshed yet.
    Gauge REFRESH_OVERDUE_POSTS = "driftline_refresh_overdue_posts" { instance: Open(INSTANCE) };
    /// Posts with a due time.
    Gauge REFRESH_SCHEDULED_POSTS = "driftline_refresh_scheduled_posts" {
        instance: Open(INSTANCE)
    };
    /// The mean time since the counts of a post were fetched, by the age of posts.
    Gauge REFRESH_STALENESS = "driftline_refresh_staleness_seconds" {
        instance: Open(INSTANCE),
        younger_than: Open("the upper bound of the age, such as `3600s`")
    };
    /// Look-ups that were sent.
    Counter REFRESH_REQUESTS = "driftline_refresh_requests_total" { instance: Open(INSTANCE) };
    /// Posts in look-ups that were sent: with the number of look-ups this shows how full they are.
    Counter REFRESH_REQUESTED_POSTS = "driftline_refresh_requested_posts_total" {
        instance: Open(INSTANCE)
    };
    /// Posts that were looked up.
    Counter REFRESHED_POSTS = "driftline_refreshed_posts_total" { outcome: Closed(OUTCOMES) };
    /// Look-ups that failed.
    Counter REFRESH_FAILURES = "driftline_refresh_failures_total" { kind: Closed(FAILURES) };
    /// Claims whose lease ended before their answers were saved.
    Counter REFRESH_LOST_LEASES = "driftline_refresh_lost_leases_total";
    /// Posts that were rescheduled without a look-up, because the price of quota rose.
    Counter REFRESH_POSTPONED = "driftline_refresh_postponed_total";
    /// Posts of pending look-ups that were found and stored.
    Counter POSTS_HYDRATED = "driftline_posts_hydrated_total";
}
Sharing {
    /// Processes that share the work, this one included, as it last saw them.
    Gauge SHARING_MEMBERS = "driftline_sharing_members";
    /// The part of the work that this process should do.
    Gauge SHARING_SHARE = "driftline_sharing_share" { work: Closed(SHARED_WORK) };
    /// The part of the work that this process does: above its share, it gives the rest back.
    Gauge SHARING_HELD = "driftline_sharing_held" { work: Closed(SHARED_WORK) };
    /// Sources that this process has given back to others because it had more than its share.
    Counter SHARING_GIVEN_BACK = "driftline_sharing_given_back_total";
    /// Sources that this process has taken over from processes that vanished.
    Counter SHARING_TAKEN_OVER = "driftline_sharing_taken_over_total";
    /// Writes on a distributed database whose posts may not be visible on all nodes yet; readers of all instances are shown nothing newer than the first of them.
    Gauge OPEN_RESERVATIONS = "driftline_open_reservations";
}
Credentials {
    /// Requests that are left in the current window of a quota.
    Gauge QUOTA_REMAINING = "driftline_quota_remaining" {
        credential: Open(CREDENTIAL),
        scope: Open("what the server counts together")
    };
    /// Requests that a server rejected because there were too many.
    Counter THROTTLED = "driftline_throttled_total" { credential: Open(CREDENTIAL) };
}
IdService {
    /// IDs that were issued, by the user agents of clients; after 100 agents all others are `_others`.
    Counter ID_ISSUED = "driftline_id_issued_total" { agent: Open("the user agent") };
    /// Requests for IDs that were rejected.
    Counter ID_REFUSALS = "driftline_id_refusals_total" { kind: Closed(ID_REFUSAL_KINDS) };
    /// The time for which callers waited for a single ID when none was available at once.
    Histogram(ID_SECONDS) ID_WAIT = "driftline_id_wait_seconds";
    /// The time that a batch of IDs took.
    Histogram(ID_SECONDS) ID_BATCH = "driftline_id_batch_seconds";
    /// The clock less the mean of the peers' clocks; NaN while no peer answers.
    Gauge ID_CLOCK_OFFSET = "driftline_id_clock_offset_seconds" from f64::NAN;
    /// The difference by which the clock was set since the service started; a suspension of the
    /// machine shows too.
    Gauge ID_CLOCK_STEP = "driftline_id_clock_step_seconds";
    /// 1 while the node's window allows IDs, else 0.
    Gauge ID_LEASE_HELD = "driftline_id_lease_held" from f64::NAN;
    /// The remaining time of the node's window.
    Gauge ID_WINDOW_LEFT = "driftline_id_window_left_seconds" from f64::NAN;
    /// Failed attempts to extend the node's window.
    Counter ID_WINDOW_FAILURES = "driftline_id_window_failures_total";
    /// The remaining time of the layout.
    Gauge ID_LAYOUT_LEFT = "driftline_id_layout_left_seconds" from f64::NAN;
    /// Deprecated: use driftline_id_layout_left_seconds.
    Gauge ID_LAYOUT_DAYS_LEFT = "driftline_id_layout_days_left" from f64::NAN;
    /// Connections of Thrift clients that are open.
    Gauge ID_CONNECTIONS = "driftline_id_connections";
    /// Connections of Thrift clients that the service ended.
    Counter ID_CONNECTIONS_ENDED = "driftline_id_connections_ended_total" {
        reason: Closed(CONNECTION_ENDS)
    };
}
}

const SOURCE: &str = "the source's name";
const INSTANCE: &str = "the server's origin";
const CREDENTIAL: &str = "the credential's name";
const SHARED_WORK: &[&str] = &["sources", "buckets"];
const PURPOSES: &[&str] = &[
    "poll",
    "fill",
    "second_look",
    "rung",
    "probe",
    "recheck",
    "dated_ahead",
    "look_up",
];
const FAILURES: &[&str] = &[
    "unreachable",
    "timed_out",
    "tls",
    "private_address",
    "redirected",
    "unauthorized",
    "forbidden",
    "not_found",
    "throttled",
    "capped",
    "server_error",
    "refused",
    "unexpected_status",
    "not_json",
    "bad_json",
    "error_body",
    "truncated",
    "too_large",
    "bad_id",
    "wrong_order",
];
const STREAM_MESSAGES: &[&str] = &["update", "edit", "delete", "other", "unusable"];
const OUTCOMES: &[&str] = &[
    "updated",
    "unchanged",
    "superseded",
    "missing",
    "deleted",
    "hidden",
    "failed",
    "no_credential",
    "unsupported",
];
const ID_REFUSAL_KINDS: &[&str] = &[
    "clock_behind",
    "window_ahead",
    "window_ended",
    "layout_ended",
    "exhausted",
    "stopping",
    "forked",
    "unsigned",
    "user_agent",
    "other",
];
const CONNECTION_ENDS: &[&str] = &["room", "broken", "frame", "header", "slow", "unread"];
/// A tick of a layout lasts from 1 µs to 10 ms. A batch waits at most 10 s for its turn.
const ID_SECONDS: &[f64] = &[
    0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0,
];
