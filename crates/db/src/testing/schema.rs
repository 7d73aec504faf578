use crate::dialect::Dialect;
use crate::error::DbError;
use crate::tx::Tx;

/// The tables of the database without the table of migrations, as sorted lines. Examples are
/// `entry.uri text`, with `null` for a nullable column, `entry key source_id, id` and `entry unique
/// index uri`, or a `partial` one. Differences between the two databases are omitted: the names of
/// indexes, and the types of integers that are booleans or PostgreSQL's arrays. An expression in an
/// index is `?`.
///
/// # Errors
/// [`DbError`] if the database cannot be read.
pub fn schema(tx: &mut Tx<'_>) -> Result<Vec<String>, DbError> {
    let sql = match tx.dialect() {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
    };
    let mut lines = tx.query(sql, &[], |row| row.text("line"))?;
    lines.sort();
    Ok(lines)
}

const SQLITE: &str = r#"
    with tables as (select name from sqlite_schema where type = 'table'
        and name not like 'sqlite\_%' escape '\' and name <> 'migration')
    select t.name || '.' || c.name || ' ' || lower(c.type)
        || case when c."notnull" or c.pk > 0 then '' else ' null' end as line
    from tables t, pragma_table_info(t.name) c
    union all
    select t.name || ' key ' || group_concat(c.name, ', ' order by c.pk)
    from tables t, pragma_table_info(t.name) c where c.pk > 0 group by t.name
    union all
    select t.name || case when l."unique" then ' unique' else '' end
        || case when l.partial then ' partial' else '' end
        || ' index ' || group_concat(coalesce(i.name, '?'), ', ' order by i.seqno)
    from tables t, pragma_index_list(t.name) l, pragma_index_info(l.name) i
    where l.origin <> 'pk' group by t.name, l.name"#;

const POSTGRES: &str = r#"
    with tables as (select oid, relname::text as name from pg_class
        where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
            and relname <> 'migration')
    select t.name || '.' || a.attname || ' '
        || case k.name when 'bigint' then 'integer' when 'boolean' then 'integer'
            when 'bigint[]' then 'text'
            when 'bytea' then 'blob' else k.name end
        || case when a.attnotnull then '' else ' null' end as line
    from tables t join pg_attribute a on a.attrelid = t.oid,
        lateral (select format_type(a.atttypid, null) as name) k
    where a.attnum > 0 and not a.attisdropped
    union all
    select t.name || case when i.indisprimary then ' key ' else
            case when i.indisunique then ' unique' else '' end
            || case when i.indpred is not null then ' partial' else '' end || ' index ' end
        || (select string_agg(coalesce(a.attname::text, '?'), ', ' order by k.place)
            from unnest(i.indkey::smallint[]) with ordinality as k(number, place)
            left join pg_attribute a on a.attrelid = t.oid and a.attnum = k.number
            where k.place <= i.indnkeyatts)
    from tables t join pg_index i on i.indrelid = t.oid"#;
