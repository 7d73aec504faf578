-- The instance becomes part of the key of everything that hangs from one, so that a distributed
-- database can find it there: `docs/distribution.md`. SQLite keeps its keys, which are unique
-- without.

-- Which instance the row of a name, or of an ID, lies with.
create table directory (
    kind text {collate_c} not null,
    name text {collate_c} not null,
    id {i64} not null,
    instance_id {i64} not null,
    primary key (kind, name),
    unique (kind, id)
) {clustered};
insert into directory (kind, name, id, instance_id)
select 'instance', origin, id, id from instance
union all select 'source', name, id, instance_id from source
union all select 'credential', name, id, instance_id from credential;

alter table gap add column instance_id {i64} not null default 0;
alter table quarantine add column instance_id {i64} not null default 0;
alter table entry add column instance_id {i64} not null default 0;
alter table library add column instance_id {i64} not null default 0;
alter table entry_alias add column instance_id {i64} not null default 0;
alter table post_history add column instance_id {i64} not null default 0;
alter table count_history add column instance_id {i64} not null default 0;
alter table freshness add column instance_id {i64} not null default 0;
alter table schedule add column instance_id {i64} not null default 0;
alter table claim_lease add column instance_id {i64} not null default 0;
alter table quota add column instance_id {i64} not null default 0;
alter table look_up_ability add column instance_id {i64} not null default 0;

update gap set instance_id =
    coalesce((select s.instance_id from source s where s.id = gap.source_id), 0);
update quarantine set instance_id =
    coalesce((select s.instance_id from source s where s.id = quarantine.source_id), 0);
update entry set instance_id =
    coalesce((select s.instance_id from source s where s.id = entry.source_id), 0);
update library set instance_id =
    coalesce((select s.instance_id from source s where s.id = library.owner_id), 0);
update freshness set instance_id = bucket / 8;
update schedule set instance_id = bucket / 8;
update claim_lease set instance_id = bucket / 8;
update post_history set instance_id =
    coalesce((select p.instance_id from post p where p.id = post_history.post_id), 0);
update count_history set instance_id =
    coalesce((select p.instance_id from post p where p.id = count_history.post_id), 0);
update quota set instance_id =
    coalesce((select c.instance_id from credential c where c.id = quota.credential_id), 0);
update look_up_ability set instance_id =
    coalesce((select c.instance_id from credential c where c.id = look_up_ability.credential_id), 0);
-- An alias without a post is a reference's, or what is left of a removed post: that keeps 0.
update entry_alias set instance_id = (select p.instance_id from post p where p.id = entry_alias.post_id)
where post_id in (select id from post);
update entry_alias set instance_id = u.instance_id
from upstream_post u where u.reference_id = entry_alias.id and entry_alias.instance_id = 0;

{postgresql alter table gap drop constraint gap_pkey, add primary key (source_id, low, instance_id),
    alter column instance_id drop default;}
{postgresql alter table quarantine drop constraint quarantine_pkey, add primary key (source_id, item, instance_id),
    alter column instance_id drop default;}
-- Its keys begin alike. With the instance in each, a plan that is made while the table is empty takes any
-- of them for a look-up by another; so they get it when the store is distributed.
{postgresql alter table entry alter column instance_id drop default;}
{postgresql alter table library drop constraint library_pkey, add primary key (id, instance_id),
    drop constraint library_owner_id_owner_kind_key, add unique (owner_id, owner_kind, instance_id),
    alter column instance_id drop default;}
{postgresql alter table entry_alias drop constraint entry_alias_pkey, add primary key (id, instance_id),
    alter column instance_id drop default;}
{postgresql alter table post_history drop constraint post_history_pkey, add primary key (post_id, seq, instance_id),
    alter column instance_id drop default;}
{postgresql alter table count_history drop constraint count_history_pkey, add primary key (post_id, at_ms, instance_id),
    alter column instance_id drop default;}
{postgresql alter table freshness drop constraint freshness_pkey, add primary key (post_id, instance_id),
    alter column instance_id drop default;}
{postgresql alter table schedule drop constraint schedule_pkey, add primary key (bucket, due_at_ms, post_id, instance_id),
    alter column instance_id drop default;}
{postgresql alter table claim_lease drop constraint claim_lease_pkey, add primary key (bucket, id, instance_id),
    alter column instance_id drop default;}
{postgresql alter table quota drop constraint quota_pkey, add primary key (credential_id, scope, instance_id),
    alter column instance_id drop default;}
{postgresql alter table look_up_ability drop constraint look_up_ability_pkey, add primary key (credential_id, kind, instance_id),
    alter column instance_id drop default;}
{postgresql alter table post drop constraint post_pkey, add primary key (id, instance_id);}
{postgresql alter table account drop constraint account_pkey, add primary key (id, instance_id);}
{postgresql alter table source drop constraint source_pkey, add primary key (id, instance_id),
    drop constraint source_name_key;}
{postgresql alter table credential drop constraint credential_pkey, add primary key (id, instance_id),
    drop constraint credential_name_key;}
{postgresql alter table instance drop constraint instance_origin_key;}

-- Whether one server has all rows.
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
    -- Of history: the highest ID that the public timeline is to show.
    listed_id {i64},
    until_ms {i64} not null
) {strict};
