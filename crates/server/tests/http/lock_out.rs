//! Wrong passphrases from many addresses do not keep an account's owner out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use driftline_api::App;
use reqwest::{Client, StatusCode};
use serde_json::json;

use crate::{
    people::{Browser, PASSPHRASE, hidden, people_world},
    test_clock,
    world::World,
};

/// A server behind a proxy on this machine, which names the clients' addresses.
fn behind_proxy(app: &mut App) {
    app.public_base = Some("http://drift.example".parse().unwrap());
}

async fn guess(client: &Client, base: &str, from: u32) -> StatusCode {
    let body = json!({ "who": "ann", "passphrase": "wrong passphrase" });
    let request = client.post(format!("{base}/api/driftline/v1/log-in"));
    let [_, a, b, c] = from.to_be_bytes();
    let request = request
        .header("x-forwarded-for", format!("10.{a}.{b}.{c}"))
        .header("content-type", "application/json");
    request
        .body(body.to_string())
        .send()
        .await
        .unwrap()
        .status()
}

async fn log_in(browser: &mut Browser, who: &str, passphrase: &str) -> StatusCode {
    let page = browser.get("/log-in").await.text().await.unwrap();
    let token = hidden(&page, "form_token");
    let fields = [
        ("form_token", &*token),
        ("who", who),
        ("passphrase", passphrase),
    ];
    let headers = [("x-forwarded-for", "192.0.2.1")];
    let answer = browser.submit_with("/log-in", &fields, &headers).await;
    answer.status()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_knows_the_account_gets_in_while_others_guess() {
    let (clock, _) = test_clock!();
    let (world, _) = people_world(|app| {
        behind_proxy(app);
        app.people.use_clock(clock);
    })
    .await;
    world.account("ann").await;
    world.account("ben").await;
    let (mut anns, mut bens) = (world.browser(), world.browser());
    assert_eq!(log_in(&mut anns, "ann", PASSPHRASE).await, 303);
    assert_eq!(log_in(&mut bens, "ben", PASSPHRASE).await, 303);
    let cookie = anns.cookies["driftline_device"].clone();
    anns.cookies.retain(|name, _| name == "driftline_device");
    for from in 0..25 {
        guess(&world.client, &world.base, from).await;
    }
    let mut new = world.browser();
    for (browser, who) in [(&mut bens, "ann"), (&mut new, "ann")] {
        let refused = log_in(browser, who, PASSPHRASE).await;
        assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS, "unknown there");
    }
    // By name and by mail address.
    for who in ["ann", "ann@mail.example"] {
        assert_eq!(log_in(&mut anns, who, PASSPHRASE).await, 303, "{who}");
    }
    let renewed = &anns.cookies["driftline_device"];
    assert_eq!(device_id(renewed), device_id(&cookie), "one count");
    // Whoever takes the cookie guesses no oftener than the owner may.
    for _ in 0..6 {
        let wrong = log_in(&mut anns, "ann", "wrong passphrase").await;
        assert_eq!(wrong, StatusCode::UNAUTHORIZED);
    }
    let wrong = log_in(&mut anns, "ann", PASSPHRASE).await;
    assert_eq!(wrong, StatusCode::TOO_MANY_REQUESTS);
    world.close().await;
}

fn device_id(cookie: &str) -> String {
    crate::people::claims(cookie)["jti"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owners_turn_comes_at_a_new_browser_in_the_midst_of_guesses() {
    let (world, _) = people_world(|app| {
        behind_proxy(app);
        app.people.use_log_in_turns(50, Duration::from_secs(120));
    })
    .await;
    world.account("ann").await;
    let world: Arc<World> = Arc::new(world);
    let is_over = Arc::new(AtomicBool::new(false));
    let attackers: Vec<_> = (0..5_u32)
        .map(|number| {
            let (client, base) = (world.client.clone(), world.base.clone());
            let is_over = Arc::clone(&is_over);
            tokio::spawn(async move {
                let addresses = (number * 100_000..).take_while(|_| !is_over.load(SeqCst));
                let mut guesses = 0;
                for from in addresses {
                    guess(&client, &base, from).await;
                    guesses += 1;
                }
                guesses
            })
        })
        .collect();
    // The free tries are used up.
    for from in 900_000..900_006 {
        guess(&world.client, &world.base, from).await;
    }
    let mut browser = world.browser();
    let logged_in = log_in(&mut browser, "ann", PASSPHRASE).await;
    is_over.store(true, SeqCst);
    assert_eq!(logged_in, StatusCode::SEE_OTHER);
    for attacker in attackers {
        assert!(attacker.await.unwrap() > 0);
    }
    Arc::into_inner(world).unwrap().close().await;
}
