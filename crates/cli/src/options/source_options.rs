//! The options that make a source.

use clap::Args;
use driftline_core::{
    api::Api,
    names::audience::Audience,
    timeline::{Rung, Settings},
    upstream_id::IdOrder,
};
use driftline_server::admin::AddSource;
use driftline_store::source::Source;

use crate::{
    config::Config, duration::show_ms, error::CliError, options::token_options::TokenOptions,
    parse, source_settings::SourceSettings,
};

/// A source as the command line describes it.
#[derive(Debug, Clone, Args)]
pub struct SourceOptions {
    /// The server's address, such as `https://mastodon.social`.
    pub url: String,
    /// The API that it speaks [default: mastodon].
    #[arg(long, value_parser = parse::api())]
    pub kind: Option<Api>,
    /// home, public, local, remote, mentions, tag:NAME, list:ID, account:ID, or
    /// account:@user@host, whose ID the server is asked for.
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
    /// Allow the source's server to be in a private network, and tokens over plain http to it. That
    /// is kept with the source, and holds for no other server.
    #[arg(long)]
    pub allow_private: bool,
    /// Who may read it beside you [default: private with a token, else public].
    #[arg(long, value_name = "WHO", value_parser = parse::audience())]
    pub audience: Option<Audience>,
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
            owner: None,
            name: self.name.clone(),
            address: self.url.clone(),
            api: self.kind.unwrap_or_default(),
            timeline: self.timeline.clone(),
            token: self.token.location()?,
            settings: self.settings(config)?,
            allow_private: self.allow_private,
            audience: self.audience,
            check: false,
        })
    }

    /// Checks that every option that was given is as the source has it.
    ///
    /// # Errors
    /// [`CliError::Usage`] naming those that are not, and the command that changes them.
    pub fn agrees_with(&self, source: &Source) -> Result<(), CliError> {
        let (name, stored) = (&source.name, &source.settings);
        let mut changes = self.settings.that_differ_from(stored);
        let token = self.token.location()?;
        if token.is_some() && token != source.token {
            changes.extend(self.token.typed());
        }
        if self.allow_private && !source.allow_private {
            changes.push("--allow-private on".to_owned());
        }
        if let Some(audience) = self
            .audience
            .filter(|audience| *audience != source.audience)
        {
            changes.push(format!("--audience {}", audience.name()));
        }
        if !changes.is_empty() {
            let options = changes.join(" ");
            return Err(CliError::usage(format!(
                "the source {name:?} is there already, with other settings; change them with `driftline source set {name} {options}`, or leave these options out"
            )));
        }
        let fixed = [
            (
                "--kind",
                self.kind.is_some_and(|kind| kind != source.instance.api),
            ),
            (
                "--id-order",
                self.id_order.is_some() && self.id_order != stored.id_order,
            ),
            (
                "--id-layout",
                self.id_layout.is_some() && self.id_layout != stored.id_layout,
            ),
            ("--rung", !self.rung.is_empty() && self.rung != stored.rungs),
        ];
        match fixed.into_iter().find(|(_, differs)| *differs) {
            None => Ok(()),
            Some((option, _)) => Err(CliError::usage(format!(
                "the source {name:?} is there already, with another {option}, which stays as it is; leave it out, or remove the source with `driftline source remove {name}` and add it again"
            ))),
        }
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
    if settings.every_ms < MIN_EVERY_MS {
        return Err(CliError::usage(format!(
            "a poll every {} is more than any server takes; write --every {MIN_EVERY_MS}ms or more",
            show_ms(settings.every_ms)
        )));
    }
    Ok(settings)
}

/// Twenty polls a second.
const MIN_EVERY_MS: i64 = 50;
