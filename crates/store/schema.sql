-- The schema of a store, one text for SQLite and PostgreSQL; words in braces differ between them
-- (`driftline_db::Dialect`).
--
-- * Times are Unix milliseconds. USNs and IDs are 64-bit integers.
-- * There are no foreign keys and no sequences. Tables of one instance's data have `instance_id`, which is
--   part of each of their keys on PostgreSQL, so that they can be distributed by it: docs/distribution.md.
--   SQLite keeps the shorter keys, which are unique without it. The keys of `entry` get it when the store is
--   distributed: with it, PostgreSQL planned look-ups through the wrong key while the table was empty.
-- * Keys of people's tables begin with the account, so that these can be distributed by it later.
-- * `fillfactor` leaves room on a page for updates of its rows.

-- The store itself ------------------------------------------------------------------------------------

-- The store's random names. A copy of its files has the same; a restored store gets another `nonce` and keeps `lineage`.
create table store_identity (
    one {i64} primary key not null,
    nonce text not null,
    lineage text not null
) {strict};

-- Each opening of the store. A library names the last one in which it gave a USN, so that a copy of the
-- store that went its own way can be recognised.
create table opening (
    id {i64} primary key not null,
    nonce text not null,
    opened_at_ms {i64} not null
) {strict};

-- The last IDs that were given. Its row is locked last and held to the commit, so that IDs become visible
-- in their order.
create table local_clock (
    one {i64} primary key not null,
    last_id {i64} not null,
    last_instance_id {i64} not null,
    last_source_id {i64} not null,
    last_credential_id {i64} not null,
    last_lookup_id {i64} not null,
    last_library_id {i64} not null
) {strict} {fillfactor 10};
insert into local_clock (one, last_id, last_instance_id, last_source_id, last_credential_id, last_lookup_id,
    last_library_id)
values (1, 0, 0, 0, 0, 0, 0);

-- What the processes of a store agree on about their keys. The key is the store's name, which a restored
-- store does not have.
create table server_keys (
    store_nonce text {collate_c} primary key not null,
    -- Recognises the key of sealed texts.
    fingerprint text not null,
    -- The keys of native tokens, sealed with that key.
    token_keys text not null
) {strict};

-- Whether one server has all rows: `single`, `begun` or `distributed`.
create table distribution (
    one {i64} primary key not null,
    state text not null
) {strict};
insert into distribution (one, state) values (1, 'single');

-- Writes on a distributed database that have taken IDs and may not be visible yet.
create table reservation (
    write_id {i64} primary key not null,
    instance_id {i64} not null,
    -- Of IDs of now: the first, and the last that may be among them.
    first_id {i64},
    last_id {i64},
    is_history {bool} not null,
    until_ms {i64} not null
) {strict};

-- Processes ------------------------------------------------------------------------------------------

-- The processes that share the work, each while its lease lasts and for a while after.
create table member (
    name text {collate_c} primary key not null,
    nonce text not null,
    version text not null,
    share {i64} not null,
    draining {bool} not null,
    -- What it cannot do now.
    refusals text not null,
    -- How many of each it has.
    sources {i64} not null,
    buckets {i64} not null,
    since_ms {i64} not null,
    seen_ms {i64} not null,
    lease_until_ms {i64} not null,
    left_ms {i64}
) {strict} {fillfactor 50};

-- A number that rises with everything that all members must notice at once.
create table sharing (
    one {i64} primary key not null,
    change {i64} not null
) {strict} {fillfactor 10};
insert into sharing (one, change) values (1, 0);

-- Which process issues IDs as which node. `record` is a `driftline_id::window::Record` as text; the columns
-- repeat those of its parts that statements compare.
create table node_lease (
    layout text {collate_c} not null,
    node {i64} not null,
    record text not null,
    lease_holder text,
    lease_fence {i64} not null,
    lease_until_ms {i64} not null,
    primary key (layout, node)
) {strict} {fillfactor 50};

-- Instances and sources ------------------------------------------------------------------------------

-- The servers that timelines come from.
create table instance (
    id {i64} primary key not null,
    origin text {collate_c} not null,
    api text not null default 'mastodon',
    batch_look_up {bool},
    -- Whether the operator has removed a source of it and kept the posts, which belong to no source.
    keeps_posts {bool} not null default false
) {strict};

-- Which instance the row of a name, or of an ID, lies with. It keeps the names of instances, sources and
-- credentials unique in the store.
create table directory (
    kind text {collate_c} not null,
    name text {collate_c} not null,
    id {i64} not null,
    instance_id {i64} not null,
    primary key (kind, name),
    unique (kind, id)
) {clustered};

-- What instances say about themselves.
create table instance_info (
    instance_id {i64} primary key not null,
    name text not null default '',
    description text not null default '',
    version text not null default '',
    software_name text not null default '',
    -- A list of texts, JSON.
    extensions text not null default '[]',
    maintainer_name text not null default '',
    -- Null until an answer came.
    fetched_at_ms {i64},
    -- When the instance is to be asked again. The process that moves it on asks.
    asks_at_ms {i64} not null
) {strict};

-- Timelines of instances that are mirrored.
create table source (
    id {i64} not null,
    instance_id {i64} not null,
    name text {collate_c} not null,
    timeline text not null,
    -- How its posts come: `core::source_kind`.
    kind text {collate_c} not null,
    upstream text not null,
    settings text not null,
    token text,
    -- The account that it belongs to; 0 for the operator.
    owner_id {i64} not null default 0,
    -- Who else may read it.
    audience text {collate_c} not null default 'private',
    -- Whether the operator has allowed its server to be in a private network.
    allow_private {bool} not null default false,
    paused {bool} not null,
    -- Whether its owner's account is frozen: then nothing is fetched for it, whatever `paused` says.
    suspended {bool} not null default false,
    -- Whether its posts are kept fresh. A post is refreshed unless all its sources say no.
    refreshing {bool} not null default true,
    readable {bool} not null,
    created_at_ms {i64} not null,
    -- The state of `core::timeline::Machine`, JSON.
    machine text not null,
    lease_holder text,
    lease_fence {i64} not null,
    lease_until_ms {i64} not null,
    primary key ({key id + instance_id})
) {strict} {fillfactor 50};

-- Ranges of a source's timeline that are not proven complete.
create table gap (
    source_id {i64} not null,
    instance_id {i64} not null,
    low text {collate_c} not null,
    high text {collate_c} not null,
    kind text not null,
    history {bool} not null,
    fill_requested {bool} not null,
    tries {i64} not null,
    -- At which age the range was read last.
    read_age_ms {i64} not null,
    from_ms {i64} not null,
    until_ms {i64} not null,
    primary key ({key source_id, low + instance_id})
) {clustered} {fillfactor 50};

-- Items of answers that no post could be read from, as they came.
create table quarantine (
    source_id {i64} not null,
    instance_id {i64} not null,
    -- The item's position, or a digest of its bytes where it shows none.
    item text {collate_c} not null,
    position text,
    -- Of an item without a position: the IDs of its neighbours, and their keys in the source's order.
    above text,
    below text,
    above_key text {collate_c},
    below_key text {collate_c},
    bytes {blob} not null,
    reason text not null,
    program text not null,
    first_seen_at_ms {i64} not null,
    last_seen_at_ms {i64} not null,
    primary key ({key source_id, item + instance_id})
) {strict};

-- The update counts of what one owner keeps and syncs: a source's entries, or an account's objects.
create table library (
    id {i64} not null,
    instance_id {i64} not null,
    owner_kind text {collate_c} not null,
    owner_id {i64} not null,
    update_count {i64} not null,
    -- The last opening in which it gave a USN. Opening 0 is no row.
    opening_id {i64} not null,
    -- Rises to make every copy of the library start again.
    epoch {i64} not null,
    -- The USN below which tombstones may be missing; 0 if there are all.
    horizon {i64} not null,
    primary key ({key id + instance_id}),
    unique ({key owner_id, owner_kind + instance_id})
) {strict} {fillfactor 50};

-- Each opening in which a library gave USNs, with the first of them: a copy of the library that has changes of another
-- history is recognised by these.
create table library_opening (
    library_id {i64} not null,
    instance_id {i64} not null,
    opening_id {i64} not null,
    first_usn {i64} not null,
    primary key ({key library_id, opening_id + instance_id})
) {clustered};

-- Posts ----------------------------------------------------------------------------------------------

-- Posts as one instance shows them.
create table post (
    id {i64} not null,
    instance_id {i64} not null,
    upstream_id text {collate_c} not null,
    uri text,
    url text,
    account_id {i64},
    first_source_id {i64} not null,
    created_at_ms {i64},
    edited_at_ms {i64},
    read_at_ms {i64} not null,
    deleted_at_ms {i64},
    visibility text not null,
    boost_of_upstream_id text,
    content_hash {i64} not null,
    -- To whom the answer was shown that the content is from (`ContentScope`); 0 for the world.
    content_scope {i64} not null default 0,
    -- Whether a source that the world may read has it.
    in_public {bool} not null default false,
    -- Whether the public timeline lists it, and at which ID if not at its own.
    listed {bool} not null,
    public_id {i64},
    -- Its server only claims to know it (`Post::is_claimed`).
    claimed {bool} not null default false,
    -- Whether it has that ID as history, which nothing announced.
    from_history {bool} not null default false,
    -- How often it was there again after its deletion. An entry with another count stands where readers saw
    -- the post go, so it is not shown there.
    returns {i64} not null default 0,
    raw text,
    primary key ({key id + instance_id})
) {strict} {fillfactor 90};
-- A post that is gone keeps its place for the copies of it that other instances still show.
create index post_listed on post (coalesce(public_id, id))
    where listed or deleted_at_ms is not null and in_public and visibility = 'public';
create index post_unlike_first on post (id) where returns > 0 or deleted_at_ms is not null;
-- An author's posts, for the look-ups that show whether the author can still be seen.
create index post_of_account on post (account_id, id)
    where boost_of_upstream_id is null and deleted_at_ms is null;
-- Posts are found by the last 18 characters of their addresses. IDs of most servers stand there, which grow
-- with time, so that new keys are neighbours: an index of random keys costs a third of the writes. PostgreSQL
-- refuses long keys. Where both addresses end alike, as Mastodon's do, one index has both.
create index post_uri on post (substr(uri, length(uri) - 17));
create index post_url on post (substr(url, length(url) - 17))
    where substr(url, length(url) - 17) is distinct from substr(uri, length(uri) - 17);

-- The content of posts as answers to narrower scopes showed it, where that is not the post's own.
create table scoped_content (
    post_id {i64} not null,
    instance_id {i64} not null,
    scope {i64} not null,
    content_hash {i64} not null,
    edited_at_ms {i64},
    read_at_ms {i64} not null,
    visibility text not null,
    raw text not null,
    primary key ({key post_id, scope + instance_id})
) {strict};

-- The searchable text of each version of a post that somebody may be shown.
create table post_text (
    post_id {i64} not null,
    instance_id {i64} not null,
    -- Of the version: `post.content_hash` of a post that is not deleted, or `scoped_content.content_hash`.
    content_hash {i64} not null,
    -- The version of the extraction that made the text (`PostText`).
    extraction {i64} not null,
    text text not null,
    -- The labels of tags, mentions, language, attachments and traits.
    labels text not null,
    primary key ({key post_id, content_hash + instance_id})
) {strict};

-- Posts that the search index has still to read.
create table index_pending (
    instance_id {i64} not null,
    post_id {i64} not null,
    -- When the post last changed what the index knows about it. It rises with each change.
    since_ms {i64} not null,
    primary key (instance_id, post_id)
) {clustered};

-- Posts that were edited, with which lists with a predicate have still to be compared.
create table edited_post (
    instance_id {i64} not null,
    post_id {i64} not null,
    -- The number in `post_history` of the first version that an edit ended since they were compared.
    seq {i64} not null,
    -- When the post was last edited. It rises with each edit.
    since_ms {i64} not null,
    primary key (instance_id, post_id)
) {clustered};

-- Finds the post of an upstream ID.
create table upstream_post (
    upstream_id text {collate_c} not null,
    instance_id {i64} not null,
    -- 0, which no post has, while only posts that refer to it are stored.
    post_id {i64} not null,
    -- The local ID by which public posts name a post that is hidden or not stored.
    reference_id {i64},
    -- What the post replies to, by its upstream ID: threads are read downward by it.
    reply_to_id text {collate_c},
    primary key (upstream_id, instance_id)
) {clustered};
create index upstream_post_reply on upstream_post (reply_to_id, instance_id, post_id)
    where reply_to_id is not null;

-- Finds posts and accounts by their names across servers (`core::names::object_uri`). Of an instance's objects with
-- one name the first has the row.
create table object_uri (
    -- Made from the name, which the object has itself.
    uri_key text {collate_c} not null,
    instance_id {i64} not null,
    kind text {collate_c} not null,
    object_id {i64} not null,
    -- How the name is known: `fetched` or `claimed`.
    known text not null,
    primary key (uri_key, instance_id, kind)
) {clustered};

-- Versions of posts that were replaced.
create table post_history (
    post_id {i64} not null,
    instance_id {i64} not null,
    seq {i64} not null,
    kind text not null,
    at_ms {i64} not null,
    -- When the version was made by an edit, as its server says: `post.edited_at_ms` while it was the current one.
    edited_at_ms {i64},
    -- As `post.content_scope`.
    content_scope {i64} not null default 0,
    raw text not null,
    primary key ({key post_id, seq + instance_id})
) {strict};

-- Accounts that instances have shown or named.
create table account (
    id {i64} not null,
    instance_id {i64} not null,
    upstream_id text {collate_c} not null,
    -- Empty while the account is only named.
    acct text not null,
    -- The ID under which people know the account: one for each name, whichever servers have shown it.
    acct_id {i64} not null default 0,
    uri text,
    primary key ({key id + instance_id}),
    unique (upstream_id, instance_id)
) {strict} {fillfactor 90};
create index account_acct on account (acct_id);

-- Accounts as sources have shown them: a source's readers see its own row and not what other sources were shown.
create table account_profile (
    source_id {i64} not null,
    instance_id {i64} not null,
    -- `account.id`.
    account_id {i64} not null,
    acct text not null,
    -- The name with its host, in lower case. People look accounts up by its beginning.
    acct_key text {collate_c} not null,
    -- As `account.acct_id`.
    acct_id {i64} not null,
    url text,
    display_name text not null,
    raw text not null,
    -- When the source first showed these names.
    seen_at_ms {i64} not null,
    -- The source's last USN when it first showed these names instead of others: replicas below it lack them.
    change_usn {i64},
    primary key ({key source_id, account_id + instance_id})
) {strict} {fillfactor 90};
create index account_profile_acct on account_profile (acct_id);
create index account_profile_acct_key on account_profile (acct_key);

-- The terms of `account_profile.display_name`, as in the search index: searches find authors by them.
create table nickname_term (
    term {i64} not null,
    source_id {i64} not null,
    instance_id {i64} not null,
    account_id {i64} not null,
    primary key ({key source_id, term, account_id + instance_id})
) {clustered};
create index nickname_term_account on nickname_term (account_id, source_id);

-- Accounts that were found by their names, each with its hidden source: `acct_id` is known to that source's
-- readers as if the source had a post of it.
create table fetched_account (
    source_id {i64} not null,
    acct_id {i64} not null,
    instance_id {i64} not null,
    primary key ({key source_id, acct_id + instance_id})
) {clustered};
create index fetched_account_acct on fetched_account (acct_id);

-- Entries --------------------------------------------------------------------------------------------

-- A post's place in a source.
create table entry (
    source_id {i64} not null,
    instance_id {i64} not null,
    id {i64} not null,
    post_id {i64} not null,
    -- The post's author, by `account.acct_id`.
    account_id {i64},
    position text {collate_c} not null,
    -- An ID of the time when history came, since its own ID is of its post's time. Entries came in the order of these
    -- IDs, or else of their own.
    arrival_id {i64},
    arrived_at_ms {i64} not null,
    first_usn {i64} not null,
    usn {i64} not null,
    -- The USN under which the source last reported an edit, a deletion, a departure or a return. Other USNs
    -- announce new counts, or new names of the author, only.
    change_usn {i64},
    content_hash {i64} not null,
    -- How narrow the post's visibility was at the most since it has its ID: 0 for everyone, 3 for those whom
    -- it names. Readers have passed the ID, so it is not shown to more.
    visibility {i64} not null default 3,
    -- The last USN under which it left the world, or the accounts that do not own the source: it ended, or was
    -- narrowed to be for fewer. Null if they never saw it. Their replicas are told about this end alone, since
    -- its other USNs count changes that they may not know of.
    left_world_usn {i64},
    left_members_usn {i64},
    -- Whether only a stream has shown the post at this place so far, no page.
    streamed {bool} not null default false,
    -- Whether the source no longer shows it: a tombstone.
    gone {bool} not null,
    -- Since when the source no longer lists a post that is not known to be deleted, and how often it has left.
    left_at_ms {i64},
    times_left {i64} not null default 0,
    -- What `left_at_ms` was before the post was deleted: should the post return, the entry has still left.
    left_before_ms {i64},
    -- When a page first lacked it that should list it; a page that shows it clears that.
    absent_at_ms {i64},
    -- `post.returns` when it was made.
    returns {i64} not null default 0,
    primary key (source_id, id),
    unique (source_id, position),
    unique (source_id, usn)
) {clustered} {fillfactor 90};
create index entry_arrival on entry (source_id, first_usn);
create index entry_changes on entry (source_id, change_usn) where change_usn is not null;
create index entry_left_world on entry (source_id, left_world_usn) where left_world_usn is not null;
create index entry_left_members on entry (source_id, left_members_usn) where left_members_usn is not null;
create index entry_of_post on entry (post_id, source_id) where id <> post_id;
create index entry_author on entry (account_id, id);
-- The entries of all sources in the order of their places, in which those of many authors are found.
create index entry_by_id on entry (id);

-- IDs that were given and do not lead to a post's own row.
create table entry_alias (
    id {i64} not null,
    instance_id {i64} not null,
    post_id {i64},
    -- The source whose entry has the ID, or had it; null for references.
    source_id {i64},
    primary key ({key id + instance_id})
) {strict};

-- Search ----------------------------------------------------------------------------------------------

-- Each write to the index locks this row first.
create table index_state (
    one {i64} primary key not null,
    -- The oldest version of the extraction (`post_text.extraction`) of which there may be documents.
    extraction {i64} not null
) {strict};
insert into index_state (one, extraction) values (1, 4);

-- The places that the search index knows: of entries, and of posts in the world's public timeline. On
-- PostgreSQL with the terms of their posts (`driftline_index::Term`), on SQLite these are in `place_terms`, and the
-- row of a post's author is here, because FTS5 is slow at finding many authors.
create table indexed_place (
    place {i64} not null,
    instance_id {i64} not null,
    post_id {i64} not null,
    {sqlite author_row integer,}
    {postgresql row_terms int[] not null,}
    {postgresql terms int[] not null,}
    primary key ({key place + instance_id})
) {strict};
create index indexed_place_post on indexed_place (post_id, instance_id);
{postgresql create index indexed_place_terms on indexed_place using gin (terms, row_terms);}
{sqlite create virtual table place_terms using fts5(terms, content='', contentless_delete=1, detail=none, tokenize='ascii');}

-- Refresh --------------------------------------------------------------------------------------------

-- How fresh each post is, and when it is due.
create table freshness (
    post_id {i64} not null,
    instance_id {i64} not null,
    bucket {i64} not null,
    post_created_at_ms {i64},
    first_at_ms {i64} not null,
    refreshed_at_ms {i64} not null,
    due_at_ms {i64},
    refreshes {i64} not null,
    failures {i64} not null,
    missing {bool} not null,
    outcome text,
    state_hash {i64},
    replies {i64},
    boosts {i64},
    favourites {i64},
    quotes {i64},
    views {i64},
    before_at_ms {i64},
    before_total {i64} not null,
    notified_at_ms {i64} not null,
    notified_total {i64} not null,
    primary key ({key post_id + instance_id})
) {strict} {fillfactor 80};

-- The index of `freshness.due_at_ms`: a post with a due time has exactly one row here, or is in exactly one
-- `claim_lease`.
create table schedule (
    bucket {i64} not null,
    due_at_ms {i64} not null,
    post_id {i64} not null,
    instance_id {i64} not null,
    primary key ({key bucket, due_at_ms, post_id + instance_id})
) {clustered};

-- Posts that a worker has claimed. On SQLite, where claims are in memory, it stays empty.
create table claim_lease (
    bucket {i64} not null,
    id {i64} not null,
    instance_id {i64} not null,
    holder text not null,
    until_ms {i64} not null,
    -- Of each claimed post, its row of the schedule. A row for each cost a fifth of the refreshes a second.
    buckets {i64_array} not null,
    due_times_ms {i64_array} not null,
    post_ids {i64_array} not null,
    primary key ({key bucket, id + instance_id})
) {strict};

-- The counts that posts had.
create table count_history (
    post_id {i64} not null,
    instance_id {i64} not null,
    at_ms {i64} not null,
    replies {i64},
    boosts {i64},
    favourites {i64},
    quotes {i64},
    views {i64},
    primary key ({key post_id, at_ms + instance_id})
) {clustered};

-- Posts whose changes the libraries are still to be notified of.
create table outbox (
    instance_id {i64} not null,
    post_id {i64} not null,
    since_ms {i64} not null,
    counts {bool} not null,
    primary key (instance_id, post_id)
) {clustered};

-- Posts that are still to be looked up.
create table pending_lookup (
    upstream_id text {collate_c} not null,
    instance_id {i64} not null,
    lookup_id {i64} not null,
    source_id {i64} not null,
    once {bool} not null,
    waits {bool} not null,
    primary key (upstream_id, instance_id)
) {strict};
create index pending_lookup_id on pending_lookup (lookup_id);
create index pending_lookup_waits on pending_lookup (source_id) where waits;
create index pending_lookup_failed on pending_lookup (source_id) where not waits;

-- What refreshing an instance has taught: what posts of each source get, and the price of quota, JSON.
create table learned_state (
    instance_id {i64} primary key not null,
    state text not null
) {strict} {fillfactor 50};

-- Credentials and quotas -----------------------------------------------------------------------------

-- Tokens for look-ups.
create table credential (
    id {i64} not null,
    instance_id {i64} not null,
    name text {collate_c} not null,
    place text,
    -- The account whose token it is; 0 for the operator. It looks up only what that owner has.
    owner_id {i64} not null default 0,
    -- Whether the operator has added it for look-ups; else it came with a source.
    is_added {bool} not null default false,
    monthly_posts {i64},
    quarantined_at_ms {i64},
    quarantine_until_ms {i64},
    quarantine_reason text,
    created_at_ms {i64} not null,
    primary key ({key id + instance_id})
) {strict};

-- What a credential has used of its limits, JSON.
create table quota (
    credential_id {i64} not null,
    instance_id {i64} not null,
    scope text {collate_c} not null,
    ledger text not null,
    primary key ({key credential_id, scope + instance_id})
) {clustered} {fillfactor 50};

-- Whether look-ups with a credential find live posts of a kind: only then a 404 may mean that a post of that
-- kind is deleted.
create table look_up_ability (
    credential_id {i64} not null,
    instance_id {i64} not null,
    kind text {collate_c} not null,
    finds {bool} not null,
    at_ms {i64} not null,
    primary key ({key credential_id, kind + instance_id})
) {clustered};

-- People: docs/social.md -----------------------------------------------------------------------------

-- Accounts of this server.
create table local_account (
    id {i64} primary key not null,
    name text not null,
    -- Folded in case, as `mail_key` is.
    name_key text {collate_c} not null unique,
    nickname text not null,
    state text {collate_c} not null,
    awaits_approval {bool} not null,
    role text {collate_c} not null,
    mail text not null,
    mail_key text {collate_c} not null unique,
    mail_verified_at_ms {i64} not null,
    created_at_ms {i64} not null,
    last_login_at_ms {i64},
    passphrase_hash {blob} not null,
    salt {blob} not null,
    hash_memory_kib {i64} not null,
    hash_passes {i64} not null,
    hash_lanes {i64} not null,
    normalization {i64} not null,
    reason text not null,
    -- The ID of the pending account that it was, which tokens name that its app was given at the sign-up.
    signed_up_as {i64} unique,
    -- The operator's permission to show its sources to the world.
    may_publish {bool} not null,
    -- Whether it is being removed: then it belongs to no person any more.
    deleting {bool} not null
) {strict} {fillfactor 80};

create table profile (
    account_id {i64} primary key not null,
    bio text not null,
    avatar text,
    header text,
    fields text not null,
    locked {bool} not null,
    bot {bool} not null,
    discoverable {bool} not null
) {strict} {fillfactor 80};

-- Sign-ups whose mail address is not verified yet.
create table pending_account (
    id {i64} primary key not null,
    name text not null,
    name_key text {collate_c} not null unique,
    mail text not null,
    mail_key text {collate_c} not null,
    passphrase_hash {blob} not null,
    salt {blob} not null,
    hash_memory_kib {i64} not null,
    hash_passes {i64} not null,
    hash_lanes {i64} not null,
    normalization {i64} not null,
    reason text not null,
    locale text not null,
    -- The page of ours that follows the first log-in.
    continue_to text,
    -- The digest of the random text that was mailed.
    state_digest {blob} not null,
    created_at_ms {i64} not null
) {strict};
create index pending_account_mail on pending_account (mail_key);
create index pending_account_age on pending_account (created_at_ms);

-- How an account stands to another one, and that one to it. Two accounts of this server have a row each,
-- which say the same. `…_id` is the local ID that the direction's last change took. `notified_id` is the local ID up to
-- which the account was notified of the other one's posts; null if it does not ask for that. `object_id` is the object of
-- the outgoing relation in the account's library.
create table relation (
    account_id {i64} not null,
    other_id {i64} not null,
    outgoing text {collate_c} not null,
    outgoing_id {i64} not null,
    incoming text {collate_c} not null,
    incoming_id {i64} not null,
    show_boosts {bool} not null,
    notified_id {i64},
    object_id {i64},
    primary key (account_id, other_id)
) {clustered};
create unique index relation_object on relation (account_id, object_id);
create index relation_outgoing on relation (account_id, outgoing, outgoing_id);
create index relation_incoming on relation (account_id, incoming, incoming_id);
create index relation_bell on relation (account_id) where notified_id is not null;

-- `id` is the mute's object. A mute stays after its end until it is removed.
create table mute (
    account_id {i64} not null,
    other_id {i64} not null,
    id {i64} not null,
    notifications {bool} not null,
    until_ms {i64},
    primary key (account_id, other_id),
    unique (account_id, id)
) {clustered};
create index mute_other on mute (other_id);

-- What an account wrote about another one, for itself.
create table account_note (
    account_id {i64} not null,
    other_id {i64} not null,
    id {i64} not null,
    text text not null,
    primary key (account_id, other_id)
) {clustered};
create unique index account_note_id on account_note (account_id, id);
create index account_note_other on account_note (other_id);

-- What an account is notified of. `id` is a local ID of when it happened; pages go by it.
create table notification (
    account_id {i64} not null,
    id {i64} not null,
    kind text {collate_c} not null,
    from_id {i64} not null,
    -- The post that it is about, as in `marked_post`.
    post_id {i64},
    instance_id {i64},
    created_at_ms {i64} not null,
    primary key (account_id, id)
) {clustered};
create index notification_from on notification (account_id, from_id);

-- Sources whose posts an account has in its home timeline.
create table home_source (
    account_id {i64} not null,
    source_id {i64} not null,
    primary key (account_id, source_id)
) {clustered};

-- What lets programs act for people. Secrets are kept as SHA-256 alone, and contain the account's ID -----

-- Programs, as they registered themselves.
create table app (
    client_id text {collate_c} primary key not null,
    id {i64} not null,
    secret_hash {blob} not null,
    name text not null,
    website text,
    -- One on each line.
    redirect_uris text not null,
    scopes text not null,
    created_at_ms {i64} not null,
    unique (id)
) {strict};

-- Codes that an app exchanges for a token, once. A used one stays until it expires, with the token that was
-- given for it, which is revoked if the code comes again.
create table authorization_code (
    account_id {i64} not null,
    hash {blob} not null,
    app_id {i64} not null,
    redirect_uri text not null,
    scopes text not null,
    challenge text,
    expires_at_ms {i64} not null,
    token_id {i64},
    primary key (account_id, hash)
) {clustered};

-- Tokens of Mastodon's API. `account_id` is 0 for those of an app alone.
create table access_token (
    account_id {i64} not null,
    hash {blob} not null,
    id {i64} not null,
    app_id {i64} not null,
    scopes text not null,
    created_at_ms {i64} not null,
    used_at_ms {i64} not null,
    primary key (account_id, hash),
    unique (account_id, id)
) {clustered};

-- Native tokens by the log-in that began them.
create table token_family (
    account_id {i64} not null,
    id {i64} not null,
    device text not null,
    -- The refresh tokens that may be used: for each its digest and when it was closed (core::social::RefreshTokens).
    refresh_tokens {blob} not null,
    created_at_ms {i64} not null,
    rotated_at_ms {i64} not null,
    ends_at_ms {i64} not null,
    primary key (account_id, id)
) {clustered};

-- Browsers that are logged in on our own pages.
create table web_session (
    account_id {i64} not null,
    hash {blob} not null,
    id {i64} not null,
    browser text not null,
    created_at_ms {i64} not null,
    ends_at_ms {i64} not null,
    primary key (account_id, hash),
    unique (account_id, id)
) {clustered};

-- What people keep: docs/library.md ------------------------------------------------------------------

-- Each object of an account's library, with those that were removed: copies of the library have to learn of
-- that. `first_usn` is of its first creation, `usn` of its last change.
create table library_object (
    account_id {i64} not null,
    -- An object that comes back after its removal gets another one.
    id {i64} not null,
    -- Names the object for good (`core::sync::ObjectKey`).
    key text {collate_c} not null,
    kind text {collate_c} not null,
    first_usn {i64} not null,
    usn {i64} not null,
    removed {bool} not null,
    -- `core::sync::object_digest`; null after each change, until somebody asks for the library's digest. 0 if the object has
    -- no value.
    digest {i64},
    -- The form of the value (`core::sync::VALUE_FORM`) that the digest is of.
    digest_form {i64},
    primary key (account_id, id)
) {clustered};
create unique index library_object_usn on library_object (account_id, usn);
create index library_object_removed on library_object (account_id, usn) where removed;
create index library_object_digest on library_object (account_id, digest, digest_form) where not removed;
create unique index library_object_key on library_object (account_id, key);

-- Posts that somebody bookmarked or favourited (`mark`).
create table marked_post (
    account_id {i64} not null,
    post_id {i64} not null,
    mark text {collate_c} not null,
    id {i64} not null,
    instance_id {i64} not null,
    -- Of a bookmark: the version of the post that the account was shown when the bookmark last took a USN; null if none.
    shown text {collate_c},
    primary key (account_id, post_id, mark)
) {clustered};
create unique index marked_post_page on marked_post (account_id, mark, id);
create index marked_post_copy on marked_post (post_id) where mark = 'bookmark';

create table list (
    account_id {i64} not null,
    id {i64} not null,
    title text not null,
    replies_policy text {collate_c} not null,
    exclusive {bool} not null,
    -- The JSON form of the predicate that selects the posts of a list without accounts.
    predicate text,
    -- The local ID up to which posts were notified; null if the list notifies nobody.
    notified_id {i64},
    -- The hash of the secret address of the list's feed, and who may read the posts in it: `world` or `owner`.
    feed_hash {blob},
    feed_readers text,
    primary key (account_id, id)
) {clustered};

create index list_bell on list (account_id) where notified_id is not null;

-- Posts that an edit brought into a list with a predicate. `id` is a local ID of when it did: the list shows the
-- post there instead of at its place.
create table list_entry (
    account_id {i64} not null,
    id {i64} not null,
    list_id {i64} not null,
    -- As in `marked_post`.
    post_id {i64} not null,
    instance_id {i64} not null,
    primary key (account_id, id)
) {clustered};
create index list_entry_page on list_entry (account_id, list_id, id);
create index list_entry_post on list_entry (account_id, post_id);

-- `member_id` is an account of this server or of another one, as in `relation`.
create table list_member (
    account_id {i64} not null,
    list_id {i64} not null,
    member_id {i64} not null,
    id {i64} not null,
    primary key (account_id, list_id, member_id)
) {clustered};
create index list_member_of on list_member (member_id, account_id);
create unique index list_member_id on list_member (account_id, id);

-- How far somebody has read a timeline, as apps say. `version` counts the changes.
create table marker (
    account_id {i64} not null,
    timeline text {collate_c} not null,
    id {i64} not null,
    last_read_id {i64} not null,
    version {i64} not null,
    updated_at_ms {i64} not null,
    primary key (account_id, timeline)
) {clustered};

-- `contexts` has names with spaces between them. Keywords and posts are parts of their filter.
create table filter (
    account_id {i64} not null,
    id {i64} not null,
    title text not null,
    contexts text not null,
    action text {collate_c} not null,
    expires_at_ms {i64},
    primary key (account_id, id)
) {clustered};

create table filter_keyword (
    account_id {i64} not null,
    id {i64} not null,
    filter_id {i64} not null,
    keyword text not null,
    whole_word {bool} not null,
    primary key (account_id, id)
) {clustered};
create index filter_keyword_filter on filter_keyword (account_id, filter_id);

create table filter_post (
    account_id {i64} not null,
    id {i64} not null,
    filter_id {i64} not null,
    instance_id {i64} not null,
    post_id {i64} not null,
    primary key (account_id, id),
    unique (account_id, filter_id, post_id)
) {clustered};

-- What people write about posts. `post_key` is the post's `uri`, or another name: the post need not be stored.
create table note (
    account_id {i64} not null,
    post_key text {collate_c} not null,
    id {i64} not null,
    text text not null,
    primary key (account_id, post_key)
) {clustered};

-- Posts that are not posted yet. `content` is JSON (`core::sync::DraftValue`).
create table draft (
    account_id {i64} not null,
    id {i64} not null,
    content text not null,
    primary key (account_id, id)
) {clustered};

-- The last push of each device that syncs, so that the same push again gets the same answer.
create table sync_device (
    account_id {i64} not null,
    device text {collate_c} not null,
    sequence {i64} not null,
    -- The hash of the push's body.
    push_hash text not null,
    answer text not null,
    used_at_ms {i64} not null,
    primary key (account_id, device)
) {clustered};
