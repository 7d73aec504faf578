//! `mirror`: one timeline, in the foreground.

mod ending;
mod progress;

use clap::Args;
use driftline_mirror::{SessionError, UpstreamAccess};
use driftline_net::Http;
use driftline_runtime::{IndexBacklog, StoreDisk, now_ms};
use driftline_server::{
    admin::{self, AddSource, Host, ProcessStatus},
    bells, index_keeper,
};
use driftline_store::{
    Owner, Store,
    source::{self, Source},
};
use driftline_upstream::{Address, Timeline};
use ending::Ending;
use progress::Progress;
use tokio::{sync::watch, time::timeout};

use crate::{
    config::Config,
    data_dir::{DataDir, Lock, holder_name},
    duration::{duration, parse_ms},
    error::CliError,
    options::source_options::SourceOptions,
    output,
    reloading::hangups,
    socket::Listening,
    source_reader::{ReadUntil, SourceReader},
    stop,
};

/// Mirrors a timeline and reports on its completeness.
///
/// The source is added if it is not there, once the server has answered with the timeline. Ctrl-C ends it with the report; a
/// second one ends it at once.
#[derive(Debug, Args)]
pub struct Mirror {
    #[command(flatten)]
    source: SourceOptions,
    /// How long to go on; then the last posts are read once more, which takes at most 10 s. What is
    /// not settled by then is listed, and the exit status is 3.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_ms)]
    for_ms: Option<i64>,
    /// End at once, without reading the last posts once more.
    #[arg(long)]
    no_settle: bool,
}

impl Mirror {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        // Opening the store and waiting for the source's lease are part of the time.
        let at_ms = self.for_ms.map(|for_ms| now_ms().saturating_add(for_ms));
        let http = config.http(false)?;
        let add = self.source.add_source(config)?;
        let address = config.address()?;
        let data_dir = DataDir::new(&config.store)?;
        let mut stop = stop::on_signal()?;
        // A closed terminal or a reload does not end it.
        let _hangups = hangups()?;
        let lock = data_dir
            .lock("; add the source to a server with `driftline source add`")
            .await?;
        let store_disk = data_dir.watch_disk();
        let backlog = IndexBacklog::default();
        let opening = open(
            config,
            http,
            (&add, &self.source),
            &data_dir,
            (&lock, &store_disk, &backlog),
        );
        let (store, mut reader) = match at_ms {
            None => opening.await?,
            Some(at_ms) => {
                let left_ms = at_ms.saturating_add(MAX_SETTLING_MS) - now_ms();
                let opened = timeout(duration(left_ms), opening).await;
                opened.map_err(|_| {
                    let shown = data_dir.shown();
                    CliError::Unsettled(format!(
                        "nothing was read: the store {shown} or the server does not answer, or another process has the source"
                    ))
                })??
            }
        };
        // Other commands look on meanwhile.
        let host = Host {
            process: Some(ProcessStatus::started("mirror")),
            store_disk,
            address,
            ..Host::of(&store)
        };
        let listening = Listening::start(&data_dir.socket(), host)
            .map_err(|error| output::note(&format!("driftline: {error}")));
        let (indexing, ended) = watch::channel(false);
        let indexed = index_keeper::keep_indexed(store.clone(), backlog, ended.clone());
        let forgotten = bells::keep_forgetting_edits(store.clone(), ended);
        let keeper = tokio::spawn(async move { tokio::join!(indexed, forgotten) });
        let read = self.read(&mut reader, at_ms, &mut stop).await;
        indexing.send_replace(true);
        if let Ok(listening) = listening {
            listening.close().await;
        }
        let outcome = match read {
            Ok(ending) => Box::pin(ending.report(&store, reader, json)).await,
            Err(error) => {
                drop(timeout(ending::MAX_CLOSE, reader.close()).await);
                Err(error)
            }
        };
        drop(timeout(ending::MAX_CLOSE, keeper).await);
        drop(timeout(ending::MAX_CLOSE, store.close()).await);
        drop(lock);
        outcome
    }

    /// Reads until the end, which is due at `at_ms`, Unix ms.
    async fn read(
        &self,
        reader: &mut SourceReader,
        at_ms: Option<i64>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Ending, CliError> {
        let until = ReadUntil {
            at_ms,
            settle_rungs: (!self.no_settle).then_some(1),
            settle_ms: MAX_SETTLING_MS,
        };
        let mut progress = Progress::start(reader.session(), at_ms, MAX_SETTLING_MS);
        let show = |session: &_, settling| progress.show(session, settling);
        let read = reader.run(until, stop, show).await;
        progress.finish();
        let store_error = match read {
            Ok(()) => None,
            // A store that comes back later has all that was committed.
            Err(SessionError::Store(error)) if at_ms.is_some() && error.is_outage() => Some(error),
            Err(error) => return Err(error.into()),
        };
        let settles = !self.no_settle && !*stop.borrow();
        let settle_at_ms = at_ms.filter(|_| settles);
        Ok(Ending::of(
            reader,
            at_ms,
            settle_at_ms,
            store_error.as_ref(),
        ))
    }
}

/// Opens the store and the source.
async fn open(
    config: &Config,
    http: Http,
    (add, options): (&AddSource, &SourceOptions),
    data_dir: &DataDir,
    (lock, store_disk, backlog): (&Lock, &StoreDisk, &IndexBacklog),
) -> Result<(Store, SourceReader), CliError> {
    let store = data_dir.open(lock).await?;
    let access = UpstreamAccess {
        store_disk: store_disk.clone(),
        index_backlog: backlog.clone(),
        ..config.access(&store, http, data_dir.data())?
    };
    let host = Host {
        access: Some(access.clone()),
        ..Host::of(&store)
    };
    let source = match find_or_add(&host, add, options).await {
        Ok(source) => source,
        Err(error) => {
            store.close().await;
            return Err(error);
        }
    };
    output::note(&format!(
        "mirroring {} of {} as {}",
        source.timeline, source.upstream, source.name
    ));
    let reader = SourceReader::open(store.clone(), &access, source, &holder_name()).await?;
    Ok((store, reader))
}

/// The source of that name, or of that timeline, or a new one.
async fn find_or_add(
    host: &Host,
    add: &AddSource,
    options: &SourceOptions,
) -> Result<Source, CliError> {
    let (store, given_name) = (&host.store, &add.name);
    let add = admin::with_account_id(host, add.clone(), Owner::Operator).await?;
    let address = Address::parse(&add.address).map_err(CliError::usage)?;
    let timeline: Timeline = add.timeline.parse().map_err(CliError::usage)?;
    let (address, timeline) = (address.to_string(), timeline.to_string());
    let same = |source: &Source| source.upstream == address && source.timeline == timeline;
    let sources = store.read(source::list).await?;
    let mut own = sources
        .into_iter()
        .filter(|source| source.owner == Owner::Operator);
    let known = own.find(|source| match given_name {
        Some(name) => source.name == *name,
        None => same(source),
    });
    if let Some(source) = known {
        if !same(&source) {
            return Err(CliError::usage(format!(
                "the source {:?} is {} of {}; choose another name with --name",
                source.name, source.timeline, source.upstream
            )));
        }
        options.agrees_with(&source)?;
        return Ok(source);
    }
    let add = AddSource { check: true, ..add };
    let added = admin::add_checked(host, add, NOT_ADDED).await?;
    if let Some(warning) = &added.warning {
        output::note(&format!("not tried: {warning}"));
    }
    Ok(admin::find(store, &added.name).await?)
}

const NOT_ADDED: &str = "the source was not added; for a server that is away now, `driftline source add --no-check` adds it";

/// With the end after it, less than the 10 s that are promised.
const MAX_SETTLING_MS: i64 = 6_500;
