use driftline_db::Migration;

/// The schema's history: one file of `migrations` for each version.
///
/// On PostgreSQL the keys of what hangs from an instance contain it, so that it can be distributed by
/// that; there are no foreign keys and no sequences: see `docs/sql.md`.
#[rustfmt::skip]
pub static MIGRATIONS: &[Migration] = &[
    step(1, "timelines", 1, include_str!("../migrations/0001_timelines.sql")),
    step(2, "node leases", 2, include_str!("../migrations/0002_node_leases.sql")),
    step(3, "refresh", 3, include_str!("../migrations/0003_refresh.sql")),
    step(4, "streams", 4, include_str!("../migrations/0004_streams.sql")),
    step(5, "returns", 5, include_str!("../migrations/0005_returns.sql")),
    step(6, "history in work", 6, include_str!("../migrations/0006_history_in_work.sql")),
    step(7, "read ages", 7, include_str!("../migrations/0007_read_ages.sql")),
    step(8, "words", 8, include_str!("../migrations/0008_words.sql")),
    step(9, "post addresses", 8, include_str!("../migrations/0009_post_addresses.sql")),
    step(10, "libraries", 10, include_str!("../migrations/0010_libraries.sql")),
    step(11, "claim arrays", 11, include_str!("../migrations/0011_claim_arrays.sql")),
    step(12, "quarantine", 12, include_str!("../migrations/0012_quarantine.sql")),
    step(13, "absence", 13, include_str!("../migrations/0013_absence.sql")),
    step(14, "references", 14, include_str!("../migrations/0014_references.sql")),
    step(15, "instance locks", 15, include_str!("../migrations/0015_instance_locks.sql")),
    step(16, "members", 16, include_str!("../migrations/0016_members.sql")),
    step(17, "instance keys", 17, include_str!("../migrations/0017_instance_keys.sql")),
    step(18, "month partitions", 17, include_str!("../migrations/0018_month_partitions.sql")),
    step(19, "change feed", 17, include_str!("../migrations/0019_change_feed.sql")),
    step(20, "accounts", 17, include_str!("../migrations/0020_accounts.sql")),
    step(21, "audiences", 21, include_str!("../migrations/0021_audiences.sql")),
    step(22, "tokens", 17, include_str!("../migrations/0022_tokens.sql")),
    step(23, "notifications", 17, include_str!("../migrations/0023_notifications.sql")),
    // An older program that deletes an account would leave what that kept.
    step(24, "library objects", 24, include_str!("../migrations/0024_library_objects.sql")),
    step(25, "peoples sources", 25, include_str!("../migrations/0025_peoples_sources.sql")),
    step(26, "server keys", 25, include_str!("../migrations/0026_server_keys.sql")),
    // An older program would read the hidden sources of threads as any others.
    step(27, "threads", 27, include_str!("../migrations/0027_threads.sql")),
    // An older program that forgets an instance, or deletes an account, would leave what these say of them.
    step(28, "instance info", 28, include_str!("../migrations/0028_instance_info.sql")),
    // An older program would store posts without their names.
    step(29, "object uris", 29, include_str!("../migrations/0029_object_uris.sql")),
    step(30, "entries by place", 29, include_str!("../migrations/0030_entries_by_place.sql")),
];

const fn step(
    version: i64,
    name: &'static str,
    compat_version: i64,
    sql: &'static str,
) -> Migration {
    Migration {
        version,
        name,
        compat_version,
        sql,
    }
}
