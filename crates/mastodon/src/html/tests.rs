use std::cell::RefCell;

use html5ever::{
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
    },
};
use proptest::prelude::*;

use super::*;

/// What a parser finds in HTML that must not be there.
#[derive(Default)]
struct Offences(RefCell<Vec<String>>);

impl TokenSink for Offences {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut found = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => {
                if !rules::ELEMENTS.contains(&&*tag.name) {
                    found.push(format!("<{}>", tag.name));
                }
                if tag.kind == TagKind::StartTag && *tag.name == *"a" {
                    let has = |name: &str, value: &str| {
                        let is = |attr: &html5ever::Attribute| {
                            *attr.name.local == *name && *attr.value == *value
                        };
                        tag.attrs.iter().any(is)
                    };
                    if !has("rel", "nofollow noopener") || !has("target", "_blank") {
                        found.push("a link without rel".to_owned());
                    }
                }
                for attr in &tag.attrs {
                    let (name, value) = (&*attr.name.local, &*attr.value);
                    let is_allowed = matches!(name, "rel" | "target") && *tag.name == *"a"
                        || rules::attribute(&tag.name, name, value).as_deref() == Some(value);
                    if !is_allowed {
                        found.push(format!("{name}={value:?}"));
                    }
                    let begin = value.trim().to_ascii_lowercase();
                    if begin.starts_with("javascript:") || begin.starts_with("data:") {
                        found.push(format!("{name}={value:?}"));
                    }
                }
            }
            Token::CommentToken(text) => found.push(format!("<!--{text}")),
            Token::DoctypeToken(_) => found.push("<!DOCTYPE".to_owned()),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

fn offences(html: &str) -> Vec<String> {
    let tokenizer = Tokenizer::new(Offences::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.into_inner()
}

/// Everything that must be true of any HTML.
fn check(html: &str) {
    let clean = clean_html(html);
    assert_eq!(
        offences(&clean),
        Vec::<String>::new(),
        "{html:?} -> {clean:?}"
    );
    assert_eq!(clean_html(&clean), clean, "cleaning again, of {html:?}");
    assert_eq!(clean, strictly_cleaned(html), "the short cut, of {html:?}");
    if let Some(balanced) = balance::balanced(html) {
        let judged = rules::content().clean(&balanced).to_string();
        assert_eq!(judged, balanced, "of {html:?}");
    }
}

#[test]
fn what_mastodon_writes_stays() {
    for html in [
        "",
        "plain 'text' \"quoted\", ünïcode",
        "<p>one</p><p>two<br>three &amp; four</p>",
        "<p><span class=\"h-card\" translate=\"no\"><a href=\"https://a.example/@b\" class=\"u-url mention\" target=\"_blank\" rel=\"nofollow noopener\">@<span>b</span></a></span></p>",
        "<p><a href=\"https://a.example/?a=1&amp;b=2\" target=\"_blank\" rel=\"nofollow noopener\"><span class=\"invisible\">https://</span><span class=\"ellipsis\">a.example</span></a></p>",
        "<blockquote><p>a</p></blockquote><pre><code>x\n  y</code></pre><ol start=\"3\" reversed=\"\"><li value=\"7\">z</li></ol>",
        "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby> <del>a</del><s>b</s><u>c</u><i>d</i><em>e</em><b>f</b><strong>g</strong>",
        "<p lang=\"ja\">語</p><p class=\"quote-inline\">RE</p>",
    ] {
        check(html);
        assert_eq!(clean_html(html), html);
    }
}

#[test]
fn what_else_servers_write_becomes_what_mastodon_writes() {
    let rel = "target=\"_blank\" rel=\"nofollow noopener\"";
    for (html, clean) in [
        ("a > b", "a &gt; b".to_owned()),
        (
            "a & b &lt; &quot;c&quot; &#39;d&#39;\u{a0}",
            "a &amp; b &lt; \"c\" 'd'&nbsp;".to_owned(),
        ),
        ("<P>a<BR/>b", "<p>a<br>b</p>".to_owned()),
        ("<h2>T</h2>x", "<p><strong>T</strong></p>x".to_owned()),
        ("<div>a</div><div>b</div>", "a\nb".to_owned()),
        ("<p>a<p>b", "<p>a</p><p>b</p>".to_owned()),
        (
            "<ul><li>a<li>b</ul>",
            "<ul><li>a</li><li>b</li></ul>".to_owned(),
        ),
        ("<b><i>x</b>y</i>", "<b><i>x</i></b>y".to_owned()),
        (
            "<a class=\"x mention y\" rel=me target=_top href='https://a.example'>a</a>",
            format!("<a href=\"https://a.example\" class=\"mention\" {rel}>a</a>"),
        ),
        (
            "<a href=\"https://a.example\">a<a href=\"gemini://b.example\">b</a>",
            format!(
                "<a href=\"https://a.example\" {rel}>a</a><a href=\"gemini://b.example\" {rel}>b</a>"
            ),
        ),
        ("<a href=\"/relative\">text</a>", "text".to_owned()),
        (
            "<p>pic <img src=\"https://a.example/x.png\" alt=y></p>",
            "<p>pic </p>".to_owned(),
        ),
        (
            "<span translate=yes class=big style=\"color:red\">x</span>",
            "<span>x</span>".to_owned(),
        ),
        ("<pre>\n\nx</pre>", "<pre>x</pre>".to_owned()),
        ("a\r\nb\0c", "a\nbc".to_owned()),
        ("</p>a</br>b</b>", "a<br>b".to_owned()),
    ] {
        check(html);
        assert_eq!(clean_html(html), clean, "{html}");
    }
}

#[test]
fn attacks_fail() {
    for html in ATTACKS {
        check(html);
    }
}

const ATTACKS: &[&str] = &[
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<script>/*</script><img src=x onerror=alert(1)>*/",
    "<style>@import 'https://evil.example';</style>",
    "<p style=\"background:url(javascript:alert(1))\" onclick=alert(1)>x</p>",
    "<p onclick='alert(1)' ONMOUSEOVER=alert(1)>x",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<a href=\"JaVaScRiPt:alert(1)\">x</a>",
    "<a href=\" javascript:alert(1)\">x</a>",
    "<a href=\"\u{1}javascript:alert(1)\">x</a>",
    "<a href=\"java\tscript:alert(1)\">x</a>",
    "<a href=\"java&#10;script:alert(1)\">x</a>",
    "<a href=\"&#106;&#97;vascript&colon;alert(1)\">x</a>",
    "<a href=\"data:text/html,<script>alert(1)</script>\">x</a>",
    "<a href=\"data:text/html;base64,PHNjcmlwdD4=\">x</a>",
    "<a href=\"vbscript:msgbox(1)\">x</a>",
    "<a href=\"blob:https://a.example/x\">x</a>",
    "<a href=\"file:///etc/passwd\">x</a>",
    "<a href=\"//evil.example\">x</a>",
    "<a href='https://a.example' href='javascript:alert(1)'>x</a>",
    "<a href=https://a.example ping=https://evil.example>x</a>",
    "<img src=x onerror=alert(1)>",
    "<img/src='x'/onerror='alert(1)'>",
    "<svg onload=alert(1)><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><a xlink:href=\"javascript:alert(1)\"><text>x</text></a></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<math><mi><p><style><!--</style><img src/onerror=alert(1)>--></style></p></mi></math>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<noembed><p title=\"</noembed><img src=x onerror=alert(1)>\">",
    "<xmp><p title=\"</xmp><svg/onload=alert(1)>\">",
    "<iframe src=\"https://evil.example\"></iframe>",
    "<iframe srcdoc=\"<script>alert(1)</script>\">",
    "<iframe><p title=\"</iframe><img src=x onerror=alert(1)>\">",
    "<object data=\"data:text/html,x\"><embed src=\"javascript:alert(1)\"></object>",
    "<template><img src=x onerror=alert(1)></template>",
    "<plaintext><img src=x onerror=alert(1)>",
    "<textarea><img src=x onerror=alert(1)></textarea><img src=x onerror=alert(1)>",
    "<title><img src=x onerror=alert(1)></title>",
    "<base href=\"https://evil.example\"><a href=x>x</a>",
    "<meta http-equiv=refresh content=\"0;url=javascript:alert(1)\">",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<form action=javascript:alert(1)><button formaction=javascript:alert(1)>x</form>",
    "<input onfocus=alert(1) autofocus>",
    "<details open ontoggle=alert(1)>x",
    "<video><source onerror=alert(1)></video>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<!--[if gte IE 4]><script>alert(1)</script><![endif]-->",
    "<![CDATA[><img src=x onerror=alert(1)>]]>",
    "<?xml version=\"1.0\"?><img src=x onerror=alert(1)>",
    "<a href=\"https://a.example\" class=\"mention\"onmouseover=\"alert(1)\">x</a>",
    "<a href=\"https://a.example/&quot; onclick=&quot;alert(1)\">x</a>",
    "<a href=\"https://a.example/\" title='\"><img src=x onerror=alert(1)>'>x</a>",
    "<p class=\"h-&quot;><img src=x onerror=alert(1)>\">x</p>",
    "<p lang='\"><script>alert(1)</script>'>x</p>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script>alert(1)</script>",
    "&lt<img src=x onerror=alert(1)>",
    "<\0script>alert(1)</script>",
    "<p/onclick=alert(1)>x",
    "<a\u{c}href=\"javascript:alert(1)\">x</a>",
    "<table><a href=\"javascript:alert(1)\">x<tr><td></a><script>alert(1)</script>",
    "<select><option><style></option></select><img src=x onerror=alert(1)></style>",
    "\u{feff}<script>alert(1)</script>",
    "<p>\u{202e}<b",
    "<",
    "</",
    "<!",
    "<a href=\"",
];

#[test]
fn hostile_sizes_take_linear_time() {
    let numbered = |from: &str, to: &str| -> String {
        (0..40_000).map(|n| format!("{from}{n}{to}")).collect()
    };
    let attributes = format!("<a {}>x", numbered("a", " "));
    let different = numbered("<font size=\"", "\"><b lang=a>");
    let mut cases = vec![attributes, different];
    for part in [
        "<b>",
        "<p><b><i>",
        "<div>",
        "<a href=\"https://a.example\">",
        "<blockquote>",
        "<ul><li>",
        "<table><tr><td>",
        "<ruby><rt>",
        "<svg>",
        "<math><mi>",
        "</b>",
        "<b></i>",
        "<object><b></object></p>",
        "&",
        "&amp",
        "<",
        "<!--",
        "\u{a0}",
        "<pre>\n",
        "<h1>",
        "<script>",
        "<textarea>",
    ] {
        cases.push(part.repeat(200_000 / part.len()));
    }
    for html in cases {
        let clean = clean_html(&html);
        let bound = 8 * html.len() + 4096;
        assert!(
            clean.len() <= bound,
            "{} bytes of {}…",
            clean.len(),
            &html[..20]
        );
        assert_eq!(offences(&clean), Vec::<String>::new());
    }
}

#[test]
fn what_is_too_large_becomes_text() {
    let large = "<p>x</p>\0".repeat(200_000);
    let clean = clean_html(&large);
    assert!(clean.starts_with("&lt;p&gt;x"));
    assert_eq!(offences(&clean), Vec::<String>::new());
    let tag = format!("a<p title=\"{}\">b", "x".repeat(20_000));
    assert!(clean_html(&tag).starts_with("a&lt;p title="));
}

#[test]
fn embeds_keep_frames_in_a_sandbox() {
    let sandbox = "sandbox=\"allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-forms\"";
    for (html, clean) in [
        (
            "<iframe src=\"https://v.example/e\" width=\"200\" onload=\"alert(1)\" srcdoc=\"x\" sandbox=\"\" allowfullscreen></iframe>",
            format!(
                "<iframe src=\"https://v.example/e\" width=\"200\" allowfullscreen=\"\" {sandbox}></iframe>"
            ),
        ),
        (
            "<iframe src=\"javascript:alert(1)\"><script>alert(1)</script></iframe>",
            format!("<iframe {sandbox}></iframe>"),
        ),
        (
            "<script src=\"https://evil.example\"></script>",
            String::new(),
        ),
        (
            "<blockquote>Hi <a href=\"https://a.example\">a</a></blockquote><script>x</script>",
            "Hi a".to_owned(),
        ),
        (
            "<video controls><source src=\"https://v.example/x.mp4\"><source src=\"data:x\"></video>",
            "<video controls=\"\"><source src=\"https://v.example/x.mp4\"><source></video>"
                .to_owned(),
        ),
        (
            "<embed src=\"https://v.example/x.swf\"><object></object>",
            String::new(),
        ),
    ] {
        assert_eq!(clean_embed(html), clean, "{html}");
        assert_eq!(clean_embed(&clean), clean, "{html}");
    }
    let large = "<b>".repeat(10_000);
    assert_eq!(clean_embed(&large), "");
}

/// Elements that are not let through.
const OTHER_ELEMENTS: [&str; 32] = [
    "div",
    "h1",
    "table",
    "td",
    "tr",
    "svg",
    "math",
    "mi",
    "style",
    "script",
    "title",
    "textarea",
    "iframe",
    "template",
    "select",
    "option",
    "form",
    "button",
    "object",
    "nobr",
    "font",
    "img",
    "plaintext",
    "body",
    "html",
    "head",
    "frameset",
    "caption",
    "noscript",
    "xmp",
    "foreignObject",
    "annotation-xml",
];

/// Pieces of HTML, good and bad.
fn piece() -> impl Strategy<Value = String> {
    let names = rules::ELEMENTS.into_iter().chain(OTHER_ELEMENTS);
    let name = prop::sample::select(Vec::from_iter(names));
    let attribute = prop::sample::select(vec![
        "",
        " href=\"https://a.example/?a&amp;b\"",
        " href=\"https://a.example\" class=\"mention\"",
        " href='javascript:x'",
        " class=\"a h-b\"",
        " class=\"\"",
        " translate=\"no\"",
        " lang=\"ja\"",
        " start=\"2\"",
        " onclick=x",
        " rel=\"tag\" target=\"_blank\"",
        " href=\"https://[\"",
        "/",
        " a=\"<\"",
        " class=\"u-&quot;\"",
    ]);
    let text = prop::sample::select(vec![
        "x",
        " ",
        "\n",
        "&amp;",
        "&lt;",
        "&",
        "&nbsp;",
        "\u{a0}",
        "\u{feff}",
        "\0",
        "\r\n",
        ">",
        "<",
        "\"",
        "&#39;",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "é",
        "&#x3c;",
        "&notit;",
        "&quot;",
    ]);
    prop_oneof![
        4 => (name.clone(), attribute).prop_map(|(name, attribute)| format!("<{name}{attribute}>")),
        4 => name.prop_map(|name| format!("</{name}>")),
        4 => text.prop_map(str::to_owned),
    ]
}

/// Elements as servers write them, in place.
fn well_formed() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec![
        "tide",
        " ",
        "a &amp; b",
        "&lt;3",
        "「潮」",
        "\n",
        "&nbsp;",
    ]);
    let inline = prop_oneof![
        text.clone().prop_map(str::to_owned),
        Just("<br>".to_owned()),
        text.clone()
            .prop_map(|t| format!("<span class=\"invisible\">{t}</span>")),
        text.clone().prop_map(|t| format!("<strong>{t}<em>{t}</em></strong>")),
        text.prop_map(|t| format!(
            "<a href=\"https://a.example/p?x=1&amp;y=2\" class=\"mention hashtag\" target=\"_blank\" rel=\"nofollow noopener\">#<span>{t}</span></a>"
        )),
    ];
    let inlines = prop::collection::vec(inline, 0..6).prop_map(|parts| parts.concat());
    let block = prop_oneof![
        inlines.clone().prop_map(|inner| format!("<p>{inner}</p>")),
        inlines
            .clone()
            .prop_map(|inner| format!("<blockquote><p>{inner}</p></blockquote>")),
        inlines.prop_map(|inner| format!("<ul><li>{inner}</li><li>x</li></ul>")),
    ];
    prop::collection::vec(block, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_mixture_is_clean(pieces in prop::collection::vec(piece(), 0..24)) {
        check(&pieces.concat());
    }

    #[test]
    fn usual_links_are_links(
        host in "[a-z0-9.x-]{0,16}",
        rest in prop_oneof![Just(String::new()), "[/?#].*", "[/?#][ -~]*", ":.*", ".*"],
    ) {
        let address = format!("https://{host}{rest}");
        if rules::is_usual_link(&address) {
            prop_assert_eq!(url::Url::parse(&address).map(|url| url.scheme() == "https"), Ok(true));
        }
    }

    #[test]
    fn any_text_is_clean(html: String) {
        check(&html);
    }

    #[test]
    fn usual_posts_take_the_short_cut_and_stay_as_ammonia_has_them(html in well_formed()) {
        let cleaned = canonical::canonical(&html);
        prop_assert_eq!(cleaned.as_deref(), Some(&*html));
        prop_assert_eq!(rules::content().clean(&html).to_string(), html);
    }
}
