//! Hollo, on PostgreSQL.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::api::{Answer, Api};
use super::server::{Account, Server, Setup, output};
use crate::error::TaskError;

/// Sets it up in its checkout, of which `pnpm run build` has made `dist`. Runs `node`.
pub(super) fn start(
    setup: &Setup<'_>,
    names: &[&str],
) -> Result<(Server, Vec<Account>), TaskError> {
    let program = setup.built(&["dist/bin/server.js"])?;
    let url = setup.database_url.unwrap_or_default();
    output(Command::new("psql").args([url, "--quiet", "--command", ANY_VALUE]))?;
    let mut migrate = Command::new(setup.built(&["node_modules/.bin/drizzle-kit"])?);
    migrate.arg("migrate").current_dir(setup.at);
    output(migrate.env("DATABASE_URL", url))?;
    let (address, port) = setup.address.split_once(':').unwrap_or_default();
    let origin = format!("http://{}", setup.host);
    let mut serve = setup.program("hollo", Path::new("node"))?;
    serve
        .arg(&program)
        .env("DATABASE_URL", url)
        .env("SECRET_KEY", SECRET_KEY)
        .env("BIND", address)
        .env("PORT", port)
        .env("DRIVE_DISK", "fs")
        .env("FS_STORAGE_PATH", setup.folder)
        .env("STORAGE_URL_BASE", &origin)
        .env("ALLOW_PRIVATE_ADDRESS", "true")
        .env("LOG_LEVEL", "warning");
    let server = Server::start(setup, vec![serve])?;
    let mut pages = Pages {
        api: &server.api,
        origin,
        cookie: String::new(),
    };
    pages.post("/setup", &format!("{OWNER}&password_confirm={PASSWORD}"))?;
    let signed_in = pages.post("/login", OWNER)?;
    signed_in.cookie().clone_into(&mut pages.cookie);
    let app = json!({ "client_name": "trial", "redirect_uris": BACK, "scopes": SCOPES });
    let app = server.api.send_json("POST", "/api/v1/apps", None, &app)?;
    let app = app.success("the app")?;
    let accounts = names.iter().map(|name| {
        pages.post(
            "/accounts",
            &format!("username={name}&name={name}&language=en&visibility=public&themeColor=azure"),
        )?;
        pages.log_in(&app, name)
    });
    let accounts = accounts.collect::<Result<_, _>>()?;
    Ok((server, accounts))
}

/// The pages of the server's owner.
struct Pages<'a> {
    api: &'a Api,
    /// Where forms come from.
    origin: String,
    /// The session's; empty before it begins.
    cookie: String,
}

impl Pages<'_> {
    /// Sends a form.
    fn post(&self, path: &str, form: &str) -> Result<Answer, TaskError> {
        let headers = [("Origin", self.origin.as_str()), ("Cookie", &self.cookie)];
        let form = ("application/x-www-form-urlencoded", form);
        let answer = self.api.send("POST", path, None, &headers, form)?;
        match answer.status {
            302 => Ok(answer),
            _ => answer.success(path),
        }
    }

    /// The account of that name with a token.
    fn log_in(&self, app: &Answer, name: &str) -> Result<Account, TaskError> {
        let path = format!("/api/v1/accounts/lookup?acct={name}");
        let id = self.api.get(&path, None)?.success(&path)?.text_of("id")?;
        let form = format!(
            "account_id={id}&application_id={}&redirect_uri={BACK}&scopes={SCOPES}&decision=allow",
            app.text_of("id")?
        );
        let allowed = self.post("/oauth/authorize", &form)?;
        let missing = || TaskError::message(format!("no code for {name}: {}", allowed.text));
        let (_, code) = allowed
            .header("Location")
            .split_once("code=")
            .ok_or_else(missing)?;
        let request = json!({
            "grant_type": "authorization_code",
            "client_id": app.text_of("client_id")?,
            "client_secret": app.text_of("client_secret")?,
            "redirect_uri": BACK,
            "code": code,
        });
        let token = self
            .api
            .send_json("POST", "/oauth/token", None, &request)?
            .success("the token")?;
        Ok(Account {
            name: name.to_owned(),
            id,
            token: token.text_of("access_token")?,
        })
    }
}

const OWNER: &str = "email=owner@example.org&password=seven-grey-herons-wait-at-low-tide";
const PASSWORD: &str = "seven-grey-herons-wait-at-low-tide";
const SECRET_KEY: &str = "a trial on loopback, of which nothing is kept secret";
const SCOPES: &str = "read write follow";
const BACK: &str = "http://127.0.0.1/";
/// An aggregate that Hollo uses, and PostgreSQL before 16 does not have.
const ANY_VALUE: &str = "
    create function first_of_two(anyelement, anyelement) returns anyelement
        language sql immutable strict as 'select $1';
    create aggregate any_value(anyelement) (sfunc = first_of_two, stype = anyelement)";
