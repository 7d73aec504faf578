-- `left_at_ms`: since when a source no longer lists a post that is not known to be deleted; such an
-- entry is `gone` as a tombstone is, until a page shows it again. `absent_at_ms`: when a page lacked
-- it first that should list it; a page that shows it clears that. `times_left`: how often it has left.
-- `left_before_ms`: what `left_at_ms` was before the post was deleted. Should the post return, the
-- entry has still left.
alter table entry add column left_at_ms {i64};
alter table entry add column left_before_ms {i64};
alter table entry add column absent_at_ms {i64};
alter table entry add column times_left {i64} not null default 0;

-- An author's posts, for the look-ups that show whether the author is still to be seen.
create index post_of_account on post (account_id, id)
where boost_of_upstream_id is null and deleted_at_ms is null;

-- Whether look-ups with a credential find live posts of a kind: only then a 404 may mean that a post
-- of that kind is deleted.
create table look_up_ability (
    credential_id {i64} not null,
    kind text {collate_c} not null,
    finds {bool} not null,
    at_ms {i64} not null,
    primary key (credential_id, kind)
) {clustered};
