-- `reference_id`: the local ID by which public posts name a post that is hidden or not stored. The
-- row may be there before its post is: `post_id` is 0 then, which no post has.
alter table upstream_post add column reference_id {i64};
