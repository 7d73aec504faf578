//! `source`: the sources of a store.

use clap::{Args, Subcommand};
use driftline_core::{names::audience::Audience, social::AccountName};
use driftline_server::admin::{
    AddedSource, ChangedSource, FillGap, ListSources, ListUnreadable, PauseSource, PausedSource,
    PlanRemoval, RemoveSource, RemovedSource, RequestedFill, SetSource, ShowSettings,
    SourceContents, SourceRow, UnreadableItem, VerifySource,
};

use crate::{
    config::Config,
    consent::Consent,
    duration::show_ms,
    error::CliError,
    options::source_options::{SourceOptions, checked},
    options::token_options::TokenOptions,
    output, parse, shown,
    source_settings::SourceSettings,
    store_access::{Missing, once, show, with},
    table::{self, left, right},
};

/// What can be done with sources.
#[derive(Debug, Subcommand)]
pub enum Source {
    /// Add a source; a running server begins to read it at once.
    Add(Box<Add>),
    /// List the sources.
    List,
    /// Change a source's settings or its token; who reads it goes on with them within a second.
    Set(Box<Set>),
    /// Fetch nothing for a source until it is resumed.
    Pause(SourceName),
    /// Fetch for a source again.
    Resume(SourceName),
    /// Remove a source with its entries, its gaps, and the posts that no other source has.
    Remove(Remove),
    /// Report on a source's completeness.
    Verify(SourceName),
    /// List what no post could be read from, as it came; each new version of driftline tries again.
    Unreadable(SourceName),
    /// Fill an open gap.
    Fill(Fill),
}

/// A source to add.
#[derive(Debug, Args)]
pub struct Add {
    #[command(flatten)]
    source: SourceOptions,
    /// Add it for that account: it belongs to the account, and is private to it unless --audience says more.
    /// Its token is sealed in the store.
    #[arg(long = "for", value_name = "ACCOUNT", conflicts_with = "allow_private")]
    owner: Option<AccountName>,
    /// Add it without asking the server for the timeline, as where it cannot be reached now.
    #[arg(long)]
    no_check: bool,
}

/// What to change of a source.
#[derive(Debug, Args)]
pub struct Set {
    /// The source's name.
    name: String,
    /// Give it another name.
    #[arg(long, value_name = "NEW")]
    rename: Option<String>,
    #[command(flatten)]
    settings: SourceSettings,
    /// Fill gaps without being asked to, again.
    #[arg(long, conflicts_with = "fill_gaps")]
    fill: bool,
    #[command(flatten)]
    token: TokenOptions,
    /// Keep another token without asking the server for the timeline with it.
    #[arg(long)]
    no_check: bool,
    /// Whether the posts of the source are kept fresh. Posts that another source keeps fresh stay
    /// so.
    #[arg(long, value_name = "on|off", value_parser = parse::switch)]
    refresh: Option<bool>,
    /// Whether the source's server may be in a private network, and be sent tokens over plain http,
    /// also where that is allowed of no other server.
    #[arg(long, value_name = "on|off", value_parser = parse::switch)]
    allow_private: Option<bool>,
    /// Who may read it beside you.
    #[arg(long, value_name = "WHO", value_parser = parse::audience())]
    audience: Option<Audience>,
}

/// A source to remove.
#[derive(Debug, Args)]
pub struct Remove {
    /// The source's name.
    name: String,
    /// Keep the posts that no other source has: they are shown and refreshed as before, and belong
    /// to no source.
    #[arg(long)]
    keep_posts: bool,
    #[command(flatten)]
    consent: Consent,
}

/// A source's name.
#[derive(Debug, Args)]
pub struct SourceName {
    /// The source's name.
    name: String,
}

/// An open gap of a source.
#[derive(Debug, Args)]
pub struct Fill {
    /// The source's name.
    name: String,
    /// The gap's first ID, as `source verify` shows it.
    gap: String,
}

impl Source {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        match self {
            Self::Add(add) => output::reply(json, &add.run(config).await?, added),
            Self::List => show(config, json, ListSources, list).await,
            Self::Set(set) => output::reply(json, &set.run(config).await?, changed),
            Self::Pause(SourceName { name }) => {
                let request = PauseSource { name, paused: true };
                show(config, json, request, paused).await
            }
            Self::Resume(SourceName { name }) => {
                let request = PauseSource {
                    name,
                    paused: false,
                };
                show(config, json, request, paused).await
            }
            Self::Remove(remove) => output::reply(json, &remove.run(config).await?, removed),
            Self::Verify(SourceName { name }) => {
                show(config, json, VerifySource { name }, shown::report).await
            }
            Self::Unreadable(SourceName { name }) => {
                show(config, json, ListUnreadable { name }, unreadable).await
            }
            Self::Fill(Fill { name, gap }) => {
                let shown = |of: &RequestedFill| vec![format!("{} will fill the gap", of.name)];
                show(config, json, FillGap { name, gap }, shown).await
            }
        }
    }
}

impl Add {
    /// Adds the source, unless it is to be checked and the server does not answer with the timeline.
    async fn run(&self, config: &Config) -> Result<AddedSource, CliError> {
        let mut request = self.source.add_source(config)?;
        request.check = !self.no_check;
        request.owner.clone_from(&self.owner);
        once(config, Missing::Make, request).await
    }
}

impl Remove {
    /// Removes the source, once it is said what goes with it and that is agreed to.
    async fn run(self, config: &Config) -> Result<RemovedSource, CliError> {
        let (name, keep_posts) = (self.name, self.keep_posts);
        if !self.consent.is_given() {
            let plan = PlanRemoval { name: name.clone() };
            let contents = once(config, Missing::Refuse, plan).await?;
            let what = format!(
                "{name} is removed for good, {}",
                gone(&contents, keep_posts)
            );
            self.consent.ask(&what)?;
        }
        let remove = RemoveSource { name, keep_posts };
        once(config, Missing::Refuse, remove).await
    }
}

#[expect(clippy::ptr_arg, reason = "a reply")]
fn list(sources: &Vec<SourceRow>) -> Vec<String> {
    if sources.is_empty() {
        return vec!["no sources yet; `driftline source add URL` adds one".to_owned()];
    }
    // What a source is doing comes last: why it fails may take some words.
    table::lines(sources.iter().map(|source| {
        let unrefreshed = if source.refreshing {
            ""
        } else {
            ", not refreshed"
        };
        let private = if source.allow_private {
            " (may be private)"
        } else {
            ""
        };
        let timeline = format!(
            "{} of {}{private}{unrefreshed}",
            source.timeline, source.upstream
        );
        [
            left("NAME", &source.name),
            left("OWNER", source.owner.as_deref().unwrap_or("operator")),
            right("UPDATES", source.update_count),
            right("EVERY", show_ms(source.every_ms)),
            left("AUDIENCE", source.audience.name()),
            left("TIMELINE", timeline),
            left("STATE", state_text(source)),
        ]
    }))
}

fn state_text(source: &SourceRow) -> String {
    match source.unreadable {
        0 => source.state_text.clone(),
        unreadable => format!("{}; {unreadable} unreadable", source.state_text),
    }
}

#[expect(clippy::ptr_arg, reason = "a reply")]
fn unreadable(items: &Vec<UnreadableItem>) -> Vec<String> {
    if items.is_empty() {
        return vec!["every post that was listed could be read".to_owned()];
    }
    let lines = items.iter().flat_map(|item| {
        let neighbour = |id: &Option<String>| id.clone().unwrap_or_else(|| "…".to_owned());
        let id = item.id.clone().unwrap_or_else(|| {
            let (above, below) = (neighbour(&item.above), neighbour(&item.below));
            format!("between {above} and {below}")
        });
        let since = shown::time(item.first_seen_at_ms);
        let head = format!("{id}, since {since}: {}", item.reason);
        [head, format!("  {}", start_of(&item.text))]
    });
    lines.collect()
}

/// The text up to a length, with nothing in it that a terminal would obey.
fn start_of(text: &str) -> String {
    let plain = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    let shown: String = text.chars().take(MAX_SHOWN).map(plain).collect();
    match text.chars().nth(MAX_SHOWN) {
        Some(_) => format!("{shown}… (--json shows all)"),
        None => shown,
    }
}

impl Set {
    async fn run(&self, config: &Config) -> Result<ChangedSource, CliError> {
        let (name, token) = (self.name.clone(), self.token.location()?);
        let changes_settings = self.fill || self.settings != SourceSettings::default();
        let changes_others =
            self.refresh.or(self.allow_private).is_some() || self.audience.is_some();
        if !changes_settings && !changes_others && token.is_none() && self.rename.is_none() {
            return Err(CliError::usage(
                "nothing to change was given; `driftline source set --help` lists what can be",
            ));
        }
        with(config, Missing::Refuse, async |access| {
            let name = name.clone();
            let before = access.execute(ShowSettings { name }).await?;
            let mut settings = self.settings.or(before.clone());
            settings.fill_gaps |= self.fill;
            if settings != before {
                settings = checked(settings)?;
            }
            let set = SetSource {
                name: self.name.clone(),
                rename: self.rename.clone(),
                settings,
                token: token.clone(),
                allow_private: self.allow_private,
                audience: self.audience,
                refreshing: self.refresh,
                check: !self.no_check,
            };
            access.execute(set).await
        })
        .await
    }
}

fn changed(of: &ChangedSource) -> Vec<String> {
    if let Some(warning) = &of.warning {
        output::note(&format!("the token was not tried: {warning}"));
    }
    if of.shows_the_world {
        output::note(&format!(
            "{0} is read with a token, and everyone may read its public posts; `driftline source set {0} --audience private` hides them",
            of.name
        ));
    }
    let what = match of.changed {
        true => "changed",
        false => "is so already",
    };
    vec![format!("{} {what}", of.name)]
}

fn added(of: &AddedSource) -> Vec<String> {
    let AddedSource { name, warning, .. } = of;
    if let Some(warning) = warning {
        output::note(&format!("not tried: {warning}"));
    }
    if of.has_token && of.audience == Audience::Private {
        output::note(&format!(
            "{name} is read with a token, so only its owner may read it here; `driftline source set {name} --audience members` or `public` shares its public posts"
        ));
    }
    vec![format!("{name} added; `driftline serve` reads it")]
}

fn paused(of: &PausedSource) -> Vec<String> {
    let what = match (of.paused, of.changed) {
        (true, true) => "paused",
        (true, false) => "is paused already",
        (false, true) => "resumed",
        (false, false) => "is not paused",
    };
    vec![format!("{} {what}", of.name)]
}

fn removed(of: &RemovedSource) -> Vec<String> {
    let gone = gone(&of.contents, of.keep_posts);
    vec![format!("{} removed, {gone}", of.name)]
}

/// What goes with a source, and what stays.
fn gone(of: &SourceContents, keep_posts: bool) -> String {
    let mut parts = vec![match of.entries {
        1 => "1 entry".to_owned(),
        entries => format!("{entries} entries"),
    }];
    if !keep_posts {
        parts.push(format!(
            "{} that no other source has",
            shown::count(of.posts, "post")
        ));
    }
    parts.push(shown::count(of.gaps, "gap"));
    for (number, one) in [
        (of.lookups, "pending look-up"),
        (of.unreadable, "unreadable item"),
    ] {
        if number > 0 {
            parts.push(shown::count(number, one));
        }
    }
    let last = parts.pop().unwrap_or_default();
    let kept = match keep_posts {
        true => format!("; {} stay", shown::count(of.posts, "post")),
        false => String::new(),
    };
    format!("with {} and {last}{kept}", parts.join(", "))
}

/// Characters of an item that cannot be read; items may be as long as an answer.
const MAX_SHOWN: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_shown_as_they_came_but_for_what_moves_the_cursor() {
        assert_eq!(start_of("{\"id\": \"é\"}"), "{\"id\": \"é\"}");
        assert_eq!(start_of("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        let long = start_of(&"é".repeat(MAX_SHOWN + 1));
        assert_eq!(long, "é".repeat(MAX_SHOWN) + "… (--json shows all)");
    }
}
