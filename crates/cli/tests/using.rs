//! The transcripts of `docs/using.md`, run as they stand.
//!
//! What a command prints is compared with the document: any number passes for any other, white space
//! for any other, and `…` for whatever is there.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer, Timeline},
};
use support::{DataDir, get, wait_for};

/// A command of a transcript, and what it prints.
#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    output: String,
}

/// A server of a transcript, which ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transcripts_of_the_guide_are_true() {
    let sim = quiet().await;
    let data_dir = DataDir::new();
    let config = "[upstream]\nallow_private = true\n[defaults]\nevery = \"100ms\"\n\
                  second_look = \"200ms\"\nspacing = \"10ms\"\n";
    data_dir.file("driftline.toml", config);
    let truth = sim.truth(&Timeline::Public).unwrap();
    let ids = truth.posts.iter().take(50).map(|post| post.id.to_string());
    let ids: Vec<String> = ids.chain(["17".to_owned()]).collect();
    data_dir.file("ids.txt", &(ids.join("\n") + "\n"));
    let bin = data_dir.folder().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_driftline"), bin.join("driftline")).unwrap();
    // A link would be another environment to Python.
    let script = format!("#!/bin/sh\nexec '{python}' \"$@\"\n");
    std::fs::write(bin.join("python"), script).unwrap();
    std::fs::set_permissions(
        bin.join("python"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let here = |text: &str| {
        text.replace("https://mastodon.example", &sim.url())
            .replace("127.0.0.1:7171", &format!("127.0.0.1:{port}"))
    };

    let mut servers = Vec::new();
    for step in steps(include_str!("../../../docs/using.md")) {
        let command = here(&step.command);
        let mut bash = bash(&data_dir, &bin, port);
        if let Some(server) = command.strip_suffix(" &") {
            bash.args(["-c", &format!("exec {server}")])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            servers.push(Server(bash.spawn().unwrap()));
            let url = format!("http://127.0.0.1:{port}/readyz");
            wait_for("it listens", || {
                support::try_get(&url).is_ok_and(|(status, _)| status == 200)
            });
            assert_eq!(get(&url).0, 200);
            continue;
        }
        if command == "kill %1" {
            let mut server = servers.pop().unwrap();
            let stop = format!("kill {}", server.0.id());
            assert!(bash.args(["-c", &stop]).status().unwrap().success());
            assert_eq!(server.0.wait().unwrap().code(), Some(0));
            continue;
        }
        let expected = here(&step.output);
        let mut output: Option<Output> = None;
        // What a server does in the background takes its time.
        let is_there = support::soon(|| {
            let mut bash = self::bash(&data_dir, &bin, port);
            let ran = bash.args(["-c", &command]).output().unwrap();
            let fits = ran.status.success() && is_as(&expected, &printed(&ran));
            let is_running = !servers.is_empty();
            output = Some(ran);
            fits || !is_running
        });
        let output = output.unwrap();
        let printed = printed(&output);
        assert!(
            is_there && output.status.success() && is_as(&expected, &printed),
            "docs/using.md:{}: {command}\nexpected:\n{expected}\nprinted ({}):\n{printed}",
            step.line,
            output.status
        );
    }
}

fn bash(data_dir: &DataDir, bin: &Path, port: u16) -> Command {
    let mut command = Command::new("bash");
    for (name, _) in std::env::vars() {
        if name.starts_with("DRIFTLINE_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    let path = std::env::var("PATH").unwrap();
    command
        .current_dir(data_dir.folder())
        .env("HOME", data_dir.folder())
        .env("XDG_CONFIG_HOME", data_dir.folder().join("config"))
        .env("XDG_DATA_HOME", data_dir.folder().join("share"))
        .env("DRIFTLINE_SERVER__LISTEN", format!("127.0.0.1:{port}"))
        .env("PATH", format!("{}:{path}", bin.display()))
        .stdin(Stdio::null());
    command
}

/// A timeline that has fallen silent.
async fn quiet() -> SimServer {
    let config = ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(19_000),
            ..WorldConfig::punctual(20.0)
        },
        history_ms: 20_000,
        ..ServerConfig::default()
    };
    SimServer::start(config, 1, Clock::Real).await.unwrap()
}

/// The commands of its `console` blocks.
fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_console = false;
    for (number, line) in (1..).zip(document.lines()) {
        if let Some(kind) = line.strip_prefix("```") {
            is_console = kind == "console";
        } else if !is_console {
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: number,
                command: command.to_owned(),
                output: String::new(),
            });
        } else if let Some(step) = steps.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) => step.command = format!("{}\n{more}", step.command),
                None => step.output = format!("{}{line}\n", step.output),
            }
        }
    }
    assert!(steps.len() > 10, "{steps:#?}");
    steps
}

fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Whether it prints that, as the head of this file says.
fn is_as(expected: &str, printed: &str) -> bool {
    let (expected, printed) = (comparable(expected), comparable(printed));
    let mut parts = expected.split('…');
    let Some(mut rest) = parts
        .next()
        .and_then(|first| printed.strip_prefix(first.trim()))
    else {
        return false;
    };
    let mut is_open = false;
    for part in parts {
        let part = part.trim();
        is_open = part.is_empty();
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    is_open || rest.trim().is_empty()
}

fn comparable(text: &str) -> String {
    let mut comparable = String::new();
    for character in text.chars() {
        let character = match character {
            '0'..='9' => '0',
            character if character.is_whitespace() => ' ',
            character => character,
        };
        let is_again = comparable.ends_with(character) && matches!(character, '0' | ' ');
        if !is_again {
            comparable.push(character);
        }
    }
    comparable.trim().to_owned()
}

#[test]
fn only_numbers_and_white_space_may_differ() {
    assert!(is_as("12 posts  written", "7 posts written\n"));
    assert!(is_as("a … c\n", "a b c"));
    assert!(is_as("a …\n", "a b c"));
    assert!(!is_as("12 posts written", "12 posts"));
    assert!(!is_as("12 posts", "12 posts written"));
    assert!(!is_as("", "anything"));
}
