-- On PostgreSQL what only grows is partitioned by month of `at_ms` (Unix ms, UTC), so that an old month
-- goes by one statement: docs/sql.md. SQLite keeps its tables.
--
-- The rows that are there stay where they are: their table becomes the first partition, for all times up
-- to the end of the present month. Rows that are dated later, which a wrong clock has made, go where new ones of
-- their time go. The months to come are made by whoever opens the store: crates/store/src/partitions.rs.
-- A version's key gets its time, without which no key of a partitioned table can be unique.
{postgresql do $do$
declare
    name text;
    key text;
    until_ms bigint := 1000 * extract(epoch from
        date_trunc('month', clock_timestamp() at time zone 'UTC') + interval '1 month');
    is_distributed boolean := false;
    has_later boolean;
begin
    for name, key in values
        ('count_history', 'post_id, at_ms, instance_id'),
        ('post_history', 'post_id, seq, at_ms, instance_id')
    loop
        execute format('alter table %1$s rename to %1$s_first', name);
        if name = 'count_history' then
            execute format('alter index %1$s_pkey rename to %1$s_first_pkey', name);
        else
            -- Each by itself: a distributed table takes them in no other way.
            execute format('alter table %1$s_first drop constraint %1$s_pkey', name);
            execute format('alter table %1$s_first add constraint %1$s_first_pkey primary key (%2$s)',
                name, key);
        end if;
        execute format('create table %1$s (like %1$s_first, primary key (%2$s))
            partition by range (at_ms)', name, key);
        execute format('create table %1$s_default partition of %1$s default', name);
        if to_regclass('pg_catalog.pg_dist_partition') is not null then
            execute 'select exists (select 1 from pg_dist_partition where logicalrelid = $1::regclass)'
                into is_distributed using name || '_first';
        end if;
        if is_distributed then
            perform create_distributed_table(name::regclass, 'instance_id', colocate_with => 'instance');
        end if;
        execute format('select exists (select 1 from %1$s_first where at_ms >= $1)', name)
            into has_later using until_ms;
        if has_later then
            execute format('insert into %1$s select * from %1$s_first where at_ms >= $1', name)
                using until_ms;
            execute format('delete from %1$s_first where at_ms >= $1', name) using until_ms;
        end if;
        execute format('alter table %1$s attach partition %1$s_first
            for values from (minvalue) to (%2$s)', name, until_ms);
    end loop;
end $do$;}
