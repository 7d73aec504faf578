-- What each post replies to, by its ID at the upstream: threads are read downward by it. Posts that are there get
-- theirs when they are edited or their thread is fetched; upward, each post says itself what it replies to.
alter table upstream_post add column reply_to_id text {collate_c};
create index upstream_post_reply on upstream_post (reply_to_id, instance_id, post_id)
    where reply_to_id is not null;
