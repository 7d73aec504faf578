-- Names that say what they hold: `upstream_post` finds the post of an upstream ID, `outbox` holds
-- what libraries are to be notified of, `pending_lookup` the posts that are still to be looked up.
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
