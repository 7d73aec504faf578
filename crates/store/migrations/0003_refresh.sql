-- `schedule` is the index of `freshness.due_at_ms`: a post with a due time has exactly one row
-- there, or is in exactly one `lease`. Posts of a store that had no refresh yet, of the last 30
-- days before the newest answer, come due within four hours of that.
alter table instance add column api text not null default 'mastodon';
alter table instance add column batch_look_up {bool};

create table freshness (
    post_id {i64} primary key not null,
    bucket {i64} not null,
    born_at_ms {i64},
    first_at_ms {i64} not null,
    refreshed_at_ms {i64} not null,
    due_at_ms {i64},
    refreshes {i64} not null,
    failures {i64} not null,
    missing {bool} not null,
    outcome text,
    living_hash {i64},
    replies {i64},
    boosts {i64},
    favourites {i64},
    quotes {i64},
    views {i64},
    before_at_ms {i64},
    before_total {i64} not null,
    told_at_ms {i64} not null,
    told_total {i64} not null
) {strict} {fillfactor 80};

create table schedule (
    bucket {i64} not null,
    due_at_ms {i64} not null,
    post_id {i64} not null,
    primary key (bucket, due_at_ms, post_id)
) {clustered};

create table lease (
    bucket {i64} not null,
    id {i64} not null,
    holder text not null,
    until_ms {i64} not null,
    posts text not null,
    primary key (bucket, id)
) {strict};

create table count_history (
    post_id {i64} not null,
    at_ms {i64} not null,
    replies {i64},
    boosts {i64},
    favourites {i64},
    quotes {i64},
    views {i64},
    primary key (post_id, at_ms)
) {clustered};

create table untold (
    instance_id {i64} not null,
    post_id {i64} not null,
    since_ms {i64} not null,
    counts {bool} not null,
    primary key (instance_id, post_id)
) {clustered};

alter table local_clock add column last_credential_id {i64} not null default 0;
alter table local_clock add column last_ticket {i64} not null default 0;

create table wanted (
    upstream_id text {collate_c} not null,
    instance_id {i64} not null,
    ticket {i64} not null,
    source_id {i64} not null,
    once {bool} not null,
    waits {bool} not null,
    primary key (upstream_id, instance_id)
) {strict};
create index wanted_ticket on wanted (ticket);
create index wanted_waits on wanted (source_id) where waits;
create index wanted_in_vain on wanted (source_id) where not waits;

create table experience (
    instance_id {i64} primary key not null,
    state text not null
) {strict} {fillfactor 50};

create table credential (
    id {i64} primary key not null,
    instance_id {i64} not null,
    name text {collate_c} not null,
    place text,
    monthly_posts {i64},
    quarantined_at_ms {i64},
    quarantine_until_ms {i64},
    quarantine_reason text,
    created_at_ms {i64} not null,
    unique (name)
) {strict};

create table quota (
    credential_id {i64} not null,
    scope text {collate_c} not null,
    ledger text not null,
    primary key (credential_id, scope)
) {clustered} {fillfactor 50};

insert into freshness (post_id, bucket, born_at_ms, first_at_ms, refreshed_at_ms, due_at_ms,
    refreshes, failures, missing, before_total, told_at_ms, told_total)
select id, instance_id * 8 + id % 8, created_at_ms, read_at_ms, read_at_ms,
    case when created_at_ms > newest.at_ms - 2592000000
        then newest.at_ms + id % 14400 * 1000 end,
    0, 0, false, 0, read_at_ms, 0
from post, (select coalesce(max(read_at_ms), 0) as at_ms from post) as newest
where created_at_ms is not null;
update freshness set due_at_ms = null
where post_id in (select id from post where deleted_at_ms is not null);
insert into schedule (bucket, due_at_ms, post_id)
select bucket, due_at_ms, post_id from freshness where due_at_ms is not null;
