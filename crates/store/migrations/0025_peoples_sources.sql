-- What people have of their own upstreams.
--
-- `suspended`: the account of its owner is frozen, so nothing is fetched for it, whatever `paused` says, which
-- is its owner's to decide.
alter table source add column suspended {bool} not null default false;
-- `owner_id`: the account whose token it is; 0 for the operator. It looks up only what that owner has.
alter table credential add column owner_id {i64} not null default 0;
