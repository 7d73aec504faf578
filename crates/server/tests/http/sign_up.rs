//! Signing up: by our page and by an app; with a mail, an approval, or not at all.

use driftline_api::people::SignUpMode;
use driftline_core::social::{AccountName, AccountState};
use driftline_store::social::local_account::{self, LocalAccount};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{
        Browser, Mailbox, OOB, PASSPHRASE, hidden, hidden_fields, location, param, pass,
        people_world,
    },
    test_clock,
    world::{World, parsed},
};

async fn world(mode: SignUpMode) -> (World, Mailbox) {
    people_world(|app| app.people.sign_up.mode = mode).await
}

async fn sign_up(browser: &mut Browser, name: &str, mail: &str, passphrase: &str) -> Response {
    let page = browser.get("/sign-up").await.text().await.unwrap();
    let token = hidden(&page, "form_token");
    let fields = [
        ("form_token", &*token),
        ("name", name),
        ("mail", mail),
        ("passphrase", passphrase),
        ("reason", "to read"),
    ];
    browser.submit("/sign-up", &fields).await
}

async fn mails(mailbox: &Mailbox, count: usize) -> Vec<String> {
    driftline_server::testing::wait("mail", async || mailbox.all().len() >= count).await;
    let all = mailbox.all();
    assert_eq!(all.len(), count);
    all.into_iter().map(|mail| mail.text).collect()
}

/// The path of the link in a mail.
fn link(text: &str) -> String {
    let at = text
        .find("/confirm?")
        .unwrap_or_else(|| panic!("no link in {text}"));
    text[at..].split_whitespace().next().unwrap().to_owned()
}

async fn confirm(browser: &mut Browser, link: &str) -> Response {
    let page = browser.get(link).await.text().await.unwrap();
    let fields = hidden_fields(&page);
    let fields: Vec<(&str, &str)> = fields
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    browser.submit("/confirm", &fields).await
}

async fn account(world: &World, name: &str) -> Option<LocalAccount> {
    let name = AccountName::new(name).unwrap();
    let found = world
        .store
        .read(move |tx| local_account::by_name(tx, &name))
        .await;
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_confirms_the_address_and_then_one_logs_in() {
    let (world, mailbox) = world(SignUpMode::Open).await;
    let mut browser = world.browser();
    let sent = sign_up(&mut browser, "ann", "ann@mail.example", PASSPHRASE).await;
    assert_eq!(sent.status(), StatusCode::OK);
    assert!(sent.text().await.unwrap().contains("ann@mail.example"));
    assert_eq!(account(&world, "ann").await, None);
    assert_eq!(
        browser.log_in("ann", PASSPHRASE).await.status(),
        StatusCode::UNAUTHORIZED
    );
    let link = link(&mails(&mailbox, 1).await[0]);
    assert_eq!(mailbox.all()[0].to, "ann@mail.example");
    // A program that looks at mails follows links: nothing happens.
    browser.get(&link).await;
    assert_eq!(account(&world, "ann").await, None);
    for wrong in [
        link.replace("state=", "state=0"),
        link.replace("id=", "id=1"),
        "/confirm?id=x&state=y".to_owned(),
    ] {
        let refused = confirm(&mut browser, &wrong).await;
        assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{wrong}");
    }
    assert_eq!(confirm(&mut browser, &link).await.status(), StatusCode::OK);
    let ann = account(&world, "ann").await.unwrap();
    assert_eq!(ann.state, AccountState::NotActivated);
    assert_eq!(
        confirm(&mut browser, &link).await.status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        browser.log_in("ann", PASSPHRASE).await.status(),
        StatusCode::SEE_OTHER
    );
    assert_eq!(
        account(&world, "ann").await.unwrap().state,
        AccountState::Active
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_address_that_is_known_gives_the_same_page() {
    let (world, mailbox) = world(SignUpMode::Open).await;
    world.account("ann").await;
    let mut pages = Vec::new();
    for (name, mail) in [("ben", "ann@mail.example"), ("cat", "cat@mail.example")] {
        let mut browser = world.browser();
        let answer = sign_up(&mut browser, name, mail, PASSPHRASE).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let page = answer.text().await.unwrap();
        let token = hidden(&page, "form_token");
        pages.push(page.replace(&token, "").replace(mail, ""));
        // The name is held, whosever the address is.
        let other = "another passphrase";
        let taken = sign_up(&mut browser, name, "dan@mail.example", other).await;
        assert_eq!(taken.status(), StatusCode::UNPROCESSABLE_ENTITY, "{name}");
    }
    assert_eq!(pages[0], pages[1]);
    let texts = mails(&mailbox, 2).await;
    let (known, new): (Vec<&String>, Vec<&String>) =
        texts.iter().partition(|text| text.contains("already"));
    assert_eq!((known.len(), new.len()), (1, 1));
    assert!(!known[0].contains("/confirm"), "{known:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_sent_again_but_not_often_and_not_to_anybody() {
    let (clock, now_ms) = test_clock!();
    let (world, mailbox) = people_world(|app| {
        app.people.sign_up.mode = SignUpMode::Open;
        app.people.use_clock(clock);
    })
    .await;
    world.account("ann").await;
    let mut browser = world.browser();
    let page = sign_up(&mut browser, "ben", "ben@mail.example", PASSPHRASE).await;
    let token = hidden(&page.text().await.unwrap(), "form_token");
    let before = link(&mails(&mailbox, 1).await[0]);
    let mut pages = Vec::new();
    for mail in [
        "ben@mail.example",
        "ann@mail.example",
        "nobody@mail.example",
        "no-address!",
    ] {
        let fields = [("form_token", &*token), ("mail", mail)];
        let answer = browser.submit("/sign-up/resend", &fields).await;
        assert_eq!(answer.status(), StatusCode::OK);
        pages.push(answer.text().await.unwrap().replace(mail, ""));
    }
    assert!(
        pages.windows(2).all(|pair| pair[0].len() == pair[1].len()),
        "{pages:?}"
    );
    let again = link(&mails(&mailbox, 2).await[1]);
    for _ in 0..10 {
        let fields = [("form_token", &*token), ("mail", "ben@mail.example")];
        browser.submit("/sign-up/resend", &fields).await;
    }
    assert!(mailbox.all().len() <= 5, "{}", mailbox.all().len());
    pass(now_ms, 1_000);
    assert_eq!(
        confirm(&mut browser, &before).await.status(),
        StatusCode::NOT_FOUND
    );
    let last = link(&mailbox.all().pop().unwrap().text);
    assert_ne!(again, before);
    assert_eq!(confirm(&mut browser, &last).await.status(), StatusCode::OK);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_go_to_the_address_that_signed_up_however_it_is_written_later() {
    let (world, mailbox) = world(SignUpMode::Open).await;
    let mut browser = world.browser();
    let page = sign_up(&mut browser, "kim", "kim@mail.example", PASSPHRASE).await;
    let token = hidden(&page.text().await.unwrap(), "form_token");
    mails(&mailbox, 1).await;
    // The sign of the unit kelvin is another letter, with the same small one.
    let kelvin = "\u{212a}im@mail.example";
    let fields = [("form_token", &*token), ("mail", kelvin)];
    let resent = browser.submit("/sign-up/resend", &fields).await;
    assert_eq!(resent.status(), StatusCode::OK);
    let text = mails(&mailbox, 2).await.remove(1);
    confirm(&mut browser, &link(&text)).await;
    let known = sign_up(&mut browser, "kim2", kelvin, PASSPHRASE).await;
    assert_eq!(known.status(), StatusCode::OK);
    mails(&mailbox, 3).await;
    for mail in mailbox.all() {
        assert_eq!(mail.to, "kim@mail.example");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_mailed_a_few_times_whoever_asks_and_for_what() {
    let (clock, now_ms) = test_clock!();
    let (world, mailbox) = people_world(|app| {
        app.people.sign_up.mode = SignUpMode::Open;
        app.people.use_clock(clock);
        app.public_base = Some("http://drift.example".parse().unwrap());
    })
    .await;
    world.account("ann").await;
    let mut browser = world.browser();
    let page = browser.get("/sign-up").await.text().await.unwrap();
    let token = hidden(&page, "form_token");
    let mut turn = 0;
    let mut ask = async |mail: &str, from: &str| {
        turn += 1;
        let name = format!("name{turn}");
        let fields = [
            ("form_token", &*token),
            ("name", &name),
            ("mail", mail),
            ("passphrase", PASSPHRASE),
        ];
        let headers = [("x-forwarded-for", from)];
        let path = ["/sign-up", "/sign-up/resend"][turn % 2];
        browser.submit_with(path, &fields, &headers).await.status()
    };
    // One that signs up, and one that has an account.
    for mail in ["ben@mail.example", "ann@mail.example"] {
        for number in 0..25 {
            let status = ask(mail, &format!("192.0.2.{number}")).await;
            assert_eq!(status, StatusCode::OK, "the answer is the same");
        }
        let sent = mailbox.all().iter().filter(|sent| sent.to == mail).count();
        assert!((1..=3).contains(&sent), "{sent} mails to {mail}");
    }
    pass(now_ms, 48 * 3_600_000);
    let before = mailbox.all().len();
    for _ in 0..2 {
        ask("ben@mail.example", "192.0.2.1").await;
    }
    assert!(mailbox.all().len() > before, "it is forgotten");
    // One network address has only so many mails sent, to whomever.
    let before = mailbox.all().len();
    let mut refused = 0;
    for number in 0..60 {
        let status = ask(&format!("n{number}@mail.example"), "198.51.100.1").await;
        refused += usize::from(status == StatusCode::TOO_MANY_REQUESTS);
    }
    let sent = mailbox.all().len() - before;
    assert!(
        sent <= 31 && refused >= 29,
        "{sent} sent, {refused} refused"
    );
    assert_eq!(
        ask("dora@mail.example", "198.51.100.2").await,
        StatusCode::OK
    );
    world.close().await;
}

/// The address of the first link of a page that begins so, as it is before escapes.
fn linked(page: &str, beginning: &str) -> String {
    let at = page.find(&format!("href=\"{beginning}"));
    let at = at.unwrap_or_else(|| panic!("no link to {beginning} in {page}"));
    let link = page[at..].split('"').nth(1).unwrap();
    link.replace("&amp;", "&")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_up_for_an_app_goes_on_with_its_request() {
    let (world, mailbox) = world(SignUpMode::Open).await;
    let app = world.app("toot", "app://back", "read").await;
    let request = app.authorize(&[("state", "kept & safe")]);
    let mut browser = world.browser();
    let asked = browser.get(&request).await;
    let page = browser.get(&location(&asked)).await.text().await.unwrap();
    let page = browser
        .get(&linked(&page, "/sign-up"))
        .await
        .text()
        .await
        .unwrap();
    let to = hidden(&page, "to");
    let fields = [
        ("form_token", &*hidden(&page, "form_token")),
        ("to", &to),
        ("name", "ann"),
        ("mail", "ann@mail.example"),
        ("passphrase", PASSPHRASE),
    ];
    browser.submit("/sign-up", &fields).await;
    // The mail may be read elsewhere.
    let mut browser = world.browser();
    let confirmed = confirm(&mut browser, &link(&mails(&mailbox, 1).await[0])).await;
    let page = confirmed.text().await.unwrap();
    let page = browser
        .get(&linked(&page, "/log-in"))
        .await
        .text()
        .await
        .unwrap();
    let fields = [
        ("form_token", &*hidden(&page, "form_token")),
        ("to", &hidden(&page, "to")),
        ("who", "ann"),
        ("passphrase", PASSPHRASE),
    ];
    let logged_in = browser.submit("/log-in", &fields).await;
    let answer = browser.decide(&location(&logged_in), "allow").await;
    let back = location(&answer);
    assert!(back.starts_with("app://back"), "{back}");
    assert_eq!(param(&back, "state").as_deref(), Some("kept & safe"));
    assert!(param(&back, "code").is_some());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_up_leads_to_our_own_pages_alone() {
    let (world, _) = world(SignUpMode::Open).await;
    let page = world
        .browser()
        .get("/sign-up?to=https://evil.example")
        .await;
    let page = page.text().await.unwrap();
    assert!(!page.contains("name=\"to\""), "{page}");
    assert!(!linked(&page, "/log-in").contains("evil"), "{page}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_needs_approval_waits_for_it() {
    let (world, mailbox) = world(SignUpMode::Approval).await;
    let mut browser = world.browser();
    sign_up(&mut browser, "ann", "ann@mail.example", PASSPHRASE).await;
    let link = link(&mails(&mailbox, 1).await[0]);
    let confirmed = confirm(&mut browser, &link).await.text().await.unwrap();
    assert!(confirmed.contains("approve"), "{confirmed}");
    let refused = browser.log_in("ann", PASSPHRASE).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let wrong = browser.log_in("ann", "wrong passphrase").await;
    assert_eq!(
        wrong.status(),
        StatusCode::UNAUTHORIZED,
        "only who knows it is told"
    );
    let ann = account(&world, "ann").await.unwrap();
    assert!(ann.awaits_approval && ann.reason == "to read");
    world.set_state(ann.id, AccountState::Active).await;
    assert_eq!(
        browser.log_in("ann", PASSPHRASE).await.status(),
        StatusCode::SEE_OTHER
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_signs_up_where_it_is_closed() {
    let (world, mailbox) = world(SignUpMode::Closed).await;
    let mut browser = world.browser();
    assert_eq!(
        browser.get("/sign-up").await.status(),
        StatusCode::FORBIDDEN
    );
    browser.get("/log-in").await;
    let fields = [
        ("name", "ann"),
        ("mail", "ann@mail.example"),
        ("passphrase", PASSPHRASE),
    ];
    let refused = browser.submit("/sign-up", &fields).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let (status, _) = by_app(&world, &json!({})).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(mailbox.all().is_empty());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_sign_up_is_said_beside_it() {
    let (world, mailbox) = world(SignUpMode::Open).await;
    world.account("ann").await;
    let mut browser = world.browser();
    for (name, mail, passphrase, text) in [
        (
            "ANN",
            "new@mail.example",
            PASSPHRASE,
            "Somebody has this name",
        ),
        (
            "a b",
            "new@mail.example",
            PASSPHRASE,
            "cannot be an account name",
        ),
        ("ben", "mail.example", PASSPHRASE, "not a mail address"),
        ("ben", "new@mail.example", "a  b    c", "too short"),
    ] {
        let answer = sign_up(&mut browser, name, mail, passphrase).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        let page = answer.text().await.unwrap();
        assert!(page.contains(text) && !page.contains(passphrase), "{page}");
        assert!(page.contains(&format!("value=\"{name}\"")), "{page}");
    }
    assert!(mailbox.all().is_empty());
    world.close().await;
}

/// Signs up by an app, with some parameters changed.
async fn by_app(world: &World, changes: &Value) -> (StatusCode, Value) {
    let app = world.app("toot", OOB, "read write").await;
    let grant = json!({
        "grant_type": "client_credentials", "client_id": app.id, "client_secret": app.secret,
        "scope": "read write",
    });
    let token = parsed(world.post("/oauth/token", &grant).await).await;
    let token = token["access_token"].as_str().unwrap().to_owned();
    let mut body = json!({
        "username": "ann", "email": "ann@mail.example", "password": PASSPHRASE, "agreement": true,
        "locale": "pt",
    });
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    let request = world.client.post(format!("{}/api/v1/accounts", world.base));
    let request = request
        .bearer_auth(token)
        .header("content-type", "application/json");
    let answer = request.body(body.to_string()).send().await.unwrap();
    (answer.status(), parsed(answer).await)
}

/// The token of an answer.
fn given(answer: &Value) -> &str {
    answer["access_token"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apps_token_works_once_the_address_is_confirmed() {
    let (world, mailbox) = world(SignUpMode::Open).await;
    let (status, token) = by_app(&world, &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{token}");
    let known = json!({ "username": "ben" });
    let (status, of_known) = by_app(&world, &known).await;
    assert_eq!(status, StatusCode::OK, "{of_known}");
    for token in [&token, &of_known] {
        assert_eq!(world.verified(given(token)).await, StatusCode::UNAUTHORIZED);
    }
    let texts = mails(&mailbox, 2).await;
    assert!(texts[0].contains("Alguém"), "{texts:?}");
    let anns = texts
        .iter()
        .find(|text| text.contains(" ann.") || text.contains("nome ann"));
    let mut browser = world.browser();
    let confirmed = confirm(&mut browser, &link(anns.unwrap())).await;
    assert_eq!(confirmed.status(), StatusCode::OK);
    assert_eq!(world.verified(given(&token)).await, StatusCode::OK);
    assert_eq!(
        world.verified(given(&of_known)).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        account(&world, "ann").await.unwrap().state,
        AccountState::Active
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_told_what_is_wrong_as_mastodon_tells_it() {
    let (world, _) = world(SignUpMode::Open).await;
    world.account("ben").await;
    for (changes, field, error) in [
        (json!({ "username": "ben" }), "username", "ERR_TAKEN"),
        (json!({ "username": "b b" }), "username", "ERR_INVALID"),
        (json!({ "email": "x" }), "email", "ERR_INVALID"),
        (json!({ "password": "short" }), "password", "ERR_TOO_SHORT"),
        (json!({ "agreement": false }), "agreement", "ERR_ACCEPTED"),
    ] {
        let (status, answer) = by_app(&world, &changes).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
        assert_eq!(answer["details"][field][0]["error"], error, "{answer}");
        assert!(
            answer["error"]
                .as_str()
                .unwrap()
                .starts_with("Validation failed: ")
        );
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_server_may_take_addresses_as_they_are() {
    let (world, mailbox) = people_world(|app| {
        app.people.sign_up.mode = SignUpMode::Open;
        app.people.sign_up.without_mail = true;
    })
    .await;
    let (status, token) = by_app(&world, &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{token}");
    assert_eq!(world.verified(given(&token)).await, StatusCode::OK);
    assert!(mailbox.all().is_empty());
    world.close().await;
}
