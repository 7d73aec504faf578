//! `instance`: the servers that sources are read from.

use clap::{Args, Subcommand};
use driftline_server::admin::{
    ForgetInstance, ForgottenInstance, KnownInstance, KnownInstanceInfo, ListInstances,
    LookUpsSeen, PlanForgetting, ShowInstance, ShownInstance,
};

use crate::{
    config::Config,
    consent::Consent,
    error::CliError,
    output, shown as text,
    store_access::{Missing, once, show},
    table::{self, left, right},
};

/// What can be done with servers.
#[derive(Debug, Subcommand)]
pub enum Instance {
    /// List the servers that the store knows, with their posts, sources and credentials.
    List,
    /// Show what a server says of itself, what it honours of requests for its timelines, and which look-ups
    /// of single posts it answers, as its answers have shown it.
    ///
    /// Of an author's host that no source reads, only that it is known is shown.
    Show(InstanceAddress),
    /// Forget a server: remove its sources, its credentials and its posts.
    Forget(Forget),
}

/// A server to forget.
#[derive(Debug, Args)]
pub struct Forget {
    #[command(flatten)]
    address: InstanceAddress,
    #[command(flatten)]
    consent: Consent,
}

/// A server's address.
#[derive(Debug, Args)]
pub struct InstanceAddress {
    /// The server's address, such as `https://mastodon.social`.
    url: String,
}

impl Instance {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        match self {
            Self::List => show(config, json, ListInstances, listed).await,
            Self::Show(InstanceAddress { url: address }) => {
                show(config, json, ShowInstance { address }, shown).await
            }
            Self::Forget(forget) => output::reply(json, &forget.run(config).await?, forgotten),
        }
    }
}

impl Forget {
    /// Forgets the server, once it is said what goes with it and that is agreed to.
    async fn run(self, config: &Config) -> Result<ForgottenInstance, CliError> {
        let address = self.address.url;
        if !self.consent.is_given() {
            let plan = PlanForgetting {
                address: address.clone(),
            };
            let contents = once(config, Missing::Refuse, plan).await?;
            let what = format!(
                "{} is forgotten for good, {}",
                contents.address,
                gone(&contents)
            );
            self.consent.ask(&what)?;
        }
        once(config, Missing::Refuse, ForgetInstance { address }).await
    }
}

fn forgotten(of: &ForgottenInstance) -> Vec<String> {
    vec![format!("{} is forgotten, {}", of.address, gone(of))]
}

fn gone(of: &ForgottenInstance) -> String {
    let named = |names: &[String], one: &str| match names {
        [] => text::count(0, one),
        names => format!(
            "{} ({})",
            text::count(names.len() as u64, one),
            names.join(", ")
        ),
    };
    let private = |count: u64, one: &str| match count {
        0 => String::new(),
        some => format!(
            "{} that accounts keep to themselves, ",
            text::count(some, one)
        ),
    };
    format!(
        "with {}, {}{}, {}{} and {}",
        named(&of.sources, "source"),
        private(of.private_sources, "source"),
        named(&of.credentials, "credential"),
        private(of.private_credentials, "credential"),
        text::count(of.posts, "post"),
        text::count(of.accounts, "account")
    )
}

#[expect(clippy::ptr_arg, reason = "a reply")]
fn listed(instances: &Vec<KnownInstance>) -> Vec<String> {
    if instances.is_empty() {
        return vec!["no server is known; `driftline source add` adds one".to_owned()];
    }
    let names = |of: &[String]| match of {
        [] => "-".to_owned(),
        names => names.join(", "),
    };
    table::lines(instances.iter().map(|instance| {
        [
            left("SERVER", &instance.address),
            left(
                "NAME",
                instance
                    .info
                    .as_ref()
                    .map_or("-", |of| or_dash(of.said.name())),
            ),
            left(
                "SOFTWARE",
                instance
                    .info
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), software),
            ),
            left("API", instance.api),
            right("POSTS", instance.posts),
            left("SOURCES", names(&instance.sources)),
            left("CREDENTIALS", names(&instance.credentials)),
        ]
    }))
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn software(of: &KnownInstanceInfo) -> String {
    let words = [of.said.software_name(), of.said.version()];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    or_dash(&words.join(" ")).to_owned()
}

/// What a server says of itself: a line of each.
fn described(of: &KnownInstanceInfo) -> Vec<String> {
    let mut lines = vec![
        format!("name: {}", or_dash(of.said.name())),
        format!("software: {}", software(of)),
        format!("maintainer: {}", or_dash(of.said.maintainer_name())),
        format!("extensions: {}", or_dash(&of.said.extensions().join(", "))),
    ];
    lines.extend(
        of.said
            .description()
            .lines()
            .map(|line| format!("| {line}")),
    );
    lines
}

fn shown(of: &ShownInstance) -> Vec<String> {
    let id = format!("ID: {}", or_dash(&of.id));
    if !of.is_read {
        let address = &of.address;
        let known = format!(
            "{address}: no source reads it; it is known by its authors in what other servers showed"
        );
        return vec![known, id];
    }
    let mut lines = vec![id];
    match &of.info {
        Some(info) => lines.extend(described(info)),
        None => lines.push("it has not said what it is yet".to_owned()),
    }
    lines.push(String::new());
    lines.extend(table::lines(of.timelines.iter().map(|of| {
        let order = match (&of.order, &of.layout) {
            (Some(order), Some(layout)) => format!("{order}, {layout}"),
            (Some(order), None) => order.clone(),
            (None, _) => "-".to_owned(),
        };
        [
            left("TIMELINE", &of.timeline),
            left("SINCE_ID", of.since_id),
            left("MIN_ID", of.min_id),
            left("MAX_ID", of.max_id),
            left("BOTH", of.both),
            left("LIMIT", of.limit),
            right("LONGEST PAGE", of.longest_page),
            left("ORDER", order),
        ]
    })));
    for of in &of.timelines {
        if of.stable_ids == Some(false) {
            lines.push(format!(
                "{}: a post's ID changes when the post does; the part that stays is used",
                of.timeline
            ));
        }
        if of.link_only {
            lines.push(format!(
                "{}: pages below the newest can be read by their Link headers at most",
                of.timeline
            ));
        }
        if of.precision_ms > 0 {
            lines.push(format!(
                "{}: posts within {} ms of each other are listed in any order",
                of.timeline, of.precision_ms
            ));
        }
        if let Some(why) = &of.unprovable {
            lines.push(format!("{}: cannot be proven complete: {why}", of.timeline));
        }
    }
    lines.push(String::new());
    lines.extend(table::lines(of.look_ups.iter().map(|of| {
        [
            left("LOOK-UPS WITH", &of.credential),
            left("TOKEN", if of.has_token { "yes" } else { "no" }),
            left("POSTS", found(of.posts)),
            left("BOOSTS", found(of.boosts)),
        ]
    })));
    lines
}

fn found(seen: Option<LookUpsSeen>) -> &'static str {
    match seen {
        None => "unknown",
        Some(LookUpsSeen { found: true, .. }) => "found",
        Some(LookUpsSeen { found: false, .. }) => "not found",
    }
}
