-- The replica itself: whose it is, and how far it is.
create table replica (
    one {i64} primary key not null check (one = 1),
    -- The server and account, the progress of the library, the identity of this device, and others (`ReplicaRow`), as JSON.
    state text not null
) {strict};

create table object (
    key text primary key not null {collate_c},
    -- The server's version; without a USN there is none, without a value it is a tombstone.
    base_usn {i64},
    base_value text,
    -- The digest of the server's version (`core::sync::object_digest`); null if there is none.
    base_digest {i64},
    -- The value here, as JSON; null if it was deleted here.
    value text,
    -- The number of the edit that made it dirty; 0 if it is clean.
    generation {i64} not null,
    -- The number of the full sync in which it came last.
    seen_in {i64} not null
) {strict};

create index object_dirty on object (generation) where generation <> 0;

create index object_digest on object (base_digest) where base_digest is not null;

-- Edits that were not merged; those that a person, or a rule, has resolved stay here.
create table conflict (
    id {i64} primary key not null,
    key text not null,
    -- The value of this device, as JSON; null if it was deleted here.
    value text,
    -- The value that took its place, as JSON; null if there was none.
    theirs text,
    -- The server's value on which it is based, as JSON.
    base_value text,
    reason text not null,
    -- The words of the server.
    refusal text,
    at_ms {i64} not null,
    is_resolved {bool} not null
) {strict};

-- The push that was not answered yet. It is stored before it is sent.
create table pending_push (
    one {i64} primary key not null check (one = 1),
    -- The push, as JSON.
    push text not null
) {strict};

-- The libraries of sources of which this is a replica, too.
create table subscription (
    library text primary key not null {collate_c},
    -- The source's name, the filter, the progress, and others (`SubscriptionRow`), as JSON.
    state text not null
) {strict};

-- The objects of the subscriptions.
create table entry (
    library text not null {collate_c},
    key text not null {collate_c},
    -- The place in the source's timeline; 0 if the object is of a later version and has none.
    place {i64} not null,
    seen_in {i64} not null,
    -- The value, as JSON.
    value text not null,
    primary key (library, key)
) {strict};

create index entry_place on entry (library, place);

create index entry_newest on entry (place, library);

-- The newest profiles of authors that came from each library. A post has the profile of the time at which its source last
-- changed it.
create table author (
    -- The name as the server shows it, in lower case: accounts of the server are without a host.
    acct text not null {collate_c},
    library text not null {collate_c},
    display_name text not null,
    -- Mastodon's entity, as JSON.
    account text not null,
    -- The number of the full sync in which it came, or after which; 0 if only boosts have shown it, which may be old.
    seen_in {i64} not null,
    primary key (acct, library)
) {strict};

-- The places of entries that the search index has still to read. Searches read them one after the other.
create table unindexed_place (
    place {i64} primary key not null
) {strict};

-- The places that the search index knows, each with the terms of its entries in all libraries. After a change of the
-- terms (`driftline_mastodon::TEXT_EXTRACTION`) all places wait again.
create table indexed_place (
    place {i64} primary key not null,
    -- These two are the place and 0: a place has one document.
    post_id {i64} not null,
    instance_id {i64} not null,
    author_row {i64}
) {strict};

create index indexed_place_post on indexed_place (post_id, instance_id);

create virtual table place_terms
    using fts5(terms, content='', contentless_delete=1, detail=none, tokenize='ascii');

-- A place without entries leaves the index in the transaction of its last entry.
create trigger entry_removed after delete on entry
when not exists (select 1 from entry where place = old.place)
begin
    delete from place_terms
        where rowid in (select place from indexed_place where place = old.place);
    delete from indexed_place where place = old.place;
    delete from unindexed_place where place = old.place;
end;

create trigger entry_moved after update of place on entry
when old.place <> new.place and not exists (select 1 from entry where place = old.place)
begin
    delete from place_terms
        where rowid in (select place from indexed_place where place = old.place);
    delete from indexed_place where place = old.place;
    delete from unindexed_place where place = old.place;
end;
