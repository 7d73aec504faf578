//! Events as lines.

use driftline_server::admin::FeedLine;
use serde::Deserialize;

use crate::shown::{self, beginning, plain};

/// An event as one line of JSON, with the position after it.
pub fn json(line: &FeedLine) -> String {
    // The data is an object with members.
    let rest = line.data.get().trim_start_matches('{');
    format!("{{\"position\":\"{}\",{rest}", line.position)
}

/// An event for people: when, what, of which source, by whom, the beginning of its text, and where.
pub fn text(line: &FeedLine) -> String {
    let told: Change = serde_json::from_str(line.data.get()).unwrap_or_default();
    let post = told.post;
    let status = post.status.unwrap_or_default();
    let at_ms = post.created_at_ms.unwrap_or(post.arrived_at_ms);
    let mut parts = vec![
        shown::time(at_ms),
        line.event.name().to_owned(),
        line.source.clone(),
    ];
    let (author, boosted) = (status.account, status.reblog);
    parts.extend(author.map(|author| format!("@{}", plain(&author.acct))));
    let content = match boosted {
        Some(boosted) => {
            let author = boosted.account.map(|author| author.acct);
            parts.push(format!("boosts @{}", plain(&author.unwrap_or_default())));
            boosted.content.or(boosted.text)
        }
        None => status.content.or(status.text),
    };
    let content = content.map(|html| beginning(&plain(&without_tags(&html))));
    parts.extend(content.filter(|text| !text.is_empty()));
    parts.push(plain(&post.url.or(post.uri).unwrap_or(post.upstream_id)));
    parts.join("  ")
}

#[derive(Deserialize, Default)]
struct Change {
    post: ChangedPost,
}

#[derive(Deserialize, Default)]
struct ChangedPost {
    arrived_at_ms: i64,
    created_at_ms: Option<i64>,
    status: Option<StatusParts>,
    upstream_id: String,
    uri: Option<String>,
    url: Option<String>,
}

/// What people are shown of a post, of any API.
#[derive(Deserialize, Default)]
#[serde(default)]
struct StatusParts {
    account: Option<AuthorParts>,
    content: Option<String>,
    text: Option<String>,
    reblog: Option<Box<StatusParts>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AuthorParts {
    acct: String,
}

/// The text of a post's HTML, on one line.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        text.push_str(&rest[..begin]);
        let tag = &rest[begin..];
        // Tags within a line, as of links, part no words.
        if ["<br", "<p", "</p", "<li"]
            .iter()
            .any(|part| tag.starts_with(part))
        {
            text.push(' ');
        }
        rest = tag.find('>').map_or("", |end| &tag[end + 1..]);
    }
    text.push_str(rest);
    for (entity, character) in ENTITIES {
        text = text.replace(entity, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The ampersand comes last.
const ENTITIES: [(&str, &str); 6] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    ("&nbsp;", " "),
    ("&amp;", "&"),
];

#[cfg(test)]
mod tests {
    use driftline_core::feed::ChangeKind;
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn line(status: &serde_json::Value) -> FeedLine {
        let data = json!({"event": "new", "history": false, "source": "home", "post": {
            "arrived_at_ms": 0, "created_at_ms": 0, "status": status, "upstream_id": "7",
            "uri": null, "url": "https://a.example/@b/7"}});
        FeedLine {
            position: "1:5".to_owned(),
            event: ChangeKind::New,
            source: "home".to_owned(),
            is_match: true,
            data: to_raw_value(&data).unwrap(),
        }
    }

    #[test]
    fn the_json_of_an_event_has_its_position() {
        let value: serde_json::Value =
            serde_json::from_str(&super::json(&line(&json!({})))).unwrap();
        assert_eq!(value["position"], "1:5");
        assert_eq!(value["post"]["upstream_id"], "7");
    }

    #[test]
    fn people_are_shown_the_text_of_a_post() {
        let shown = text(&line(&json!({
            "account": {"acct": "b@a.example"},
            "content": "<p>Tea &amp; &lt;b&gt;<br>for <a href=\"x\">two</a></p><p>now</p>"})));
        assert!(
            shown.ends_with(
                "new  home  @b@a.example  Tea & <b> for two now  https://a.example/@b/7"
            ),
            "{shown}"
        );
    }

    #[test]
    fn a_boost_shows_what_it_boosts() {
        let shown = text(&line(&json!({"account": {"acct": "b"}, "content": "",
            "reblog": {"account": {"acct": "c"}, "content": "<p>hear</p>"}})));
        assert!(shown.contains("@b  boosts @c  hear  https"), "{shown}");
    }

    #[test]
    fn a_post_cannot_command_the_terminal() {
        let shown = text(&line(&json!({
            "account": {"acct": "b\u{1b}[2J"}, "content": "a\u{9b}31m\u{202e}\u{7}z\r\nx"})));
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert!(!shown.contains('\u{202e}'), "{shown:?}");
    }

    #[test]
    fn a_long_text_is_cut() {
        let shown = text(&line(&json!({"content": "ä".repeat(101)})));
        assert!(shown.contains(&format!("{}…", "ä".repeat(100))), "{shown}");
    }
}
