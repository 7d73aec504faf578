//! Statements that a distributed PostgreSQL (Citus) rejects, or sends to every shard.

use crate::distribution::{PLACEMENTS, Placement};

/// The fault of a statement on a distributed store; `None` if it has none.
pub fn fault(sql: &str) -> Option<String> {
    let words = words(sql);
    let uses = uses(&words);
    let placed = |place: fn(&Placement) -> bool| uses.iter().find(|of| place(&of.placement));
    let distributed = placed(|place| matches!(place, Placement::WithInstance(_)))?;
    if let Some(local) = placed(|place| *place == Placement::Coordinator) {
        return Some(format!(
            "it uses {} and {}, which lie on different nodes: ask for one after the other",
            distributed.table, local.table
        ));
    }
    let has = |word: &str| words.iter().any(|of| of == word);
    let is_write = ["insert", "update", "delete"].into_iter().any(has);
    let is_of_one = |of: &Use| {
        let column = of.column();
        compared(&words, of, column).any(|with| with.starts_with('$') || with.contains('.'))
            && !compared(&words, of, column).any(|with| with == "any")
    };
    for of in &uses {
        let Placement::WithInstance(column) = of.placement else {
            continue;
        };
        if of.is_insert {
            if !in_first_parentheses(&words[of.at..], column) {
                return Some(format!("it adds rows to {} without {column}", of.table));
            }
            let conflict = words.windows(2).position(|pair| pair == ["on", "conflict"]);
            if conflict.is_some_and(|at| !in_first_parentheses(&words[at..], column)) {
                return Some(format!("no key of {} is without {column}", of.table));
            }
            continue;
        }
        let is_named = compared(&words, of, column).next().is_some();
        if !is_named && (is_write || !is_of_all_instances(&words)) {
            return Some(format!(
                "it does not name the instance ({column}) of {}, so it goes to every shard",
                of.table
            ));
        }
        for (pattern, is_used) in [
            ("`skip locked`", has("skip") && has("locked")),
            (
                "a limit in a lateral subquery",
                has("lateral") && has("limit") && has("unnest"),
            ),
        ] {
            if is_used && !is_of_one(of) {
                return Some(format!(
                    "{pattern} needs one instance: `{column} = $N` of {}",
                    of.table
                ));
            }
        }
    }
    let changes = words.iter().position(|of| of == "update" || of == "delete");
    let condition = changes.and_then(|at| {
        let condition = words[at..].iter().position(|of| of == "where")?;
        Some(&words[at + condition..])
    });
    let volatile = condition.and_then(|words| words.iter().find(|of| VOLATILE.contains(&&***of)));
    let is_change = has("set") || has("delete");
    volatile.filter(|_| is_change).map(|function| {
        format!("the condition of a change calls {function}, which differs from node to node")
    })
}

/// A table that a statement uses.
struct Use<'a> {
    table: &'static str,
    placement: Placement,
    alias: &'a str,
    is_insert: bool,
    /// Its position among the words.
    at: usize,
}

impl Use<'_> {
    fn column(&self) -> &'static str {
        match self.placement {
            Placement::WithInstance(column) => column,
            Placement::Everywhere | Placement::Coordinator => "",
        }
    }
}

fn uses(words: &[String]) -> Vec<Use<'_>> {
    let before = ["from", "join", "update", "into", ","];
    let mut found = Vec::new();
    for (at, pair) in words.windows(2).enumerate() {
        let table = PLACEMENTS.iter().find(|(table, _)| *table == pair[1]);
        let (Some((table, placement)), true) = (table, before.contains(&&*pair[0])) else {
            continue;
        };
        let mut rest = words[at + 2..].iter().filter(|word| *word != "as");
        let is_alias = |word: &&String| {
            word.starts_with(|c: char| c.is_ascii_alphabetic()) && !FOLLOWS.contains(&&***word)
        };
        found.push(Use {
            table,
            placement: *placement,
            alias: rest.next().filter(is_alias).map_or(table, String::as_str),
            is_insert: pair[0] == "into",
            at: at + 1,
        });
    }
    found
}

/// The values with which the column of a table is compared: a parameter, another column, `any` or a query.
fn compared<'a>(
    words: &'a [String],
    of: &'a Use<'_>,
    column: &'a str,
) -> impl Iterator<Item = &'a str> {
    let is_it = move |word: &str| match word.split_once('.') {
        Some((table, name)) => name == column && (table == of.alias || table == of.table),
        None => word == column,
    };
    words.windows(3).filter_map(move |three| {
        let [left, sign, right] = three else {
            return None;
        };
        match &**sign {
            "=" if is_it(left) => Some(&**right),
            "=" if is_it(right) => Some(&**left),
            "in" if is_it(left) => Some("any"),
            _ => None,
        }
    })
}

fn in_first_parentheses(words: &[String], word: &str) -> bool {
    let mut inside = words.iter().skip_while(|of| *of != "(");
    inside
        .by_ref()
        .take_while(|of| *of != ")")
        .any(|of| of == word)
}

fn is_of_all_instances(words: &[String]) -> bool {
    let text = words.join(" ");
    OF_ALL_INSTANCES
        .iter()
        .any(|(part, _)| text.contains(&self::words(part).join(" ")))
}

/// Names, numbers and texts as one word each, every other character as another.
fn words(sql: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || "_.$".contains(c);
        let length = match first {
            '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
            _ if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        words.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    words
}

/// Words that may follow a table and are no other name of it.
const FOLLOWS: [&str; 16] = [
    "on",
    "where",
    "set",
    "join",
    "left",
    "cross",
    "order",
    "group",
    "union",
    "for",
    "using",
    "limit",
    "values",
    "select",
    "inner",
    "returning",
];

/// Functions whose value may differ from node to node; `statement_timestamp` is no such one.
const VOLATILE: [&str; 4] = ["clock_timestamp", "random", "gen_random_uuid", "timeofday"];

/// Reads that go to every shard, by a part of their text, each with the reason.
const OF_ALL_INSTANCES: [(&str, &str); 17] = [
    ("from post where (listed or", "the public timeline"),
    (
        "from entry where account_id = any(",
        "timelines of many authors",
    ),
    (
        "from account where acct_id = any(",
        "accounts have one ID over all instances",
    ),
    (
        "from account_profile where acct_key >",
        "people look accounts up by their names",
    ),
    (
        "from post where id ",
        "nothing says which instance a local ID is of",
    ),
    ("from entry_alias where id ", "as of a post"),
    ("from indexed_place where place", "a search"),
    ("from index_pending order by", "all that wait for the index"),
    (
        "from edited_post order by",
        "all that lists are compared with",
    ),
    ("from post where substr(", "a post by its address"),
    (
        "from source where kind = 'threads'",
        "an account's hidden sources",
    ),
    (
        "from source s where audience = 'public'",
        "the sources that somebody may read",
    ),
    ("from credential c order by", "all of them"),
    ("from quota order by", "all of them"),
    ("from instance order by", "all of them"),
    ("from instance_info where fetched_at_ms", "all of them"),
    (
        "from upstream_post where post_id <> 0 group by",
        "how many posts each instance has",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_names_the_instance() {
        for taken in [
            "select 1 from post where id = any($1) and instance_id = $2",
            "select p.id from entry e join post as p on p.id = e.post_id and p.instance_id = e.instance_id
             where e.source_id = $1 and e.instance_id in (select $2)",
            "update source set paused = true where id = $1 and instance_id = $2",
            "delete from instance where id = $1",
            "insert into outbox (instance_id, post_id) values ($1, $2)
             on conflict (instance_id, post_id) do nothing",
            "select id from post where id = $1",
            "select name from local_account where id = $1",
            "delete from member where lease_until_ms < clock_timestamp()",
        ] {
            assert_eq!(fault(taken), None, "{taken}");
        }
        for (refused, why) in [
            ("select raw from post where uri = $1", "of post, so it goes"),
            ("delete from post where id = $1", "of post, so it goes"),
            ("update instance set api = $1", "(id) of instance"),
            (
                "select 1 from entry e join post p on p.id = e.post_id where e.instance_id = $1",
                "of post, so it goes",
            ),
            (
                "insert into outbox (post_id) values ($1)",
                "without instance_id",
            ),
            (
                "insert into outbox (instance_id, post_id) values ($1, $2) on conflict (post_id) do nothing",
                "no key of outbox",
            ),
        ] {
            let fault = fault(refused).expect(refused);
            assert!(fault.contains(why), "{refused}: {fault}");
        }
    }

    #[test]
    fn what_a_cluster_refuses_is_refused() {
        let lateral = |condition: &str| {
            format!(
                "select f.* from unnest($2::bigint[]) as b(c) cross join lateral (select acct from account
                 where id = b.c and {condition} limit 1) as f"
            )
        };
        assert_eq!(fault(&lateral("instance_id = $1")), None);
        for (refused, why) in [
            (lateral("instance_id = any($1)"), "a limit in a lateral"),
            (
                "select 1 from schedule where bucket = $1 and instance_id = any($2) for update skip locked"
                    .to_owned(),
                "`skip locked`",
            ),
            (
                "select 1 from post p, local_clock where p.instance_id = $1".to_owned(),
                "on different nodes",
            ),
            (
                "delete from claim_lease where instance_id = $1 and until_ms > clock_timestamp()".to_owned(),
                "calls clock_timestamp",
            ),
            (
                "update claim_lease set holder = $2 where instance_id = $1 and until_ms > random()".to_owned(),
                "calls random",
            ),
        ] {
            let fault = fault(&refused).expect(&refused);
            assert!(fault.contains(why), "{refused}: {fault}");
        }
    }
}
