-- Hashes have a form: those of form 1 are of what a post's JSON means. Those of posts that are stored
-- already, of form 0, are computed again from the stored JSON when an answer shows the post, and
-- `former_hash` keeps what an entry may still have. Older programs would compare them wrongly.
alter table post add column hash_form {i64} not null default 0;
alter table post add column former_hash {i64};

-- `quarantine`: items of answers that no post could be read from, as they came. `item` is an item's
-- position, or a digest of its bytes where it shows none; then `above` and `below` are the IDs of the
-- items that it was listed between, and `above_key` and `below_key` their keys in the source's order.
create table quarantine (
    source_id {i64} not null,
    item text {collate_c} not null,
    position text,
    above text,
    below text,
    above_key text {collate_c},
    below_key text {collate_c},
    bytes {blob} not null,
    reason text not null,
    program text not null,
    first_seen_at_ms {i64} not null,
    last_seen_at_ms {i64} not null,
    primary key (source_id, item)
) {strict};
