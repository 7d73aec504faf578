//! The kinds of server: what starts each, its settings, and how its accounts are made.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::api::{Answer, Api, FORM};
use super::server::{Account, NAMES, Server, Setup, failed, output};
use crate::error::TaskError;

/// The software of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Software {
    Gotosocial,
    Takahe,
    Snac,
    Mitra,
    Hollo,
}

type Started = Result<(Server, Vec<Account>), TaskError>;

impl Software {
    /// True if it keeps its data in PostgreSQL.
    pub(super) fn needs_postgres(self) -> bool {
        matches!(self, Software::Takahe | Software::Mitra | Software::Hollo)
    }

    /// Sets a server up, starts it and makes its accounts.
    pub(super) fn start(self, setup: &Setup<'_>) -> Started {
        match self {
            Software::Gotosocial => gotosocial(setup),
            Software::Takahe => takahe(setup),
            Software::Snac => snac(setup),
            Software::Mitra => mitra(setup),
            Software::Hollo => hollo(setup),
        }
    }
}

/// On SQLite, in the folder of its checkout, which has `gotosocial` and `web`.
fn gotosocial(setup: &Setup<'_>) -> Started {
    let binary = setup.built(&["gotosocial"])?;
    let templates = setup.built(&["web/template"])?;
    let assets = setup.built(&["web/assets"])?;
    let (address, port) = setup.address.split_once(':').unwrap_or_default();
    let environment = [
        ("GTS_HOST", setup.host.into()),
        ("GTS_PROTOCOL", "http".into()),
        ("GTS_BIND_ADDRESS", address.into()),
        ("GTS_PORT", port.into()),
        ("GTS_DB_TYPE", "sqlite".into()),
        ("GTS_DB_ADDRESS", setup.folder.join("gotosocial.db")),
        ("GTS_STORAGE_LOCAL_BASE_PATH", setup.make_folder("storage")?),
        ("GTS_WEB_TEMPLATE_BASE_DIR", templates),
        ("GTS_WEB_ASSET_BASE_DIR", assets),
        ("GTS_INSTANCE_EXPOSE_PUBLIC_TIMELINE", "true".into()),
        ("GTS_LETSENCRYPT_ENABLED", "false".into()),
        ("GTS_LOG_LEVEL", "warn".into()),
        ("GTS_ADVANCED_RATE_LIMIT_REQUESTS", "0".into()),
    ];
    let mut serve = setup.program("gotosocial", &binary)?;
    serve.args(["server", "start"]).envs(environment.clone());
    // Its first start makes the account of the instance, without which there are no others.
    let mut server = Server::start(setup, vec![serve])?;
    server.kill();
    let email = |name: &str| format!("{name}@example.org");
    for name in NAMES {
        let mut create = Command::new(&binary);
        create.args(["admin", "account", "create", "--username", name]);
        create.args(["--email", &email(name), "--password", PASSWORD]);
        output(create.current_dir(setup.folder).envs(environment.clone()))?;
    }
    server.start_again()?;
    logged_in(server, |api, name| {
        let app = add_app(api, OUT_OF_BAND, "read write")?;
        // A token, by the forms that a person would fill in.
        let authorize = format!(
            "/oauth/authorize?client_id={}&redirect_uri={OUT_OF_BAND}&response_type=code&scope=read+write",
            app.text_of("client_id")?
        );
        let html = [("Accept", "text/html")];
        let asked = api.send("GET", &authorize, None, &html, ("", ""))?;
        let email = email(name).replace('@', "%40");
        let sign_in = (FORM, format!("username={email}&password={PASSWORD}"));
        let headers = [("Cookie", asked.cookie())];
        let signed_in = api.send("POST", "/auth/sign_in", None, &headers, sign_in)?;
        let cookie = match signed_in.cookie() {
            "" => asked.cookie(),
            changed => changed,
        };
        let headers = [("Cookie", cookie)];
        let allowed = api.send("POST", "/oauth/authorize", None, &headers, (FORM, ""))?;
        let token = token_of_code(api, &app, OUT_OF_BAND, &allowed)?;
        // New accounts ask before anyone follows them.
        let path = "/api/v1/accounts/update_credentials";
        let open = json!({ "locked": false });
        api.send_json("PATCH", path, Some(&token), &open)?
            .success(path)?;
        Ok(token)
    })
}

/// On PostgreSQL, in its checkout, whose virtual environment is `.venv`.
fn takahe(setup: &Setup<'_>) -> Started {
    let manage = setup.built(&["manage.py"])?;
    let python = setup.built(&[".venv/bin/python"])?;
    let gunicorn = setup.built(&[".venv/bin/gunicorn"])?;
    let configure = |command: &mut Command| {
        command
            .current_dir(setup.at)
            .env("TAKAHE_DATABASE_SERVER", setup.database_url)
            .env("TAKAHE_SECRET_KEY", "a trial on loopback")
            .env("TAKAHE_MAIN_DOMAIN", setup.host)
            .env("TAKAHE_EMAIL_SERVER", "console://console")
            .env("TAKAHE_MEDIA_ROOT", setup.folder.join("media"));
    };
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        configure(command.arg(&manage).args(arguments));
        output(&mut command)
    };
    run(&["migrate", "--verbosity", "0"])?;
    let script = TAKAHE_ACCOUNTS
        .replace("HOST", setup.host)
        .replace("NAMES", &NAMES.join(" "));
    let made = run(&["shell", "-c", &script])?;
    let mut serve = setup.program("gunicorn", &gunicorn)?;
    // On a busy machine its workers take their time to begin.
    serve.args([
        "takahe.wsgi:application",
        "--workers",
        "2",
        "--timeout",
        "300",
    ]);
    configure(serve.args(["--bind", setup.address]));
    // It fans posts out to home timelines.
    let mut stator = setup.program("stator", &python)?;
    configure(stator.arg(&manage).arg("runstator"));
    logged_in(Server::start(setup, vec![serve, stator])?, |_, name| {
        let token = made.lines().find_map(|line| line.strip_prefix(name));
        let missing = || TaskError::message(format!("Takahe made no account {name}: {made}"));
        Ok(token.ok_or_else(missing)?.trim().to_owned())
    })
}

/// On its files, with the binary `snac` in its folder.
fn snac(setup: &Setup<'_>) -> Started {
    let binary = setup.built(&["snac"])?;
    let data = setup.folder.join("data");
    let failed = |error| failed(&binary, error);
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
        let text = format!("`snac init {}` failed", data.display());
        return Err(TaskError::message(text));
    }
    let config = data.join("server.json");
    let text = std::fs::read_to_string(&config).map_err(failed)?;
    let parsed = serde_json::from_str(&text).map_err(|error| failed(error.into()));
    let mut settings: Value = parsed?;
    settings["protocol"] = "http".into();
    std::fs::write(&config, settings.to_string()).map_err(failed)?;
    let mut passwords = Vec::new();
    for name in NAMES {
        let made = output(Command::new(&binary).arg("adduser").arg(&data).arg(name))?;
        let mut lines = made.lines();
        let password = lines.find_map(|line| line.strip_prefix("User password is "));
        let missing = || TaskError::message(format!("`snac adduser` gave no password: {made}"));
        // Base64 in a form.
        let escaped = password.ok_or_else(missing)?.trim().replace('+', "%2B");
        passwords.push(escaped.replace('/', "%2F").replace('=', "%3D"));
    }
    let mut serve = setup.program("snac", &binary)?;
    serve.arg("httpd").arg(&data);
    logged_in(Server::start(setup, vec![serve])?, |api, name| {
        let mut known = NAMES.iter().zip(&passwords);
        let password = known.find_map(|(known, password)| (*known == name).then_some(password));
        let password = password.map_or("", String::as_str);
        let form = (FORM, format!("login={name}&passwd={password}"));
        let path = "/oauth/x-snac-get-token";
        let token = api.send("POST", path, None, &[], form)?.success(path)?;
        Ok(token.text.trim().to_owned())
    })
}

/// On PostgreSQL, with the binary `mitra` below the `target` of its checkout.
fn mitra(setup: &Setup<'_>) -> Started {
    let binary = setup.built(&["target/release/mitra", "target/debug/mitra"])?;
    let path = setup.folder.join("config.yaml");
    // JSON is YAML.
    let config = json!({
        "database_url": setup.database_url,
        "storage_dir": setup.make_folder("storage")?,
        "http_socket": setup.address,
        "instance_url": format!("http://{}", setup.host),
        "instance_title": "trial",
        "instance_short_description": "trial",
        "instance_description": "trial",
        "instance_timeline_public": true,
        "log_level": "warn",
    });
    std::fs::write(&path, config.to_string()).map_err(|error| failed(&path, error))?;
    let configure = |command: &mut Command| {
        let command = command.current_dir(setup.folder);
        command
            .env("CONFIG_PATH", &path)
            .env("ENVIRONMENT", "development");
    };
    // The first command also makes the database's schema.
    for name in NAMES {
        let mut create = Command::new(&binary);
        configure(create.args(["create-account", name, PASSWORD, "user"]));
        output(&mut create)?;
    }
    let mut serve = setup.program("mitra", &binary)?;
    configure(serve.arg("server"));
    logged_in(Server::start(setup, vec![serve])?, |api, name| {
        token(
            api,
            &json!({
                "grant_type": "password",
                "username": name,
                "password": PASSWORD,
                "scope": "read write",
            }),
        )
    })
}

/// On PostgreSQL, in its checkout, of which `pnpm run build` has made `dist`. Runs `node`.
fn hollo(setup: &Setup<'_>) -> Started {
    let program = setup.built(&["dist/bin/server.js"])?;
    let url = setup.database_url;
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
        .env(
            "SECRET_KEY",
            "a trial on loopback, of which nothing is kept secret",
        )
        .env("BIND", address)
        .env("PORT", port)
        .env("DRIVE_DISK", "fs")
        .env("FS_STORAGE_PATH", setup.folder)
        .env("STORAGE_URL_BASE", &origin)
        .env("ALLOW_PRIVATE_ADDRESS", "true")
        .env("LOG_LEVEL", "warning");
    let server = Server::start(setup, vec![serve])?;
    let post = |api: &Api, cookie: &str, path: &str, form: &str| {
        let headers = [("Origin", origin.as_str()), ("Cookie", cookie)];
        let answer = api.send("POST", path, None, &headers, (FORM, form))?;
        match answer.status {
            302 => Ok(answer),
            _ => answer.success(path),
        }
    };
    let owner = format!("email=owner@example.org&password={PASSWORD}");
    let set_up = format!("{owner}&password_confirm={PASSWORD}");
    post(&server.api, "", "/setup", &set_up)?;
    let signed_in = post(&server.api, "", "/login", &owner)?;
    let scopes = "read write follow";
    let app = add_app(&server.api, BACK, scopes)?;
    logged_in(server, |api, name| {
        let form =
            format!("username={name}&name={name}&language=en&visibility=public&themeColor=azure");
        post(api, signed_in.cookie(), "/accounts", &form)?;
        let path = format!("/api/v1/accounts/lookup?acct={name}");
        let id = api.get(&path, None)?.success(&path)?.text_of("id")?;
        let form = format!(
            "account_id={id}&application_id={}&redirect_uri={BACK}&scopes={scopes}&decision=allow",
            app.text_of("id")?
        );
        let allowed = post(api, signed_in.cookie(), "/oauth/authorize", &form)?;
        token_of_code(api, &app, BACK, &allowed)
    })
}

/// The server with its accounts, each with the token that `log_in` gives for its name.
fn logged_in(server: Server, log_in: impl Fn(&Api, &str) -> Result<String, TaskError>) -> Started {
    let accounts = NAMES.iter().map(|name| {
        let token = log_in(&server.api, name)?;
        let path = "/api/v1/accounts/verify_credentials";
        let own = server.api.get(path, Some(&token))?.success(path)?;
        let id = own.text_of("id")?;
        Ok(Account { id, name, token })
    });
    let accounts = accounts.collect::<Result<_, TaskError>>()?;
    Ok((server, accounts))
}

fn add_app(api: &Api, redirect_uri: &str, scopes: &str) -> Result<Answer, TaskError> {
    let app = json!({ "client_name": "trial", "redirect_uris": redirect_uri, "scopes": scopes });
    api.send_json("POST", "/api/v1/apps", None, &app)?
        .success("the app")
}

/// The token for the code in the address that an answer leads to.
fn token_of_code(
    api: &Api,
    app: &Answer,
    redirect_uri: &str,
    allowed: &Answer,
) -> Result<String, TaskError> {
    let code = allowed.header("Location").split_once("code=");
    let missing = || TaskError::message(format!("no code: {} {}", allowed.status, allowed.text));
    let (_, code) = code.ok_or_else(missing)?;
    token(
        api,
        &json!({
            "grant_type": "authorization_code",
            "client_id": app.text_of("client_id")?,
            "client_secret": app.text_of("client_secret")?,
            "redirect_uri": redirect_uri,
            "code": code.split('&').next().unwrap_or_default(),
        }),
    )
}

fn token(api: &Api, request: &Value) -> Result<String, TaskError> {
    let token = api.send_json("POST", "/oauth/token", None, request)?;
    token.success("the token")?.text_of("access_token")
}

const PASSWORD: &str = "seven-grey-herons-wait-at-low-tide";
const OUT_OF_BAND: &str = "urn:ietf:wg:oauth:2.0:oob";
const BACK: &str = "http://127.0.0.1/";
/// Makes the domain, and for each name a user, an identity and a token; prints a line for each.
const TAKAHE_ACCOUNTS: &str = r#"
import secrets
from api.models import Application, Token
from core.models import Config
from users.models import Domain, User
from users.services import IdentityService

Config.system = Config.load_system()
domain = Domain.objects.create(
    domain="HOST", local=True, public=True, default=True, state="updated"
)
application = Application.create(
    client_name="trial", redirect_uris="urn:ietf:wg:oauth:2.0:oob", website=None, scopes="read write"
)
for name in "NAMES".split():
    user = User.objects.create_user(email=f"{name}@example.org", password="low tide")
    identity = IdentityService.create(user, name, domain, name)
    token = Token.objects.create(
        application=application, user=user, identity=identity,
        token=secrets.token_hex(32), scopes=["read", "write", "follow"],
    )
    print(name, token.token)
"#;
/// An aggregate that Hollo uses, and PostgreSQL before 16 does not have.
const ANY_VALUE: &str = "
    create function first_of_two(anyelement, anyelement) returns anyelement
        language sql immutable strict as 'select $1';
    create aggregate any_value(anyelement) (sfunc = first_of_two, stype = anyelement)";
