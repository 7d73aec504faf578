//! Posts found by what a person gives.

use driftline_core::{names::audience::Audience, post::Post};
use driftline_db::{Dialect, testing::is_distributed};
use driftline_store::{Owner, Store, StoreError, Tx, Viewer, find, local_ids};

use crate::world::{ANN, World, post, read, write};

on_both!(
    posts_are_found_by_their_addresses_through_an_index,
    either_address_is_found,
    a_long_address_is_found,
    a_post_that_is_hidden_from_a_viewer_hides_no_other_of_its_address,
);

/// Posts with addresses, as many as no plan reads for one.
fn add_posts(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    tx.execute(
        "insert into post (id, instance_id, upstream_id, uri, url, first_source_id, read_at_ms,
             visibility, content_hash, listed)
         with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
         select i, 1, cast(i as text), 'tag:' || i, 'https://a.example/@a/' || i, 1, 1,
             'public', 1, true
         from n",
        &[],
    )?;
    tx.execute("analyze post", &[])?;
    Ok(())
}

fn posts_are_found_by_their_addresses_through_an_index(store: &Store) {
    write(store, local_ids::root(), add_posts);
    for (sql, address, index) in [
        (find::BY_ADDRESS[0], "tag:7", "post_uri"),
        (find::BY_ADDRESS[1], "https://a.example/@a/7", "post_url"),
    ] {
        let plan = read(store, move |tx| plan(tx, sql, address));
        // Citus shows the plan of one shard, which may be empty.
        let is_shown = is_distributed() || plan.contains(index);
        assert!(is_shown, "{plan}");
    }
    for text in ["https://a.example/@a/7", "tag://7"] {
        let found = store.read_blocking(move |tx| find::post(tx, text));
        let expected = text.starts_with("https").then_some(7);
        assert_eq!(found.expect("a read").map(u64::from), expected);
    }
}

/// An address is found whether or not the post's other one ends alike, or exists.
fn either_address_is_found(store: &Store) {
    const ADDRESSES: [(i64, Option<&str>, Option<&str>); 4] = [
        (
            4001,
            Some("https://a.example/users/a/statuses/110000000000000001"),
            Some("https://a.example/@a/110000000000000001"),
        ),
        (
            4002,
            Some("https://a.example/objects/0b1f"),
            Some("https://a.example/notice/AbCdEf"),
        ),
        (4003, None, Some("https://a.example/@a/110000000000000003")),
        (
            4004,
            Some("https://a.example/users/a/statuses/110000000000000004"),
            None,
        ),
    ];
    write(store, local_ids::root(), |tx: &mut Tx<'_>| {
        add_posts(tx)?;
        for (id, uri, url) in ADDRESSES {
            tx.execute(
                "insert into post (id, instance_id, upstream_id, uri, url, first_source_id,
                             read_at_ms, visibility, content_hash, listed)
                         values ($1, 1, 'x', $2, $3, 1, 1, 'public', 1, true)",
                &[&id, &uri, &url],
            )?;
        }
        Ok::<_, StoreError>(())
    });
    for (id, uri, url) in ADDRESSES {
        for text in [uri, url].into_iter().flatten() {
            let found = store.read_blocking(move |tx| find::post(tx, text));
            let found = found.expect("a read").map(|id| u64::from(id) as i64);
            assert_eq!(found, Some(id), "{text}");
        }
    }
}

/// An address that PostgreSQL would refuse as a key is stored and found like any other.
fn a_long_address_is_found(store: &Store) {
    write(store, local_ids::root(), add_posts);
    let random = (0..20_000_u32).map(|n| char::from(b'a' + (n.wrapping_mul(n) % 1009 % 26) as u8));
    let long = format!("https://a.example/{}/end?", random.collect::<String>());
    let stored = long.clone();
    write(store, local_ids::root(), move |tx: &mut Tx<'_>| {
        tx.execute("update post set url = $1 where id = 9", &[&stored])?;
        tx.execute(
            "update post set url = $1 || 'other' where id = 8",
            &[&stored],
        )?;
        Ok::<_, StoreError>(())
    });
    let found = store.read_blocking(move |tx| find::post(tx, &long));
    assert_eq!(found.expect("a read").map(u64::from), Some(9));
}

fn plan(tx: &mut Tx<'_>, sql: &str, address: &str) -> Result<String, StoreError> {
    let (explain, column) = match tx.dialect() {
        Dialect::Sqlite => ("explain query plan", 3),
        Dialect::Postgres => ("explain", 0),
    };
    let lines = tx.query(&format!("{explain} {sql}"), &[&address], |row| {
        row.text(column)
    })?;
    Ok(lines.join("\n"))
}

fn a_post_that_is_hidden_from_a_viewer_hides_no_other_of_its_address(store: &Store) {
    let at = "https://author.example/@ann/one";
    let shown = || Post {
        url: Some(at.to_owned()),
        ..post(1, "text")
    };
    let add = |host: &str, owner, audience| {
        let origin = format!("https://{host}");
        let mut world = World::of_server(store, "home", &origin, owner, audience);
        world.poll(Vec::new());
        world
    };
    let mut home = add("a.example", Owner::Account(ANN), Audience::Private);
    let mut public = add("b.example", Owner::Operator, Audience::Public);
    home.poll(vec![shown()]);
    public.now_ms += 1_000;
    public.poll(vec![shown()]);
    let found = |viewer| public.read(move |tx| find::shown_post(tx, at, viewer));
    let of = |world: &World| Some(world.export()[0].post_id);
    assert_eq!(found(Viewer::Operator), of(&public));
    assert_eq!(found(Viewer::Account(ANN)), of(&home));
    let hidden = of(&home).map(|id| id.to_string()).expect("a post");
    let by_id = public.read(move |tx| find::shown_post(tx, &hidden, Viewer::Operator));
    assert_eq!(by_id, None);
}
