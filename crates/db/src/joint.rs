//! Statements of several members of a step as one: see [`crate::Tx::in_step`].

use crate::batch::{Column, Form, Table, counted, joined, statement, unnested};
use crate::dialect::Dialect;
use crate::error::DbError;

/// The text for PostgreSQL that runs a statement for several members at once; `None` if there is none. Its
/// parameters have the places that they have in the statement's own text, and each is an array with an element
/// for each row of the members' batches, or for each member where there is no batch; `scalars` are the array
/// types of those before the batch. What a query gives ends with the number of the element, from 1.
pub(crate) fn text(
    sql: &str,
    scalars: &[&'static str],
    columns: &[Column<'_>],
    form: Form,
) -> Result<Option<String>, DbError> {
    match form {
        Form::Batch if scalars.is_empty() => {
            let own = statement(Dialect::Postgres, sql, 0, columns, form)?;
            Ok(Some(own.to_string()))
        }
        Form::Batch => batch(sql, scalars, columns),
        Form::Single | Form::LookUp => query(sql, scalars, columns, form).map(Some),
    }
}

fn batch(
    sql: &str,
    scalars: &[&'static str],
    columns: &[Column<'_>],
) -> Result<Option<String>, DbError> {
    let (start, rest) = sql.split_once("{rows").unwrap_or_default();
    let (word, end) = rest.split_once('}').unwrap_or_default();
    // In parentheses, the rows' names would not reach what lies outside.
    let depth = |text: &str| text.matches('(').count() as i64 - text.matches(')').count() as i64;
    let Some(mut table) = Table::parse(word, columns.len()).filter(|_| depth(start) == 0) else {
        return Ok(None);
    };
    let names: Vec<String> = (1..=scalars.len()).map(scalar_name).collect();
    let rows = unnested(scalars, columns);
    let table_name = table.name;
    let is_counted = columns.iter().any(|c| matches!(c, Column::Counted(..)));
    let rows = if is_counted {
        let rows = counted(&rows, columns, Some(&table), &names);
        format!("({rows}) as {table_name}")
    } else {
        table.columns.extend(names.iter().map(String::as_str));
        format!("{rows} as {table_name}({})", table.columns.join(", "))
    };
    let text = format!(
        "{}{rows}{}",
        in_rows(start, table_name, scalars.len()),
        in_rows(end, table_name, scalars.len())
    );
    Ok(Some(Dialect::Postgres.expand(&text)?.into_owned()))
}

fn query(
    sql: &str,
    scalars: &[&'static str],
    columns: &[Column<'_>],
    form: Form,
) -> Result<String, DbError> {
    let of_one = Dialect::Postgres.expand_with(sql, |word, out| {
        let number = word.strip_prefix("row ");
        if let Some(number) = number {
            out.push_str(&format!("batch.c{number}"));
        }
        number.is_some()
    })?;
    let of_one = in_rows(&of_one, "batch", scalars.len());
    let limit = match form {
        Form::LookUp => " limit 1",
        Form::Single | Form::Batch => "",
    };
    let names = (1..=columns.len()).map(|number| format!("c{number}"));
    let names = joined(names.chain((1..=scalars.len()).map(scalar_name)));
    Ok(format!(
        "select found.*, batch.in_step from {} with ordinality as batch({names}, in_step)
         cross join lateral ({of_one}{limit}) as found",
        unnested(scalars, columns)
    ))
}

fn scalar_name(number: usize) -> String {
    format!("step_{number}")
}

/// The text with columns of those rows in place of the first parameters.
fn in_rows(text: &str, rows: &str, scalars: usize) -> String {
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit());
        let (number, rest) = part.split_at(end.unwrap_or(part.len()));
        match number.parse() {
            Ok(number) if (1..=scalars).contains(&number) => {
                out.push_str(&format!("{rows}.{}{rest}", scalar_name(number)));
            }
            _ => out.push_str(&format!("${part}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(sql: &str, scalars: usize, columns: &[Column<'_>], form: Form) -> Option<String> {
        let scalars = vec!["bigint[]"; scalars];
        let text = text(sql, &scalars, columns, form).expect("a text");
        text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_members_share_in_their_own_text_becomes_columns() {
        let ids = [Column::i64([1])];
        let update = "update t set x = $2 from {rows as r(id)} where t.s = $1 and t.id = r.id";
        assert_eq!(
            made(update, 2, &ids, Form::Batch).as_deref(),
            Some(
                "update t set x = r.step_2 from unnest($3::bigint[], $1::bigint[], $2::bigint[]) \
                 as r(id, step_1, step_2) where t.s = r.step_1 and t.id = r.id"
            )
        );
        let counted = [Column::counted([1], "select 7")];
        assert_eq!(
            made(
                "insert into t (s, id) select $1, r.id from {rows as r(id)}",
                1,
                &counted,
                Form::Batch
            )
            .as_deref(),
            Some(
                "insert into t (s, id) select r.step_1, r.id from (select case when c1 > 0 then c1 else \
                 (select 7) + c1 end as id, step_1 from unnest($2::bigint[], $1::bigint[]) as \
                 batch(c1, step_1)) as r"
            )
        );
        let insert = "insert into t (id) {rows}";
        assert_eq!(
            made(insert, 0, &ids, Form::Batch).as_deref(),
            Some("insert into t (id) select * from unnest($1::bigint[])")
        );
        assert_eq!(
            made(
                "select x from t where s = $1 and id = {row 1}",
                1,
                &ids,
                Form::LookUp
            )
            .as_deref(),
            Some(
                "select found.*, batch.in_step from unnest($2::bigint[], $1::bigint[]) with ordinality \
                 as batch(c1, step_1, in_step) cross join lateral (select x from t where \
                 s = batch.step_1 and id = batch.c1 limit 1) as found"
            )
        );
        assert_eq!(
            made(
                "select x from t where s = $1 order by x",
                1,
                &[],
                Form::Single
            )
            .as_deref(),
            Some(
                "select found.*, batch.in_step from unnest($1::bigint[]) with ordinality as \
                 batch(step_1, in_step) cross join lateral (select x from t where s = batch.step_1 \
                 order by x) as found"
            )
        );
    }

    #[test]
    fn rows_in_parentheses_do_not_reach_what_is_outside() {
        let ids = [Column::i64([1])];
        let delete = "delete from t where s = $1 and id in (select id from {rows as r(id)})";
        assert_eq!(made(delete, 1, &ids, Form::Batch), None);
    }
}
