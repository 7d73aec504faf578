//! Takahe, on PostgreSQL.

use std::process::Command;

use super::server::{Account, Server, Setup, output};
use crate::error::TaskError;

/// Sets it up in its checkout, whose virtual environment is `.venv`, or the active one.
pub(super) fn start(
    setup: &Setup<'_>,
    names: &[&str],
) -> Result<(Server, Vec<Account>), TaskError> {
    let manage = setup.built(&["manage.py"])?;
    let python = setup.built(&[".venv/bin/python"])?;
    let gunicorn = setup.built(&[".venv/bin/gunicorn"])?;
    let configure = |command: &mut Command| {
        command
            .current_dir(setup.at)
            .env(
                "TAKAHE_DATABASE_SERVER",
                setup.database_url.unwrap_or_default(),
            )
            .env("TAKAHE_SECRET_KEY", "a trial on loopback")
            .env("TAKAHE_MAIN_DOMAIN", setup.host)
            .env("TAKAHE_EMAIL_SERVER", "console://console")
            .env("TAKAHE_MEDIA_ROOT", setup.folder.join("media"));
    };
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.arg(&manage).args(arguments);
        configure(&mut command);
        output(&mut command)
    };
    run(&["migrate", "--verbosity", "0"])?;
    let host = setup.host;
    let script = ACCOUNTS
        .replace("HOST", host)
        .replace("NAMES", &names.join(" "));
    let made = run(&["shell", "-c", &script])?;
    let accounts = made.lines().filter_map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        let (name, id, token) = (words.next()?, words.next()?, words.next()?);
        names
            .contains(&name.as_str())
            .then_some(Account { name, id, token })
    });
    let accounts: Vec<Account> = accounts.collect();
    if accounts.len() < names.len() {
        return Err(TaskError::message(format!(
            "Takahe made no accounts: {made}"
        )));
    }
    let mut serve = setup.program("gunicorn", &gunicorn)?;
    serve.args([
        "takahe.wsgi:application",
        "--workers",
        "2",
        // On a busy machine they take their time to begin.
        "--timeout",
        "300",
        "--bind",
        setup.address,
    ]);
    configure(&mut serve);
    // What fans posts out to home timelines.
    let mut stator = setup.program("stator", &python)?;
    stator.arg(&manage).arg("runstator");
    configure(&mut stator);
    Ok((Server::start(setup, vec![serve, stator])?, accounts))
}

/// Makes the domain, and for each name a user, an identity and a token; prints a line for each.
const ACCOUNTS: &str = r#"
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
    print(name, identity.pk, token.token)
"#;
