//! What can be wrong with a configuration whose keys and kinds of values are right.

use driftline_net::Http;

use super::Config;
use crate::{
    commands::serve,
    data_dir::DataDir,
    error::CliError,
    id_options::{self, IdOptions, LeaseStore},
    listen, logs, mail_options, operator,
};

/// The faults that make every command end, since the configuration contradicts itself or names
/// what there is not. Looks at nothing else than the configuration.
pub fn of_every_command(config: &Config) -> Vec<String> {
    let (server, id, refresh) = (&config.server, &config.id, &config.refresh);
    let address = |path: [&str; 2], text: &Option<String>| match text.as_deref() {
        None | Some("none") if path[0] == "id" => Ok(()),
        None => Ok(()),
        Some(text) => listen::address(text, serve::DEFAULT)
            .map(|_| ())
            .map_err(|error| named(config, &path, &error)),
    };
    let public_url = server.public_url.as_deref().map(serve::base).transpose();
    let id_options = IdOptions::default().or(id);
    faults([
        logs::configured(&config.log)
            .map(|_| ())
            .map_err(|error| named(config, &["log", "level"], &error)),
        address(["server", "listen"], &server.listen),
        public_url
            .map(|_| ())
            .map_err(|error| named(config, &["server", "public_url"], &error)),
        serve::proxies(server).map(|_| ()),
        serve::check_share(server.share),
        serve::own_instance(server).map(|_| ()),
        DataDir::check(&config.store),
        config.http_options(false).map(|_| ()),
        refresh.plan().map(|_| ()),
        refresh.options(String::new()).map(|_| ()),
        refresh.polling_share().map(|_| ()),
        mail_options::check(&config.mail),
        address(["id", "listen_thrift"], &id.listen_thrift),
        address(["id", "listen_http"], &id.listen_http),
        id_options
            .and_then(|options| options.configured_node())
            .map(|_| ()),
    ])
}

/// The faults that make a start fail: `serve` without flags of its own and, where `[id]` says that
/// IDs are served, its ID service. Reads the configured operator's token; takes no lock, and looks at no network
/// and no database.
pub fn of_a_start(config: &Config) -> Vec<String> {
    let (server, id) = (&config.server, &config.id);
    let token = || operator::token(server.token_env.as_deref(), server.token_file.as_deref());
    let client = || Http::new(config.http_options(false)?).map_err(CliError::usage);
    let node = || {
        let options = IdOptions::default().or(id)?;
        match (options.lease, config.id.serve) {
            (_, false) => Ok(()),
            (Some(LeaseStore::File | LeaseStore::Store), true) => {
                options.generating_layout().map(|_| ())
            }
            (None, true) => options.node_or_first().map(|_| ()),
        }
    };
    let http = || match &id.listen_http {
        Some(text) => id_options::open_address(text, serve::DEFAULT, id.allow_remote).map(|_| ()),
        None => Ok(()),
    };
    faults([
        token().map(|_| ()),
        DataDir::new(&config.store).map(|_| ()),
        client().map(|_| ()),
        node(),
        id_options::thrift_address(id).map(|_| ()),
        mail_options::passphrase(&config.mail).map(|_| ()),
        http(),
    ])
}

fn named(config: &Config, path: &[&str], error: &CliError) -> CliError {
    CliError::usage(format!("{}: {error}", config.origins.name(path)))
}

fn faults<const N: usize>(checked: [Result<(), CliError>; N]) -> Vec<String> {
    let faults = checked.into_iter().filter_map(Result::err);
    let mut texts: Vec<String> = Vec::new();
    for fault in faults.map(|fault| fault.to_string()) {
        if !texts.contains(&fault) {
            texts.push(fault);
        }
    }
    texts
}
