//! `serve`: reads every source and serves the store.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use driftline_api::{
    auth::{Authorization, OperatorToken},
    people::{People, SignUp, SignUpMode},
    transport::Address,
};
use driftline_mirror::{Membership, PollersOptions};
use driftline_net::Http;
use driftline_runtime::{metrics::Part, now_ms};
use driftline_server::{
    Daemon, HttpOptions, bells, bookmark_watch, index_keeper, server_keys, sign_up_sweep,
};
use driftline_store::Store;
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
};
use url::Url;

use crate::{
    backup_record,
    config::Config,
    data_dir::{DataDir, holder_name},
    error::CliError,
    listen, operator,
    options::id_options::{IdOptions, start_id_service, thrift_address},
    options::mail_options,
    output,
    reloading::Reloading,
    serving::{MAX_SHARE, check_share, node_lost, own_instance, proxies, record_metrics},
    socket::Listening,
    stop,
};

/// Reads every source and serves what is stored.
///
/// SIGTERM and Ctrl-C end it in order; a second one ends it at once. SIGHUP reads the configuration
/// again.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen; port 0 is any free one [default: 127.0.0.1:7171].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The environment variable that holds the operator's token.
    #[arg(long, value_name = "VAR", conflicts_with = "token_file")]
    token_env: Option<String>,
    /// The file that holds the operator's token [default: operator.token in the data folder, made at the first
    /// start].
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// How much of the sources and of refreshing this process takes next to others on the same
    /// PostgreSQL: twice as much as one with half the number, none with 0 [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_SHARE)))]
    share: Option<u32>,
    /// Allow sources in private networks and tokens over plain http.
    #[arg(long)]
    allow_private: bool,
    /// For tests of clients: anybody signs up at once, with a mail address that nobody checks, as often as they
    /// like. Only where no other machine can reach the server.
    #[arg(long)]
    insecure_test: bool,
}

impl Serve {
    /// Runs it. After the stop signal it ends within a bounded time, whatever the store does.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(
        self,
        config: &Config,
        json: bool,
        reloading: Reloading,
    ) -> Result<(), CliError> {
        let stop = stop::on_signal()?;
        reloading.start(config)?;
        let ending = Notify::new();
        let run = Box::pin(self.run_in_order(config, json, stop.clone(), &ending));
        let end_comes = async {
            tokio::select! {
                () = stop::stopped(stop) => {}
                () = ending.notified() => {}
            }
        };
        stop::soon_after(end_comes, run).await
    }

    async fn run_in_order(
        self,
        config: &Config,
        json: bool,
        stop: watch::Receiver<bool>,
        ending: &Notify,
    ) -> Result<(), CliError> {
        let listen = self.listen.as_ref().or(config.server.listen.as_ref());
        let address = listen.map_or(Ok(listen::DEFAULT), |text| {
            listen::address(text, listen::DEFAULT)
        })?;
        let upstreams = config.http(self.allow_private)?;
        let public_base = config.public_base()?;
        let proxies = proxies(&config.server)?;
        let token = self.token(config)?;
        if !address.ip().is_loopback() {
            output::note(
                "HTTP is not encrypted here: a proxy that speaks TLS belongs before this server, or a network that you trust",
            );
        }
        if self.insecure_test && (!address.ip().is_loopback() || public_base.is_some()) {
            return Err(CliError::usage(
                "--insecure-test lets anybody have an account, so it is refused where other machines can reach the server: listen on 127.0.0.1, and leave server.public_url out",
            ));
        }
        let share = self.share(config)?;
        let data_dir = DataDir::new(&config.store)?;
        let lock = data_dir.lock(" already; end it").await?;
        let runs_here = |part| part != Part::IdService || config.id.serve;
        let metrics = Some(record_metrics(runs_here)?);
        let token = token.map_or_else(|| operator::token_of_folder(data_dir.data()), Ok)?;
        let data = data_dir.data().to_owned();
        tokio::spawn(async move { backup_record::show_as_metric(&data).await });
        let listener = listen::bind(address, "--listen").await?;
        let store = data_dir.open(&lock).await?;
        let mut people = people(
            config,
            data_dir.data(),
            public_base.as_ref(),
            &store,
            stop.clone(),
        )
        .await?;
        if self.insecure_test {
            people.sign_up = SignUp {
                mode: SignUpMode::Open,
                without_mail: true,
            };
            output::note(
                "anybody can have an account here: --insecure-test is for tests of clients",
            );
        }
        let http = HttpOptions {
            metrics,
            proxies: proxies.clone(),
            own: own_instance(&config.server)?,
            authorization: Authorization::Operator(token),
            people,
            ids_for_anyone: config.id.allow_remote,
        };
        let run = async {
            let daemon = start(config, share, &data_dir, &store, upstreams, stop.clone()).await?;
            let daemon = daemon.with_public_base(public_base);
            let served = match Listening::start(&data_dir.socket(), daemon.host()) {
                Ok(socket) => {
                    let announced = announce(&listener, json);
                    let end = async {
                        let end = match announced {
                            Ok(()) => early_end(stop, &daemon).await,
                            error => error,
                        };
                        ending.notify_one();
                        daemon.wind_down().await;
                        end
                    };
                    let served = listen::serve(listener, daemon.router(http), proxies, end).await;
                    socket.close().await;
                    served
                }
                Err(error) => Err(error),
            };
            daemon.stop().await;
            served
        };
        let outcome = Box::pin(run).await;
        store.close().await;
        drop(lock);
        outcome
    }

    fn share(&self, config: &Config) -> Result<u32, CliError> {
        check_share(config.server.share)?;
        Ok(self.share.or(config.server.share).unwrap_or(1))
    }

    /// The configured token of the operator. A flag replaces both settings.
    fn token(&self, config: &Config) -> Result<Option<OperatorToken>, CliError> {
        let (variable, file) = match (&self.token_env, &self.token_file) {
            (None, None) => (&config.server.token_env, &config.server.token_file),
            flags => flags,
        };
        operator::token(variable.as_deref(), file.as_deref())
    }
}

/// What people's accounts need.
async fn people(
    config: &Config,
    data: &Path,
    public_base: Option<&Url>,
    store: &Store,
    stop: watch::Receiver<bool>,
) -> Result<People, CliError> {
    let secrets = config.secrets(data);
    let key = secrets.sealing_key().map_err(CliError::failed)?;
    let keys = server_keys::open(store, key, now_ms())
        .await
        .map_err(CliError::failed)?;
    let nonce = store.read(driftline_store::nonce).await?;
    let mailer = mail_options::mailer(&config.mail, data, public_base)?;
    let mut people = People::new(keys, &nonce);
    let fresh = server_keys::keep_fresh(
        store.clone(),
        key.clone(),
        people.native.clone(),
        stop.clone(),
    );
    tokio::spawn(fresh);
    tokio::spawn(sign_up_sweep::keep_swept(store.clone(), stop.clone()));
    tokio::spawn(bookmark_watch::keep_watched(store.clone(), stop.clone()));
    let address = Address::configured(public_base);
    tokio::spawn(bells::keep_ringing(store.clone(), address, stop));
    people.sign_up = SignUp {
        mode: config.accounts.sign_up,
        without_mail: false,
    };
    tokio::spawn(mailer.clone().check());
    people.mail = Arc::new(mailer);
    Ok(people)
}

/// Starts what is configured: the ID service, the mirror and the refresh of posts.
async fn start(
    config: &Config,
    share: u32,
    data_dir: &DataDir,
    store: &Store,
    upstreams: Http,
    stop: watch::Receiver<bool>,
) -> Result<Daemon, CliError> {
    let mut access = config.access(store, upstreams, data_dir.data())?;
    let backlog = access.index_backlog.clone();
    tokio::spawn(index_keeper::keep_indexed(
        store.clone(),
        backlog,
        stop.clone(),
    ));
    let ids = if config.id.serve {
        let id_options = IdOptions::default().or(&config.id)?;
        let node = id_options.choice(data_dir.data(), Some(store))?;
        let thrift = thrift_address(&config.id)?;
        Some(start_id_service(&config.id, node, thrift, stop).await?)
    } else {
        None
    };
    access.refreshes = !config.refresh.off;
    access.store_disk = data_dir.watch_disk();
    let holder = holder_name();
    let refresh = config.refresh.options(holder.clone())?;
    let refresh = access.refreshes.then_some(refresh);
    let pollers = PollersOptions {
        membership: Some(Membership {
            share,
            refreshes: access.refreshes,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }),
        ..PollersOptions::new(holder)
    };
    let daemon = Daemon::start(store.clone(), access, pollers, refresh, ids);
    Ok(daemon.with_sources_per_account(config.sources_per_account()))
}

/// Waits for the stop signal, or until the server can give out no more IDs: another process has
/// taken the node, and only a restart takes a new one.
async fn early_end(stop: watch::Receiver<bool>, daemon: &Daemon) -> Result<(), CliError> {
    tokio::select! {
        () = stop::stopped(stop) => Ok(()),
        () = daemon.id_node_lost() => Err(node_lost()),
    }
}

fn announce(listener: &TcpListener, json: bool) -> Result<(), CliError> {
    let address = listener
        .local_addr()
        .map_err(|error| listen::broke(&error))?;
    let url = format!("http://{address}");
    if json {
        output::json(&json!({ "listening": url }))
    } else {
        output::line(&format!("listening on {url}"))
    }
}
