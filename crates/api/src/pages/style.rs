//! How the pages look. The style is in the page, and its hash in the policy, so that no other is applied.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ring::digest::{SHA256, digest};

/// The only style of every page.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--page:#f3f5f7;--card:#fff;--text:#17212b;--soft:#54616d;--line:#c9d1d8;--edge:#76838f;\
--accent:#0b6477;--on-accent:#fff;--bad:#a3202c;--bad-page:#fdeced}\
@media(prefers-color-scheme:dark){:root{--page:#10161c;--card:#1a232c;--text:#e8edf1;--soft:#a5b1bc;\
--line:#3b4854;--edge:#7b8c99;--accent:#5cc4d9;--on-accent:#06222a;--bad:#ffa3aa;--bad-page:#3a1d21}}\
*{box-sizing:border-box}\
body{margin:0;min-height:100vh;display:flex;flex-direction:column;align-items:center;padding:1.5rem 1rem;\
background:var(--page);color:var(--text);\
font:1rem/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Hiragino Sans','Noto Sans JP','Noto Sans CJK JP',sans-serif}\
header{font-weight:600;letter-spacing:.01em;margin-bottom:1rem}\
main{width:100%;max-width:27rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem;\
padding:1.5rem;overflow-wrap:anywhere}\
h1{font-size:1.375rem;line-height:1.3;margin:0 0 1rem;text-wrap:balance}\
h2{font-size:1rem;margin:1.25rem 0 .5rem}\
p{margin:0 0 1rem}\
ul{margin:0 0 1.25rem;padding-left:1.25rem}li{margin:.125rem 0}\
label{display:block;font-weight:600;margin-bottom:.25rem}\
.hint{color:var(--soft);font-size:.875rem;margin:.25rem 0 0}\
main>.hint{margin:0 0 1rem}\
.field{margin-bottom:1rem}\
input[type=text],input[type=email],input[type=password],textarea{width:100%;font:inherit;padding:.625rem .75rem;\
border:1px solid var(--edge);border-radius:.5rem;background:var(--page);color:inherit}\
input[aria-invalid],textarea[aria-invalid]{border-color:var(--bad)}\
textarea{min-height:5rem;resize:vertical}\
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}\
button{font:inherit;font-weight:600;width:100%;padding:.75rem 1rem;border-radius:.5rem;cursor:pointer;\
border:1px solid var(--accent);background:var(--accent);color:var(--on-accent)}\
button.second{background:transparent;color:var(--text);border-color:var(--edge);margin-top:.75rem}\
.error{color:var(--bad);background:var(--bad-page);border-radius:.5rem;padding:.625rem .75rem}\
.field .error{margin:.375rem 0 0;padding:.25rem .625rem;font-size:.875rem}\
code.copy{display:block;font-size:.9375rem;padding:.75rem;border:1px dashed var(--line);border-radius:.5rem;\
margin-bottom:1rem;user-select:all;-webkit-user-select:all}\
a{color:var(--accent)}\
.after{margin:1.25rem 0 0;color:var(--soft)}\
.link{width:auto;padding:.25rem 0;border:0;background:none;color:var(--accent);font-weight:400;text-decoration:underline}\
footer{margin-top:1rem;color:var(--soft);font-size:.875rem}footer a,footer span{display:inline-block;padding:.25rem .375rem}\
";

/// The source of that style, as a content security policy names it.
pub(super) static STYLE_SOURCE: LazyLock<String> = LazyLock::new(|| {
    let hash = digest(&SHA256, STYLE.as_bytes());
    format!("'sha256-{}'", BASE64.encode(hash))
});
