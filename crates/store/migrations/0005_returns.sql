-- `public_id` is where the public timeline lists a post, if not at its own ID. `returns` counts how
-- often a post was there again after its deletion; an entry with another count still stands where
-- readers saw the post go, so it is not shown there.
alter table post add column public_id {i64};
alter table post add column returns {i64} not null default 0;
alter table entry add column returns {i64} not null default 0;
drop index post_listed;
create index post_listed on post (coalesce(public_id, id)) where listed;
create index post_unlike_first on post (id) where returns > 0 or deleted_at_ms is not null;
