//! GoToSocial, on SQLite.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::api::Api;
use super::server::{Account, Server, Setup, output};
use crate::error::TaskError;

/// Sets it up in the folder of its checkout, which holds `gotosocial` and `web`.
pub(super) fn start(
    setup: &Setup<'_>,
    names: &[&str],
) -> Result<(Server, Vec<Account>), TaskError> {
    let binary = setup.built(&["gotosocial"])?;
    let storage = setup.folder.join("storage");
    let failed = |error| TaskError::Program(storage.display().to_string(), error);
    fs::create_dir_all(&storage).map_err(failed)?;
    let configure = |command: &mut Command| -> Result<(), TaskError> {
        let (_, port) = setup.address.split_once(':').unwrap_or_default();
        command
            .env("GTS_HOST", setup.host)
            .env("GTS_PROTOCOL", "http")
            .env("GTS_BIND_ADDRESS", "127.0.0.1")
            .env("GTS_PORT", port)
            .env("GTS_DB_TYPE", "sqlite")
            .env("GTS_DB_ADDRESS", setup.folder.join("gotosocial.db"))
            .env("GTS_STORAGE_LOCAL_BASE_PATH", &storage)
            .env("GTS_WEB_TEMPLATE_BASE_DIR", setup.built(&["web/template"])?)
            .env("GTS_WEB_ASSET_BASE_DIR", setup.built(&["web/assets"])?)
            .env("GTS_INSTANCE_EXPOSE_PUBLIC_TIMELINE", "true")
            .env("GTS_LETSENCRYPT_ENABLED", "false")
            .env("GTS_LOG_LEVEL", "warn")
            .env("GTS_ADVANCED_RATE_LIMIT_REQUESTS", "0");
        Ok(())
    };
    let mut serve = setup.program("gotosocial", &binary)?;
    serve.args(["server", "start"]);
    configure(&mut serve)?;
    // Its first start makes the account of the instance, without which there are no others.
    let mut server = Server::start(setup, vec![serve])?;
    server.kill();
    for name in names {
        let mut create = Command::new(&binary);
        let email = email(name);
        create.args(["admin", "account", "create", "--username", name]);
        create.args(["--email", &email, "--password", PASSWORD]);
        create.current_dir(setup.folder);
        configure(&mut create)?;
        output(&mut create)?;
    }
    server.start_again()?;
    let mut accounts = Vec::new();
    for name in names {
        let token = log_in(&server.api, &email(name))?;
        // New accounts ask before anyone follows them.
        let path = "/api/v1/accounts/update_credentials";
        let open = json!({ "locked": false });
        let own = server.api.send_json("PATCH", path, Some(&token), &open)?;
        let own = own.success(path)?;
        accounts.push(Account {
            name: (*name).to_owned(),
            id: own.text_of("id")?,
            token,
        });
    }
    Ok((server, accounts))
}

/// A token, by the forms that a person would fill in.
fn log_in(api: &Api, email: &str) -> Result<String, TaskError> {
    let app = json!({
        "client_name": "driftline trial",
        "redirect_uris": OUT_OF_BAND,
        "scopes": "read write",
    });
    let app = api.send_json("POST", "/api/v1/apps", None, &app)?;
    let app = app.success("the app")?;
    let client = app.text_of("client_id")?;
    let authorize = format!(
        "/oauth/authorize?client_id={client}&redirect_uri={OUT_OF_BAND}&response_type=code&scope=read+write"
    );
    let html = [("Accept", "text/html")];
    let asked = api.send("GET", &authorize, None, &html, ("", ""))?;
    let form = |fields: &str| ("application/x-www-form-urlencoded", fields.to_owned());
    let sign_in = form(&format!(
        "username={}&password={PASSWORD}",
        email.replace('@', "%40")
    ));
    let headers = [("Cookie", asked.cookie())];
    let signed_in = api.send("POST", "/auth/sign_in", None, &headers, sign_in)?;
    let cookie = match signed_in.cookie() {
        "" => asked.cookie(),
        changed => changed,
    };
    let headers = [("Cookie", cookie)];
    let allowed = api.send("POST", "/oauth/authorize", None, &headers, form(""))?;
    let code = allowed.header("Location").split_once("code=");
    let Some((_, code)) = code else {
        let status = allowed.status;
        return Err(TaskError::message(format!("no code for {email}: {status}")));
    };
    let code = code.split('&').next().unwrap_or_default();
    let request = json!({
        "grant_type": "authorization_code",
        "client_id": client,
        "client_secret": app.text_of("client_secret")?,
        "redirect_uri": OUT_OF_BAND,
        "code": code,
    });
    let token = api.send_json("POST", "/oauth/token", None, &request)?;
    token.success("the token")?.text_of("access_token")
}

fn email(name: &str) -> String {
    format!("{name}@example.org")
}

const PASSWORD: &str = "seven-grey-herons-wait-at-low-tide";
const OUT_OF_BAND: &str = "urn:ietf:wg:oauth:2.0:oob";
