//! What can be wrong with a configuration whose keys and kinds of values are right.

use driftline_net::Http;

use super::{Config, IdSection, MailSection, ServerSection, StoreSection};
use crate::{
    data_dir::DataDir,
    error::CliError,
    listen, logs, operator,
    options::id_options::{self, IdOptions},
    options::id_place::LeaseStore,
    options::mail_options,
    refresh_section::RefreshSection,
    serving,
};

/// The faults that make every command end, since the configuration contradicts itself or names
/// what there is not. Looks at nothing else than the configuration.
pub fn of_every_command(config: &Config) -> Vec<String> {
    let (server, id, refresh) = (&config.server, &config.id, &config.refresh);
    let address = |path: [&str; 2], text: &Option<String>| match text.as_deref() {
        None | Some("none") if path[0] == "id" => Ok(()),
        None => Ok(()),
        Some(text) => listen::address(text, listen::DEFAULT)
            .map(|_| ())
            .map_err(|error| named(config, &path, &error)),
    };
    let public_url = config.public_base();
    let pool = StoreSection {
        database_pool: config.store.database_pool,
        ..StoreSection::default()
    };
    let url = StoreSection {
        database_url: config.store.database_url.clone(),
        ..StoreSection::default()
    };
    let at = |path: &[&str], checked: Result<(), CliError>| {
        checked.map_err(|error| named(config, path, &error))
    };
    let mut found = vec![
        at(&["log", "level"], logs::configured(&config.log).map(|_| ())),
        address(["server", "listen"], &server.listen),
        at(&["server", "public_url"], public_url.map(|_| ())),
        at(
            &["server", "trusted_proxies"],
            serving::proxies(server).map(|_| ()),
        ),
        at(&["server", "share"], serving::check_share(server.share)),
        at(&["store", "database_pool"], DataDir::check(&pool)),
        at(&["store", "database_url"], DataDir::check(&url)),
        refresh.plan().map(|_| ()),
        refresh.options(String::new()).map(|_| ()),
        refresh.polling_share().map(|_| ()),
        address(["id", "listen_thrift"], &id.listen_thrift),
        address(["id", "listen_http"], &id.listen_http),
        configured_node(config),
    ];
    found.extend(each_of_refresh(config));
    found.extend(config.check_timeouts());
    found.extend(own_instance(config));
    found.extend(mail(config));
    faults(found)
}

/// Checks the node of `[id]`, and its layout.
fn configured_node(config: &Config) -> Result<(), CliError> {
    let of = |key: &str, error: CliError| named(config, &["id", key], &error);
    let layout = IdSection {
        layout: config.id.layout.clone(),
        ..IdSection::default()
    };
    let alone = IdOptions::default().or(&layout);
    alone.map_err(|error| of("layout", error))?;
    let options = IdOptions::default().or(&config.id);
    let node = options.and_then(|options| options.configured_node());
    node.map(|_| ()).map_err(|error| of("node", error))
}

/// Checks keys of `[refresh]` that do not depend on others, each alone: together only the first fault shows.
fn each_of_refresh(config: &Config) -> [Result<(), CliError>; 2] {
    let refresh = &config.refresh;
    let none = || RefreshSection {
        origins: refresh.origins.clone(),
        ..RefreshSection::default()
    };
    let lease = RefreshSection {
        lease: refresh.lease,
        buffer_ttl: refresh.buffer_ttl,
        ..none()
    };
    let workers = RefreshSection {
        workers: refresh.workers,
        ..none()
    };
    [
        lease.options(String::new()).map(|_| ()),
        workers.options(String::new()).map(|_| ()),
    ]
}

/// Checks each of what the server says of itself.
fn own_instance(config: &Config) -> [Result<(), CliError>; 4] {
    let server = &config.server;
    let none = ServerSection::default;
    [
        (
            "name",
            ServerSection {
                name: server.name.clone(),
                ..none()
            },
        ),
        (
            "description",
            ServerSection {
                description: server.description.clone(),
                ..none()
            },
        ),
        (
            "maintainer",
            ServerSection {
                maintainer: server.maintainer.clone(),
                ..none()
            },
        ),
        (
            "maintainer_mail",
            ServerSection {
                maintainer_mail: server.maintainer_mail.clone(),
                ..none()
            },
        ),
    ]
    .map(|(key, alone)| {
        let checked = serving::own_instance(&alone).map(|_| ());
        checked.map_err(|error| named(config, &["server", key], &error))
    })
}

/// Checks the sender of mail, and the server.
fn mail(config: &Config) -> [Result<(), CliError>; 2] {
    let from = MailSection {
        from: config.mail.from.clone(),
        ..MailSection::default()
    };
    let smtp = MailSection {
        smtp: config.mail.smtp.clone(),
        ..MailSection::default()
    };
    [("from", from), ("smtp", smtp)].map(|(key, alone)| {
        mail_options::check(&alone).map_err(|error| named(config, &["mail", key], &error))
    })
}

/// The faults that make a start fail: `serve` without flags of its own and, where `[id]` says that
/// IDs are served, its ID service. Reads the configured operator's token; takes no lock, and looks at no network
/// and no database.
pub fn of_a_start(config: &Config) -> Vec<String> {
    let (server, id) = (&config.server, &config.id);
    let token_key = match server.token_file {
        Some(_) => "token_file",
        None => "token_env",
    };
    let token = || {
        operator::token(server.token_env.as_deref(), server.token_file.as_deref())
            .map_err(|error| named(config, &["server", token_key], &error))
    };
    let client = || Http::new(config.http_options(false)?).map_err(CliError::usage);
    let node_key = if id.node.is_some() { "node" } else { "layout" };
    let node = || {
        let Ok(options) = IdOptions::default().or(id) else {
            // Every command finds that.
            return Ok(());
        };
        match (options.lease, config.id.serve) {
            (_, false) => Ok(()),
            (Some(LeaseStore::File | LeaseStore::Store), true) => {
                options.generating_layout().map(|_| ())
            }
            (None, true) => options.node_or_first().map(|_| ()),
        }
    };
    let passphrase_key = match config.mail.passphrase_file {
        Some(_) => "passphrase_file",
        None => "passphrase_env",
    };
    let passphrase = || {
        let read = mail_options::passphrase(&config.mail).map(|_| ());
        read.map_err(|error| named(config, &["mail", passphrase_key], &error))
    };
    let http = || match &id.listen_http {
        Some(text) => id_options::open_address(text, listen::DEFAULT, id.allow_remote)
            .map(|_| ())
            .map_err(|error| named(config, &["id", "listen_http"], &error)),
        None => Ok(()),
    };
    faults([
        token().map(|_| ()),
        DataDir::new(&config.store).map(|_| ()),
        client().map(|_| ()),
        node().map_err(|error| named(config, &["id", node_key], &error)),
        id_options::thrift_address(id)
            .map(|_| ())
            .map_err(|error| named(config, &["id", "listen_thrift"], &error)),
        passphrase(),
        http(),
    ])
}

fn named(config: &Config, path: &[&str], error: &CliError) -> CliError {
    CliError::usage(format!("{}: {error}", config.origins.name(path)))
}

fn faults(checked: impl IntoIterator<Item = Result<(), CliError>>) -> Vec<String> {
    let faults = checked.into_iter().filter_map(Result::err);
    let mut texts: Vec<String> = Vec::new();
    for fault in faults.map(|fault| fault.to_string()) {
        if !texts.contains(&fault) {
            texts.push(fault);
        }
    }
    texts
}
