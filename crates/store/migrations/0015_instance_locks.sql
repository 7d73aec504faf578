-- What sources of an instance share is protected by the instance's row, no longer by the clock's. A
-- program that takes the one does not exclude one that takes the other, so older ones are refused.
-- The IDs of accounts are random.
alter table local_clock drop column last_account_id;
