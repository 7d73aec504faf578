-- The processes that share the work, each while its lease lasts and for a while after. `refusals` is
-- what it cannot do now; `sources` and `buckets` are how much of each it has.
create table member (
    name text {collate_c} primary key not null,
    nonce text not null,
    version text not null,
    share {i64} not null,
    draining {bool} not null,
    refusals text not null,
    sources {i64} not null,
    buckets {i64} not null,
    since_ms {i64} not null,
    seen_ms {i64} not null,
    lease_until_ms {i64} not null,
    left_ms {i64}
) {strict} {fillfactor 50};

-- A number that rises with everything that all members are to notice at once. An older program does
-- not raise it, and claims all that others give back, so it is refused.
create table sharing (
    one {i64} primary key not null,
    change {i64} not null
) {strict} {fillfactor 10};
insert into sharing (one, change) values (1, 0);
