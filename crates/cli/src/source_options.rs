//! The options that make a source.

use clap::Args;
use driftline_core::{
    api::Api,
    timeline::{Rung, Settings},
    upstream_id::IdOrder,
};
use driftline_server::admin::AddSource;

use crate::{
    config::Config, error::CliError, parse, source_settings::SourceSettings,
    token_options::TokenOptions,
};

/// A source as the command line describes it.
#[derive(Debug, Clone, Args)]
pub struct SourceOptions {
    /// The server's address, such as `https://mastodon.social`.
    pub url: String,
    /// The API that it speaks.
    #[arg(long, value_parser = parse::api(), default_value_t)]
    pub kind: Api,
    /// home, public, local, remote, mentions, tag:NAME, list:ID or account:ID.
    #[arg(long, default_value = "public")]
    pub timeline: String,
    #[command(flatten)]
    pub token: TokenOptions,
    #[command(flatten)]
    pub settings: SourceSettings,
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
    /// Rungs instead of the default ones.
    #[arg(long, value_name = "AGE/PERIOD", value_parser = parse::rung, hide = true)]
    pub rung: Vec<Rung>,
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
            api: self.kind,
            timeline: self.timeline.clone(),
            token: self.token.location()?,
            settings: self.settings(config)?,
            check: false,
        })
    }

    fn settings(&self, config: &Config) -> Result<Settings, CliError> {
        let mut settings = checked(self.settings.or(config.settings()))?;
        if !self.rung.is_empty() {
            settings.rungs.clone_from(&self.rung);
        }
        settings.id_order = self.id_order;
        settings.id_layout.clone_from(&self.id_layout);
        Ok(settings)
    }
}

/// Settings whose times fit each other.
///
/// # Errors
/// [`CliError::Usage`] for invalid times.
pub fn checked(mut settings: Settings) -> Result<Settings, CliError> {
    let second_look_ms = settings.second_look_ms.max(1);
    settings.second_look_period_ms = settings.second_look_period_ms.min(second_look_ms);
    if settings.every_ms == 0 {
        return Err(CliError::usage(
            "the time between two polls is zero; write --every 3s, for example",
        ));
    }
    Ok(settings)
}
