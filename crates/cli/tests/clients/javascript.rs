//! masto.js.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Mirror;

/// Where `cargo xtask setup` puts the packages.
const MODULES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/node/node_modules"
);

#[tokio::test(flavor = "multi_thread")]
async fn masto_js_reads_all_that_there_is() {
    let mirror = Mirror::start().await;
    let script = with_modules(&mirror, "masto_client.mjs");
    let read = mirror.script(Command::new("node").arg(script));
    mirror.check(&read);
    let streams = read["streamingApiUrl"].as_str().unwrap();
    assert_eq!(streams, mirror.url.replacen("http", "ws", 1));
    let heard = read["heard"].as_object().unwrap();
    let names: Vec<&String> = heard.keys().collect();
    assert_eq!(names, ["list", "public", "remote"]);
    assert_eq!(read["first"], heard["public"]);
    assert_eq!(read["refused"], 401);
}

/// The path of a copy of a script next to the packages that it imports: Node looks for them above it.
pub fn with_modules(mirror: &Mirror, script: &str) -> PathBuf {
    let modules = std::env::var("DRIFTLINE_NODE_MODULES").unwrap_or_else(|_| MODULES.into());
    let folder = mirror.data_dir.folder();
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");
    fs::copy(Path::new(here).join(script), folder.join(script)).unwrap();
    folder.join(script)
}
