//! Mitra, on PostgreSQL.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::api::Api;
use super::server::{Account, Server, Setup, output};
use crate::error::TaskError;

/// Sets it up with the binary `mitra` below the `target` of its checkout.
pub(super) fn start(
    setup: &Setup<'_>,
    names: &[&str],
) -> Result<(Server, Vec<Account>), TaskError> {
    let binary = setup.built(&["target/release/mitra", "target/debug/mitra"])?;
    let storage = setup.folder.join("storage");
    let path = setup.folder.join("config.yaml");
    // JSON is YAML.
    let config = json!({
        "database_url": setup.database_url,
        "storage_dir": storage,
        "http_socket": setup.address,
        "instance_url": format!("http://{}", setup.host),
        "instance_title": "trial",
        "instance_short_description": "trial",
        "instance_description": "trial",
        "instance_timeline_public": true,
        "log_level": "warn",
    });
    let failed = |error| TaskError::Program(path.display().to_string(), error);
    fs::create_dir_all(&storage).map_err(failed)?;
    fs::write(&path, config.to_string()).map_err(failed)?;
    let configure = |command: &mut Command| {
        command
            .current_dir(setup.folder)
            .env("CONFIG_PATH", &path)
            .env("ENVIRONMENT", "development");
    };
    // The first command also makes the database's schema.
    for name in names {
        let mut create = Command::new(&binary);
        create.args(["create-account", name, PASSWORD, "user"]);
        configure(&mut create);
        output(&mut create)?;
    }
    let mut serve = setup.program("mitra", &binary)?;
    serve.arg("server");
    configure(&mut serve);
    let server = Server::start(setup, vec![serve])?;
    let accounts = names.iter().map(|name| log_in(&server.api, name));
    let accounts = accounts.collect::<Result<_, _>>()?;
    Ok((server, accounts))
}

/// The account with a token.
fn log_in(api: &Api, name: &str) -> Result<Account, TaskError> {
    let request = json!({
        "grant_type": "password",
        "username": name,
        "password": PASSWORD,
        "scope": "read write",
    });
    let token = api.send_json("POST", "/oauth/token", None, &request)?;
    let token = token.success("the token")?.text_of("access_token")?;
    let path = "/api/v1/accounts/verify_credentials";
    let own = api.get(path, Some(&token))?.success(path)?;
    Ok(Account {
        name: name.to_owned(),
        id: own.text_of("id")?,
        token,
    })
}

const PASSWORD: &str = "seven-grey-herons-wait-at-low-tide";
