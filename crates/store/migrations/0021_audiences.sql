-- Whose sources are, and who may read them.
--
-- note: sources that are read with a token are private to you from now on; `driftline source set NAME --audience public` or `members` shares their public posts
--
-- `owner_id`: the account whose source it is; 0 for the operator. `audience`: who else may read it. What
-- is read with a token may be meant for the token's owner alone.
alter table source add column owner_id {i64} not null default 0;
alter table source add column audience text {collate_c} not null default 'private';
update source set audience = case when token is null then 'public' else 'private' end;

-- `acct_key`: the account's name with its host, in lower case; empty while it is only named.
-- `acct_id`: the ID under which people know it, one for each name, whichever servers have shown it.
alter table account add column acct_key text {collate_c} not null default '';
alter table account add column acct_id {i64} not null default 0;
update account set acct_key = lower(case
    when acct like '%@%' then acct
    else acct || '@' || replace(replace(
        (select origin from instance i where i.id = account.instance_id), 'https://', ''), 'http://', '')
    end)
where acct <> '';
update account set acct_id = id where acct_key = '';
update account set acct_id = 4611686018427387904 + {hash60 acct_key} where acct_key <> '';
create index account_acct on account (acct_id);

-- `account_id`: its post's author. `visibility`: how narrow its post's visibility was at the most since it
-- has its ID (0 for everyone, 3 for those it names): readers have passed it, so it is not shown to more.
-- `place_id`: where timelines of several sources list it, if not at its ID: history, below all that
-- any of them has shown.
alter table entry add column account_id {i64};
alter table entry add column visibility {i64} not null default 3;
alter table entry add column place_id {i64};
-- `arrival_id`: of history, the last ID of when it came. Entries came in the order of these IDs, or else of
-- their own, and what came with one of them in the order from high places to low ones.
alter table entry add column arrival_id {i64};
update entry set
    account_id = (select a.acct_id from post p
        join account a on a.id = p.account_id and a.instance_id = p.instance_id
        where p.id = entry.post_id and p.instance_id = entry.instance_id),
    visibility = coalesce((select case p.visibility
            when 'public' then case when entry.listed or entry.gone then 0 else 1 end
            when 'unlisted' then 1 when 'private' then 2 else 3 end
        from post p where p.id = entry.post_id and p.instance_id = entry.instance_id), 3),
    -- A post's first entry stands where the public timeline has the post.
    place_id = (select p.public_id from post p
        where p.id = entry.id and p.instance_id = entry.instance_id and p.public_id < p.id),
    arrival_id = case when id < post_id then (select max(e.id) from entry e
        where e.post_id = entry.post_id and e.instance_id = entry.instance_id) end;
drop index entry_listed;
drop index entry_of_other_post;
alter table entry drop column listed;
create index entry_place on entry (source_id, coalesce(place_id, id)) where not gone;
create index entry_of_post on entry (post_id, source_id) where id <> post_id;
create index entry_author on entry (account_id, coalesce(place_id, id)) where not gone;

-- `in_public`: whether a source that the world may read has it.
alter table post add column in_public {bool} not null default false;
update post set in_public = exists (select 1 from source s
        join entry e on e.source_id = s.id and e.instance_id = s.instance_id and e.id = e.post_id
        where s.instance_id = post.instance_id and s.audience = 'public' and e.id = post.id)
    or exists (select 1 from source s
        join entry e on e.source_id = s.id and e.instance_id = s.instance_id and e.id <> e.post_id
        where s.instance_id = post.instance_id and s.audience = 'public' and e.post_id = post.id);
update post set listed = false where listed and not in_public;

-- `source_id`: whose entry had the ID, or has it; null of references, and of what earlier versions wrote.
alter table entry_alias add column source_id {i64};
