//! Quirks over real sockets.

use driftline_sim::{
    WorldConfig,
    http::ServerConfig,
    quirks::{Links, Quirks},
};

use crate::raw::{HOME, ask, frozen_server};

fn config(quirks: Quirks) -> ServerConfig {
    WorldConfig {
        quirks,
        ..WorldConfig::punctual(20.0)
    }
    .into()
}

#[tokio::test]
async fn links_are_missing_or_odd_and_dates_cannot_be_read() {
    for (links, expected) in [
        (Links::Missing, None),
        (Links::Relative, Some("</api/v1/timelines/home?limit=")),
        (Links::OtherHost, Some("<https://elsewhere.example/api/v1/")),
        (Links::WithoutRel, Some("<http://127.0.0.1:")),
    ] {
        let quirks = Quirks {
            links,
            no_date: true,
            ..Quirks::default()
        };
        let (server, _) = frozen_server(config(quirks)).await;
        let page = ask(&server, HOME, "t").await;
        let header = page.header("link");
        assert_eq!(header.is_some(), expected.is_some(), "{links:?}");
        assert!(header.is_none_or(|it| expected.is_some_and(|start| it.starts_with(start))));
        assert!(header.is_none_or(|it| it.contains("rel=") == (links != Links::WithoutRel)));
        assert_eq!(page.header("date"), Some("-"));
    }
}

#[tokio::test]
async fn each_kind_of_timeline_has_quirks_of_its_own() {
    let (server, _) = frozen_server(config(Quirks::gotosocial())).await;
    for (path, ignores) in [
        ("timelines/home", false),
        ("timelines/public", false),
        ("accounts/77/statuses", true),
    ] {
        let path = format!("/api/v1/{path}?limit=10");
        let top = ask(&server, &path, "t").await.ids();
        let since = format!("{path}&since_id={}", top[4]);
        let mut expected = match ignores {
            true => top.clone(),
            false => top[..4].to_vec(),
        };
        if path.contains("home") {
            expected.push(top[0].clone());
        }
        assert_eq!(ask(&server, &since, "t").await.ids(), expected, "{path}");
    }
    let id = ask(&server, HOME, "t").await.ids().remove(0);
    let path = format!("/api/v1/statuses/{id}");
    assert_eq!(ask(&server, &path, "").await.status(), "401");
    let one = ask(&server, &path, "t").await;
    assert!(one.text.contains("\\u003cp\\u003e") && !one.text.contains("<p>"));
}
