create table store_identity (
    one {i64} primary key not null,
    nonce text not null
) {strict};

create table local_clock (
    one {i64} primary key not null,
    last_id {i64} not null,
    last_instance_id {i64} not null,
    last_source_id {i64} not null,
    last_account_id {i64} not null
) {strict} {fillfactor 10};
insert into local_clock (one, last_id, last_instance_id, last_source_id, last_account_id)
values (1, 0, 0, 0, 0);

create table instance (
    id {i64} primary key not null,
    origin text {collate_c} not null,
    unique (origin)
) {strict};

create table source (
    id {i64} primary key not null,
    instance_id {i64} not null,
    name text {collate_c} not null,
    timeline text not null,
    upstream text not null,
    settings text not null,
    token text,
    paused {bool} not null,
    readable {bool} not null,
    update_count {i64} not null,
    created_at_ms {i64} not null,
    lease_holder text,
    lease_fence {i64} not null,
    lease_until_ms {i64} not null,
    machine text not null,
    unique (name)
) {strict} {fillfactor 50};

create table gap (
    source_id {i64} not null,
    low text {collate_c} not null,
    high text {collate_c} not null,
    kind text not null,
    history {bool} not null,
    wanted {bool} not null,
    tries {i64} not null,
    rung {i64} not null,
    from_ms {i64} not null,
    until_ms {i64} not null,
    primary key (source_id, low)
) {clustered} {fillfactor 50};

create table seen (
    upstream_id text {collate_c} not null,
    instance_id {i64} not null,
    post_id {i64} not null,
    primary key (upstream_id, instance_id)
) {clustered};

create table post (
    id {i64} primary key not null,
    instance_id {i64} not null,
    upstream_id text {collate_c} not null,
    uri text,
    url text,
    account_id {i64},
    first_source_id {i64} not null,
    created_at_ms {i64},
    edited_at_ms {i64},
    read_at_ms {i64} not null,
    visibility text not null,
    boost_of_upstream_id text,
    content_hash {i64} not null,
    deleted_at_ms {i64},
    listed {bool} not null,
    raw text
) {strict} {fillfactor 90};
create index post_listed on post (id) where listed;

create table post_history (
    post_id {i64} not null,
    seq {i64} not null,
    kind text not null,
    at_ms {i64} not null,
    raw text not null,
    primary key (post_id, seq)
) {strict};

create table entry (
    source_id {i64} not null,
    id {i64} not null,
    post_id {i64} not null,
    position text {collate_c} not null,
    first_usn {i64} not null,
    usn {i64} not null,
    arrived_at_ms {i64} not null,
    content_hash {i64} not null,
    gone {bool} not null,
    listed {bool} not null,
    primary key (source_id, id),
    unique (source_id, position),
    unique (source_id, usn)
) {clustered} {fillfactor 90};
create index entry_arrival on entry (source_id, first_usn);
create index entry_listed on entry (source_id, id) where listed;
create index entry_of_other_post on entry (source_id, post_id) where id <> post_id;

create table entry_alias (
    id {i64} primary key not null,
    post_id {i64}
) {strict};

create table account (
    id {i64} primary key not null,
    instance_id {i64} not null,
    upstream_id text {collate_c} not null,
    acct text not null,
    display_name text not null,
    url text,
    raw text not null,
    unique (upstream_id, instance_id)
) {strict} {fillfactor 90};
