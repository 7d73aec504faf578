//! `mirror`: one timeline, in the foreground.

mod progress;

use clap::Args;
use driftline_runtime::now_ms;
use driftline_server::admin::{self, AddSource, Host, Request as _, report_on};
use driftline_store::{
    Store,
    source::{self, Source},
};
use driftline_upstream::{Address, Timeline};
use progress::Progress;

use crate::{
    config::Config,
    data_dir::{DataDir, holder_name},
    duration::parse_ms,
    error::CliError,
    output, shown,
    source_options::SourceOptions,
    source_reader::{ReadUntil, SourceReader},
    stop,
};

/// Mirrors a timeline and reports on its completeness.
///
/// The source is added if it is not there. Ctrl-C ends it with the report; a
/// second one ends it at once.
#[derive(Debug, Args)]
pub struct Mirror {
    #[command(flatten)]
    source: SourceOptions,
    /// How long to go on; then the last posts are read once more.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_ms)]
    for_ms: Option<i64>,
    /// End at once, without reading the last posts once more.
    #[arg(long)]
    no_settle: bool,
    /// Allow servers in private networks and tokens over plain http.
    #[arg(long)]
    allow_private: bool,
}

impl Mirror {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let http = config.http(self.allow_private)?;
        let add = self.source.add_source(config)?;
        let data_dir = DataDir::new(&config.store)?;
        let mut stop = stop::on_signal()?;
        let lock = data_dir.lock("; add the source to a server with `driftline source add`")?;
        let store = data_dir.open(&lock).await?;
        let source = find_or_add(&store, &add).await?;
        let name = source.name.clone();
        output::note(&format!(
            "mirroring {} of {} as {name}",
            source.timeline, source.upstream
        ));

        let access = config.access(&store, http, data_dir.data())?;
        let mut reader = SourceReader::open(store.clone(), &access, source, &holder_name()).await?;
        let until = ReadUntil {
            at_ms: self.for_ms.map(|for_ms| now_ms().saturating_add(for_ms)),
            settle_rungs: (!self.no_settle).then_some(1),
            settle_ms: MAX_SETTLING_MS,
        };
        let mut progress = Progress::start();
        let show = |session: &_, settling| progress.show(session, settling);
        let read = reader.run(until, &mut stop, show).await;
        progress.finish();
        let closed = reader.close().await;
        let outcome = match read.and(closed) {
            Ok(()) => self.report(&store, &name, json, *stop.borrow()).await,
            Err(error) => Err(error),
        };
        store.close().await;
        drop(lock);
        outcome
    }

    async fn report(
        &self,
        store: &Store,
        name: &str,
        json: bool,
        stopped: bool,
    ) -> Result<(), CliError> {
        let report = report_on(store, None, name).await?;
        output::reply(json, &report, shown::report)?;
        let settled = !self.no_settle && !stopped;
        match (shown::never_fetched(&report), shown::open_gaps(&report)) {
            (Some(error), _) => Err(CliError::failed(format!(
                "nothing was ever fetched: {}",
                error.message
            ))),
            (None, gaps @ 1..) if settled => Err(CliError::failed(format!(
                "{gaps} gaps are still open; mirror again to fill them"
            ))),
            _ => Ok(()),
        }
    }
}

/// The source of that name, or of that timeline, or a new one.
async fn find_or_add(store: &Store, add: &AddSource) -> Result<Source, CliError> {
    let address = Address::parse(&add.address).map_err(CliError::usage)?;
    let timeline: Timeline = add.timeline.parse().map_err(CliError::usage)?;
    let (address, timeline) = (address.to_string(), timeline.to_string());
    let same = |source: &Source| source.upstream == address && source.timeline == timeline;
    let sources = store.read(source::list).await?;
    let known = sources.into_iter().find(|source| match &add.name {
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
        if source.settings != add.settings {
            output::note("the source is there already; it keeps its settings");
        }
        return Ok(source);
    }
    let added = add.clone().execute(&Host::of(store)).await?;
    Ok(admin::find(store, &added.name).await?)
}

const MAX_SETTLING_MS: i64 = 5 * 60_000;
