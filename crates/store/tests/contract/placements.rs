//! Where tables lie on a distributed database: every key contains the column by which they do.

use std::{collections::BTreeMap, fs, path::PathBuf};

use driftline_db::testing::Fresh;
use driftline_store::{
    MIGRATIONS,
    distribution::{PLACEMENTS, Placement},
    testing::open_reserving,
};

#[test]
fn every_table_is_placed() {
    let db = Fresh::postgres().open(MIGRATIONS);
    let tables = db.read_blocking(|tx| {
        tx.query(
            "select relname::text as name from pg_class
             where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
                 and relname <> 'migration' order by 1",
            &[],
            |row| row.text("name"),
        )
    });
    let mut placed: Vec<&str> = PLACEMENTS.iter().map(|(table, _)| *table).collect();
    placed.sort_unstable();
    assert_eq!(tables.expect("the tables"), placed);
    db.close_blocking();
}

#[test]
fn every_key_contains_the_column_that_places_its_rows() {
    let db = open_reserving(&Fresh::postgres());
    let keys = db.read_blocking(|tx| {
        tx.query(
            "select c.relname::text as name,
                 (select string_agg(a.attname::text, ', ' order by k.place)
                  from unnest(i.indkey::smallint[]) with ordinality as k(number, place)
                  join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number) as columns
             from pg_class c join pg_index i on i.indrelid = c.oid
             where c.relnamespace = current_schema()::regnamespace and i.indisunique",
            &[],
            |row| Ok((row.text("name")?, row.text("columns")?)),
        )
    });
    let placements: BTreeMap<&str, Placement> = PLACEMENTS.into_iter().collect();
    let keys = keys.expect("the keys");
    assert!(keys.len() > PLACEMENTS.len() - 5);
    for (table, columns) in keys {
        let Some(Placement::WithInstance(column)) = placements.get(table.as_str()) else {
            continue;
        };
        let is_in_key = columns.split(", ").any(|of_key| of_key == *column);
        assert!(is_in_key, "{table}: a unique key of {columns}");
    }
    db.close_blocking();
}

#[test]
fn the_document_places_the_tables_as_the_program_does() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/distribution.md");
    let text = fs::read_to_string(file).expect("the document");
    let mut documented: Vec<(String, String)> = Vec::new();
    for line in text.lines().skip_while(|line| *line != "## The keys") {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(tables), Some(place)) = (cells.next(), cells.next()) else {
            continue;
        };
        if line.starts_with("## ") && line != "## The keys" {
            break;
        }
        let names = tables
            .split(", ")
            .filter_map(|name| name.strip_prefix('`')?.strip_suffix('`'));
        documented.extend(names.map(|name| (name.to_owned(), place.to_owned())));
    }
    let mut expected: Vec<(String, String)> = PLACEMENTS
        .iter()
        .map(|(table, placement)| {
            let place = match placement {
                Placement::WithInstance(column) => format!("by `{column}`"),
                Placement::Everywhere => "on every node".to_owned(),
                Placement::Coordinator => "on the coordinator".to_owned(),
            };
            ((*table).to_owned(), place)
        })
        .collect();
    documented.sort();
    expected.sort();
    assert_eq!(documented, expected);
}
