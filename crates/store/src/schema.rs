use driftline_db::Migration;

/// The schema's history.
///
/// Unique keys of large tables contain the key that would distribute them (a source, a post, an
/// upstream ID), there are no foreign keys and no sequences: see `docs/sql.md`.
pub static MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "timelines",
        sql: TIMELINES,
    },
    Migration {
        version: 2,
        name: "node leases",
        sql: NODE_LEASES,
    },
    Migration {
        version: 3,
        name: "refresh",
        sql: REFRESH,
    },
    Migration {
        version: 4,
        name: "streams",
        sql: STREAMS,
    },
    Migration {
        version: 5,
        name: "returns",
        sql: RETURNS,
    },
    Migration {
        version: 6,
        name: "history in work",
        sql: HISTORY_IN_WORK,
    },
    Migration {
        version: 7,
        name: "read ages",
        sql: READ_AGES,
    },
    Migration {
        version: 8,
        name: "words",
        sql: WORDS,
    },
];

const TIMELINES: &str = "
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
";

/// `record` is what a `driftline_id::window::Record` displays as. It holds the window, the node
/// and the fence too; the columns repeat what statements compare.
const NODE_LEASES: &str = "
create table node_lease (
    layout text {collate_c} not null,
    node {i64} not null,
    record text not null,
    lease_holder text,
    lease_fence {i64} not null,
    lease_until_ms {i64} not null,
    primary key (layout, node)
) {strict} {fillfactor 50};
";

/// `schedule` is the index of `freshness.due_at_ms`: a post with a due time has exactly one row
/// there, or is in exactly one `lease`. Posts of a store that had no refresh yet, of the last 30
/// days before the newest answer, come due within four hours of that.
const REFRESH: &str = "
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
";

/// `streamed`: only a stream has shown the post at this place so far, no page.
const STREAMS: &str = "
alter table entry add column streamed {bool} not null default false;
";

/// `read_age_ms`: at which age a range was read last. It was the number of a rung, whose age is not
/// known here: what waited for a rung above the second look is taken as read at that one's least
/// age, and read again.
const READ_AGES: &str = "
alter table gap rename column rung to read_age_ms;
update gap set read_age_ms = case when read_age_ms > 0 then 15000 else 0 end;
";

/// `public_id` is where the public timeline lists a post, if not at its own ID. `returns` counts how
/// often a post was there again after its deletion; an entry with another count still stands where
/// readers saw the post go, so it is not shown there.
const RETURNS: &str = "
alter table post add column public_id {i64};
alter table post add column returns {i64} not null default 0;
alter table entry add column returns {i64} not null default 0;
drop index post_listed;
create index post_listed on post (coalesce(public_id, id)) where listed;
create index post_unlike_first on post (id) where returns > 0 or deleted_at_ms is not null;
";

/// `lowest_id` is the lowest ID that was ever shown of a source, and `lowest_listed_id` bounds what
/// the public timeline ever showed: history is put below. A source whose history was still being
/// fetched is readable from now on.
const HISTORY_IN_WORK: &str = "
alter table source add column lowest_id {i64};
alter table local_clock add column lowest_listed_id {i64};
update source set lowest_id = (select min(id) from entry where source_id = source.id);
update local_clock set lowest_listed_id = (select min(id) from post);
update post set listed = true
where not listed and visibility = 'public' and deleted_at_ms is null
    and first_source_id in (select id from source where not readable)
    and id in (select post_id from entry
        where source_id in (select id from source where not readable));
update source set readable = true where not readable and lowest_id is not null;
";

/// Names that say what they hold: `upstream_post` finds the post of an upstream ID, `outbox` holds
/// what libraries are to be notified of, `pending_lookup` the posts that are still to be looked up.
const WORDS: &str = "
alter table seen rename to upstream_post;
alter table untold rename to outbox;
alter table lease rename to claim_lease;
alter table experience rename to learned_state;
alter table wanted rename to pending_lookup;
alter table pending_lookup rename column ticket to lookup_id;
drop index wanted_ticket;
drop index wanted_waits;
drop index wanted_in_vain;
create index pending_lookup_id on pending_lookup (lookup_id);
create index pending_lookup_waits on pending_lookup (source_id) where waits;
create index pending_lookup_failed on pending_lookup (source_id) where not waits;
alter table local_clock rename column last_ticket to last_lookup_id;
alter table gap rename column wanted to fill_requested;
alter table freshness rename column born_at_ms to post_created_at_ms;
alter table freshness rename column living_hash to state_hash;
alter table freshness rename column told_at_ms to notified_at_ms;
alter table freshness rename column told_total to notified_total;
";
