-- A claim's posts are arrays in its lease: a row for each cost a fifth of the refreshes a second on
-- PostgreSQL. On SQLite, where claims are in memory, the table stays empty. Claims that are held
-- are due again, and their holders are told that they lost them. Dropping the table comes first,
-- because it keeps other processes from claiming.
drop table claim_lease;
insert into schedule (bucket, due_at_ms, post_id)
select bucket, due_at_ms, post_id from claimed_slot;
drop table claimed_slot;
create table claim_lease (
    bucket {i64} not null,
    id {i64} not null,
    holder text not null,
    until_ms {i64} not null,
    -- Of each claimed post: its row of the schedule.
    buckets {i64_array} not null,
    due_times_ms {i64_array} not null,
    post_ids {i64_array} not null,
    primary key (bucket, id)
) {strict};
