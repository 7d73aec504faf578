-- `lowest_id` is the lowest ID that was ever shown of a source, and `lowest_listed_id` bounds what
-- the public timeline ever showed: history is put below. A source whose history was still being
-- fetched is readable from now on.
alter table source add column lowest_id {i64};
alter table local_clock add column lowest_listed_id {i64};
update source set lowest_id = (select min(id) from entry where source_id = source.id);
update local_clock set lowest_listed_id = (select min(id) from post);
update post set listed = true
where not listed and visibility = 'public' and deleted_at_ms is null
    and first_source_id in (select id from source where not readable)
    and id in (select post_id from entry
        where source_id in (select id from source where not readable));
update source set readable = true where not readable and lowest_id is not null;
