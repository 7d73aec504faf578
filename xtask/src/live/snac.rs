//! snac, on its files.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::server::{Account, Server, Setup, output};
use crate::error::TaskError;

/// Sets it up with the binary `snac` in its folder.
pub(super) fn start(
    setup: &Setup<'_>,
    names: &[&str],
) -> Result<(Server, Vec<Account>), TaskError> {
    let binary = setup.built(&["snac"])?;
    let data = setup.folder.join("data");
    let shown = data.display().to_string();
    let failed = |error| TaskError::Program(binary.display().to_string(), error);
    let (address, port) = setup.address.split_once(':').unwrap_or_default();
    let mut init = Command::new(&binary)
        .arg("init")
        .arg(&data)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut answers) = init.stdin.take() {
        let text = format!("{address}\n{port}\n{}\n\n\n", setup.host);
        answers.write_all(text.as_bytes()).map_err(failed)?;
    }
    if !init.wait().map_err(failed)?.success() {
        return Err(TaskError::message(format!("`snac init {shown}` failed")));
    }
    speak_plain_http(&data.join("server.json"))?;
    let mut passwords = Vec::new();
    for name in names {
        let made = output(Command::new(&binary).arg("adduser").arg(&data).arg(name))?;
        let password = made
            .lines()
            .find_map(|line| line.strip_prefix("User password is "));
        let password = password.map(str::trim).map(str::to_owned);
        let missing = || TaskError::message(format!("`snac adduser` gave no password: {made}"));
        passwords.push(password.ok_or_else(missing)?);
    }
    let mut serve = setup.program("snac", &binary)?;
    serve.arg("httpd").arg(&data);
    let server = Server::start(setup, vec![serve])?;
    let mut accounts = Vec::new();
    for (name, password) in names.iter().zip(&passwords) {
        let form = format!("login={name}&passwd={}", escaped(password));
        let form = ("application/x-www-form-urlencoded", form);
        let path = "/oauth/x-snac-get-token";
        let token = server
            .api
            .send("POST", path, None, &[], form)?
            .success(path)?;
        let token = token.text.trim().to_owned();
        let path = "/api/v1/accounts/verify_credentials";
        let own = server.api.get(path, Some(&token))?.success(path)?;
        accounts.push(Account {
            name: (*name).to_owned(),
            id: own.text_of("id")?,
            token,
        });
    }
    Ok((server, accounts))
}

fn speak_plain_http(path: &std::path::Path) -> Result<(), TaskError> {
    let failed =
        |error: &dyn std::fmt::Display| TaskError::message(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    let mut config: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    config["protocol"] = "http".into();
    std::fs::write(path, config.to_string()).map_err(|error| failed(&error))
}

/// Base64 in a form.
fn escaped(password: &str) -> String {
    let escaped = password.replace('+', "%2B").replace('/', "%2F");
    escaped.replace('=', "%3D")
}
