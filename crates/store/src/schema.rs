use driftline_db::Migration;

/// The schema's history: one file of `migrations` for each version.
///
/// Unique keys of large tables contain the key that would distribute them (a source, a post, an
/// upstream ID), there are no foreign keys and no sequences: see `docs/sql.md`.
pub static MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "timelines",
        compat_version: 1,
        sql: include_str!("../migrations/0001_timelines.sql"),
    },
    Migration {
        version: 2,
        name: "node leases",
        compat_version: 2,
        sql: include_str!("../migrations/0002_node_leases.sql"),
    },
    Migration {
        version: 3,
        name: "refresh",
        compat_version: 3,
        sql: include_str!("../migrations/0003_refresh.sql"),
    },
    Migration {
        version: 4,
        name: "streams",
        compat_version: 4,
        sql: include_str!("../migrations/0004_streams.sql"),
    },
    Migration {
        version: 5,
        name: "returns",
        compat_version: 5,
        sql: include_str!("../migrations/0005_returns.sql"),
    },
    Migration {
        version: 6,
        name: "history in work",
        compat_version: 6,
        sql: include_str!("../migrations/0006_history_in_work.sql"),
    },
    Migration {
        version: 7,
        name: "read ages",
        compat_version: 7,
        sql: include_str!("../migrations/0007_read_ages.sql"),
    },
    Migration {
        version: 8,
        name: "words",
        compat_version: 8,
        sql: include_str!("../migrations/0008_words.sql"),
    },
    Migration {
        version: 9,
        name: "post addresses",
        compat_version: 8,
        sql: include_str!("../migrations/0009_post_addresses.sql"),
    },
];
