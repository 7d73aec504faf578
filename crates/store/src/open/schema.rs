use driftline_db::Migration;

/// The schema as its first step. Until 0.1.0 is tagged, `schema.sql` is edited in place and this
/// stays the only step. A store that was made from another text is rejected.
pub static MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "schema",
    compat_version: 1,
    sql: include_str!("../../schema.sql"),
}];
