//! The options that make a source.

use clap::{Args, ValueEnum};
use driftline_core::{
    api::Api,
    timeline::{Backfill, Overlap, Rung, Settings, Streaming},
    upstream_id::IdOrder,
};
use driftline_server::admin::AddSource;

use crate::{config::Config, duration::parse_ms, error::CliError, parse};

/// A source as the command line describes it.
#[derive(Debug, Clone, Args)]
pub struct SourceOptions {
    /// The server's address, such as `https://mastodon.social`.
    pub url: String,
    /// The API that it speaks.
    #[arg(long, value_enum, default_value_t = Kind::Mastodon)]
    pub kind: Kind,
    /// home, public, local, remote, mentions, tag:NAME, list:ID or account:ID.
    #[arg(long, default_value = "public")]
    pub timeline: String,
    /// The environment variable that holds the token.
    #[arg(long, value_name = "VAR", conflicts_with = "token_file")]
    pub token_env: Option<String>,
    /// The file that holds the token.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<String>,
    /// The time between two polls [default: 3s].
    #[arg(long, value_name = "DURATION", value_parser = parse_ms)]
    pub every: Option<i64>,
    /// How far below the newest post a poll begins: adaptive or a duration
    /// [default: adaptive].
    #[arg(long, value_parser = parse::overlap)]
    pub overlap: Option<Overlap>,
    /// Posts fetched for each post stored that polls and later looks may take together, once it
    /// is proven that less than every look is enough [default: 2.5].
    #[arg(long, value_name = "NUMBER", value_parser = parse::fetches)]
    pub fetches: Option<u32>,
    /// The history to begin with: none, all, a number of posts or a duration
    /// [default: 1d].
    #[arg(long, value_parser = parse::backfill)]
    pub backfill: Option<Backfill>,
    /// Fill gaps only when asked to.
    #[arg(long)]
    pub no_fill: bool,
    /// How the server's stream is followed: auto, sse, websocket or off
    /// [default: auto].
    #[arg(long, value_parser = parse::streaming)]
    pub stream: Option<Streaming>,
    /// How far the time between two polls may grow while a stream shows what they would
    /// [default: 15s].
    #[arg(long, value_name = "DURATION", value_parser = parse_ms)]
    pub streamed_every: Option<i64>,
    /// The order of IDs, where it is not to be detected: numeric,
    /// length-then-text or text.
    #[arg(long, value_name = "ORDER", value_parser = parse::id_order)]
    pub id_order: Option<IdOrder>,
    /// The layout of IDs, where it is not to be detected; none for IDs
    /// without time.
    #[arg(long, value_name = "NAME", value_parser = parse::id_layout)]
    pub id_layout: Option<String>,
    /// The source's name [default: made from the address and the timeline].
    #[arg(long)]
    pub name: Option<String>,
    /// The second look's least age.
    #[arg(long, value_name = "DURATION", value_parser = parse_ms, hide = true)]
    pub second_look: Option<i64>,
    /// Rungs instead of the default ones.
    #[arg(long, value_name = "AGE/PERIOD", value_parser = parse::rung, hide = true)]
    pub rung: Vec<Rung>,
    /// The least time between two requests.
    #[arg(long, value_name = "DURATION", value_parser = parse_ms, hide = true)]
    pub spacing: Option<i64>,
}

/// An API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Mastodon's, which many servers speak.
    Mastodon,
    /// X's version 2.
    X,
    /// Twitter's version 1.1.
    Twitter,
}

impl From<Kind> for Api {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Mastodon => Self::Mastodon,
            Kind::X => Self::X,
            Kind::Twitter => Self::Twitter,
        }
    }
}

impl SourceOptions {
    /// The request to add the source, without a check.
    ///
    /// # Errors
    /// [`CliError::Usage`] for invalid times.
    pub fn add_source(&self, config: &Config) -> Result<AddSource, CliError> {
        Ok(AddSource {
            name: self.name.clone(),
            address: self.url.clone(),
            api: self.kind.into(),
            timeline: self.timeline.clone(),
            token_env: self.token_env.clone(),
            token_file: self.token_file.as_deref().map(absolute).transpose()?,
            settings: self.settings(config)?,
            check: false,
        })
    }

    fn settings(&self, config: &Config) -> Result<Settings, CliError> {
        let defaults = config.settings();
        let second_look_ms = self.second_look.unwrap_or(defaults.second_look_ms);
        let settings = Settings {
            every_ms: self.every.unwrap_or(defaults.every_ms),
            streamed_every_ms: self.streamed_every.unwrap_or(defaults.streamed_every_ms),
            spacing_ms: self.spacing.unwrap_or(defaults.spacing_ms),
            overlap: self.overlap.unwrap_or(defaults.overlap),
            backfill: self.backfill.unwrap_or(defaults.backfill),
            fill_gaps: defaults.fill_gaps && !self.no_fill,
            second_look_ms,
            second_look_period_ms: defaults.second_look_period_ms.min(second_look_ms.max(1)),
            fetches_percent: self.fetches.unwrap_or(defaults.fetches_percent),
            rungs: if self.rung.is_empty() {
                defaults.rungs
            } else {
                self.rung.clone()
            },
            stream: self.stream.unwrap_or(defaults.stream),
            id_order: self.id_order,
            id_layout: self.id_layout.clone(),
            ..defaults
        };
        if settings.every_ms == 0 {
            return Err(CliError::usage(
                "the time between two polls is zero; write --every 3s, for example",
            ));
        }
        Ok(settings)
    }
}

/// A server may be started in another folder.
fn absolute(path: &str) -> Result<String, CliError> {
    std::path::absolute(path)
        .ok()
        .and_then(|path| path.into_os_string().into_string().ok())
        .ok_or_else(|| CliError::usage(format!("invalid path {path:?}: it is not UTF-8")))
}
