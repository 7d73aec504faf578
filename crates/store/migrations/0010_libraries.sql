-- `library`: the update count of what one owner keeps and syncs; each source's own is the first
-- kind. `opening` is the history of the store's openings: a library names the last one in which it
-- gave a USN, and the first USN that it gave then, so that a copy of the store that went its own way
-- can be recognised. Opening 0 stands for all before openings were recorded.
create table opening (
    id {i64} primary key not null,
    nonce text not null,
    opened_at_ms {i64} not null
) {strict};

create table library (
    id {i64} primary key not null,
    owner_kind text {collate_c} not null,
    owner_id {i64} not null,
    update_count {i64} not null,
    opening_id {i64} not null,
    first_usn {i64} not null,
    unique (owner_id, owner_kind)
) {strict} {fillfactor 50};
insert into library (id, owner_kind, owner_id, update_count, opening_id, first_usn)
select id, 'source', id, update_count, 0, 1 from source;
alter table local_clock add column last_library_id {i64} not null default 0;
update local_clock set last_library_id = last_source_id;
alter table source drop column update_count;

-- The posts of a claim were one text in its lease. A claim lasts half a minute, so those that are
-- held are not kept: their posts are due again as they were, and their holders are told that they
-- lost them. Dropping the column comes first, because it keeps other processes from claiming.
alter table claim_lease drop column posts;
insert into schedule (bucket, due_at_ms, post_id)
select bucket, due_at_ms, post_id from freshness
where due_at_ms is not null and exists (select 1 from claim_lease)
    and not exists (select 1 from schedule where schedule.bucket = freshness.bucket
        and schedule.due_at_ms = freshness.due_at_ms and schedule.post_id = freshness.post_id);
delete from claim_lease;
-- `lease_bucket` and `lease_id` are its lease's key; the rest is its row of the schedule.
create table claimed_slot (
    lease_bucket {i64} not null,
    lease_id {i64} not null,
    bucket {i64} not null,
    due_at_ms {i64} not null,
    post_id {i64} not null,
    primary key (lease_bucket, lease_id, post_id)
) {clustered};

-- Posts are found by the last 18 characters of their addresses. IDs of most servers stand there,
-- which grow with time, so that new keys are neighbours: an index of random keys costs a third of
-- the writes. Where both addresses end alike, as Mastodon's do, one index has both.
drop index post_url;
drop index post_uri;
create index post_uri on post (substr(uri, length(uri) - 17));
create index post_url on post (substr(url, length(url) - 17))
where substr(url, length(url) - 17) is distinct from substr(uri, length(uri) - 17);
