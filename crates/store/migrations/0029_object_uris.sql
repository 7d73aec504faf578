-- The names of posts and accounts across servers (`core::object_uri`): of an instance's objects of one name the
-- first has the row. `uri_key` is made of the name, which the object has itself; `known` says how it is known.
create table object_uri (
    uri_key text {collate_c} not null,
    instance_id {i64} not null,
    kind text {collate_c} not null,
    object_id {i64} not null,
    known text not null,
    primary key (uri_key, instance_id, kind)
) {clustered};
insert into object_uri (uri_key, instance_id, kind, object_id, known)
select case when length(p.uri) > 18 then substr(p.uri, length(p.uri) - 17) else p.uri end
        || '#' || cast({hash60 p.uri} as text),
    p.instance_id, 'post', p.id,
    case when lower(substr(p.uri, 1, length(i.origin) + 1)) = lower(i.origin) || '/'
        then 'fetched' else 'claimed' end
from post p join instance i on i.id = p.instance_id
where p.uri <> ''
order by p.id
on conflict (uri_key, instance_id, kind) do nothing;

-- An account's name is known once an answer shows it again.
alter table account add column uri text;

-- A post that is gone keeps its place for the copies of it that other instances still show.
drop index post_listed;
create index post_listed on post (coalesce(public_id, id))
    where listed or deleted_at_ms is not null and in_public and visibility = 'public';
drop index entry_place;
create index entry_place on entry (source_id, coalesce(place_id, id));
drop index entry_author;
create index entry_author on entry (account_id, coalesce(place_id, id));
