//! Our own pages, as a browser without JavaScript sees them, and the attacks on them.

use driftline_api::people::SignUpMode;
use reqwest::{Response, StatusCode};
use url::Url;

use crate::{
    people::{OOB, PASSPHRASE, form, hidden, location, people_world},
    world::World,
};

fn header<'r>(answer: &'r Response, name: &str) -> &'r str {
    answer.headers()[name].to_str().unwrap()
}

async fn world() -> World {
    let (world, _) = people_world(|app| app.people.sign_up.mode = SignUpMode::Open).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_is_stored_framed_or_runs_anything() {
    let world = world().await;
    world.account("ann").await;
    let app = world
        .app("<script>alert(1)</script>", "app://back", "read")
        .await;
    let mut browser = world.browser();
    for path in [
        "/",
        "/@ann",
        "/tags/<script>",
        "/log-in",
        "/sign-up",
        "/confirm?id=1&state=x",
        "/oauth/authorize",
    ] {
        let answer = browser.get(path).await;
        check_headers(&answer);
        assert!(!answer.text().await.unwrap().contains("<script"), "{path}");
    }
    browser.log_in("ann", PASSPHRASE).await;
    let state = "\"><script>alert(2)</script>";
    let answer = browser.get(&app.authorize(&[("state", state)])).await;
    check_headers(&answer);
    let policy = header(&answer, "content-security-policy").to_owned();
    assert!(policy.contains("form-action 'self' app:;"), "{policy}");
    let page = answer.text().await.unwrap();
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert_eq!(hidden(&page, "state"), state);
    assert!(page.contains("see everything in your account"), "{page}");
    world.close().await;
}

fn check_headers(answer: &Response) {
    let policy = header(answer, "content-security-policy");
    for part in [
        "default-src 'none'",
        "style-src 'sha256-",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(header(answer, "cache-control"), "no-store");
    assert_eq!(header(answer, "x-frame-options"), "DENY");
    assert_eq!(header(answer, "x-content-type-options"), "nosniff");
    assert_eq!(header(answer, "content-type"), "text/html; charset=utf-8");
    assert!(!answer.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_speak_the_readers_language() {
    let world = world().await;
    let browser = world.browser();
    for (path, accepted, tag, text) in [
        ("/log-in", "", "en", "Log in"),
        ("/log-in", "ja-JP,en;q=0.5", "ja", "ログイン"),
        ("/log-in", "pt-BR", "pt", "Entrar"),
        ("/log-in?lang=pt", "ja", "pt", "Entrar"),
        ("/log-in?lang=xx", "ja", "ja", "ログイン"),
        ("/sign-up", "pt", "pt", "Criar conta"),
        ("/sign-up", "ja", "ja", "新規登録"),
        ("/oauth/authorize", "ja", "ja", "アプリ"),
    ] {
        let request = browser.client.get(format!("{}{path}", world.base));
        let answer = request
            .header("accept-language", accepted)
            .send()
            .await
            .unwrap();
        assert_eq!(
            header(&answer, "content-language"),
            tag,
            "{path} {accepted}"
        );
        let page = answer.text().await.unwrap();
        assert!(
            page.contains(&format!("<html lang=\"{tag}\">")) && page.contains(text),
            "{page}"
        );
    }
    let page = browser
        .client
        .get(format!("{}/log-in?to=%2Fx&lang=ja", world.base));
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(
        page.contains("href=\"/log-in?to=%2Fx&amp;lang=pt\""),
        "{page}"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_in_page_leads_back_to_the_app_and_nowhere_else() {
    let world = world().await;
    world.account("ann").await;
    let app = world.app("toot", OOB, "read").await;
    let mut browser = world.browser();
    let there = location(
        &browser
            .get(&app.authorize(&[("force_login", "true")]))
            .await,
    );
    let page = browser.get(&there).await.text().await.unwrap();
    let (token, to) = (hidden(&page, "form_token"), hidden(&page, "to"));
    let fields = [
        ("form_token", &*token),
        ("to", &*to),
        ("who", "ann"),
        ("passphrase", PASSPHRASE),
    ];
    let answer = browser.submit("/log-in", &fields).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert!(location(&answer).starts_with("/oauth/authorize?"));
    assert!(!location(&answer).contains("force_login"), "once is enough");
    let consent = browser.get(&location(&answer)).await;
    assert_eq!(consent.status(), StatusCode::OK);
    for evil in [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
    ] {
        let mut browser = world.browser();
        let page = browser
            .get(&format!("/log-in?{}", form(&[("to", evil)])))
            .await;
        let page = page.text().await.unwrap();
        let token = hidden(&page, "form_token");
        assert!(!page.contains("evil.example\""), "{page}");
        let fields = [
            ("form_token", &*token),
            ("to", evil),
            ("who", "ann"),
            ("passphrase", PASSPHRASE),
        ];
        let answer = browser.submit("/log-in", &fields).await;
        assert_eq!(location(&answer), "/log-in", "{evil}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_new_at_each_log_in_and_ends_with_the_log_out() {
    let world = world().await;
    world.account("ann").await;
    let mut browser = world.browser();
    browser.cookies.insert(
        "driftline_session".to_owned(),
        "dlw_chosen-by-somebody".to_owned(),
    );
    browser.log_in("ann", PASSPHRASE).await;
    let first = browser.cookies["driftline_session"].clone();
    assert!(first.starts_with("dlw_") && first.len() > 50);
    let page = browser.get("/log-in").await.text().await.unwrap();
    assert!(page.contains("@ann"), "{page}");
    let token = hidden(&page, "form_token");
    let refused = browser.submit("/log-out", &[("form_token", "x")]).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let out = browser.submit("/log-out", &[("form_token", &token)]).await;
    assert_eq!(out.status(), StatusCode::SEE_OTHER);
    assert!(!browser.cookies.contains_key("driftline_session"));
    browser
        .cookies
        .insert("driftline_session".to_owned(), first);
    let page = browser.get("/log-in").await.text().await.unwrap();
    assert!(
        page.contains("name=\"passphrase\""),
        "the old cookie is worth nothing: {page}"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_are_for_tls_alone_where_clients_come_over_it() {
    let (world, _) = people_world(|app| {
        app.public_base = Some(Url::parse("https://drift.example").unwrap());
    })
    .await;
    let answer = world.answer("/log-in").await;
    let cookie = header(&answer, "set-cookie");
    assert!(cookie.starts_with("__Host-driftline_form="), "{cookie}");
    assert!(
        cookie.contains("; Secure") && cookie.contains("; Path=/;"),
        "{cookie}"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_addresses_that_answers_name_lead_somewhere() {
    let world = world().await;
    world.account("ann").await;
    let mut browser = world.browser();
    let front = browser.get("/").await.text().await.unwrap();
    assert!(
        front.contains("/log-in") && front.contains("/sign-up"),
        "{front}"
    );
    // A stranger is told the same of whoever is here and of whoever is not.
    let ann = browser.get("/@ann").await.text().await.unwrap();
    let eve = browser.get("/@eve").await.text().await.unwrap();
    assert_eq!(ann, eve.replace("@eve", "@ann"));
    assert!(ann.contains("@ann@"), "{ann}");
    let tag = browser.get("/tags/caf%C3%A9?lang=ja").await.text().await;
    assert!(tag.unwrap().contains("#caf\u{e9}"));
    let instance = world.json("/api/v2/instance").await;
    let picture = instance["thumbnail"]["url"].as_str().unwrap();
    for path in [picture.strip_prefix(&world.base).unwrap(), "/favicon.ico"] {
        let answer = browser.get(path).await;
        assert_eq!(header(&answer, "content-type"), "image/png", "{path}");
        assert!(answer.bytes().await.unwrap().starts_with(b"\x89PNG"));
    }
    world.close().await;
}
