-- What servers say of themselves: those that are mirrored, and those that their authors belong to, which
-- have only a host until more is known. The ID follows from the host. `instance_id` is 0 for a server that
-- is not mirrored, and `next_ms`, when it is to be asked again, null.
create table instance_info (
    id {i64} primary key not null,
    origin text {collate_c} not null,
    instance_id {i64} not null,
    name text not null,
    description text not null,
    version text not null,
    software_name text not null,
    extensions text not null,
    maintainer_name text not null,
    fetched_ms {i64},
    next_ms {i64}
) {strict} {fillfactor 90};
create index instance_info_next on instance_info (next_ms, id) where next_ms is not null;
