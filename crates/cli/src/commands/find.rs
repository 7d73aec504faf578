//! `find`: posts by predicates.

use std::io;

use clap::Args;
use driftline_core::{feed::ChangeKinds, predicate::Usage};
use driftline_server::admin::{
    ExplainFind, FindPosts, FoundPost, FoundPosts, ReadFeed, read_query,
};
use driftline_store::LocalId;
use serde::Serialize;

use super::tail::Following;
use crate::{
    config::Config,
    error::CliError,
    output,
    progress::{End, Progress},
    shown, stop,
    store_access::{self, Missing, StoreAccess},
};

/// Find posts by a predicate, the newest first.
///
/// Words are joined by AND; OR, XOR, -, ( ) and "..." work, as do has:media, from:NAME@HOST,
/// instance:HOST, lang:ja, after:2026-01-01 and others: see docs/predicates.md.
#[derive(Debug, Args)]
pub struct Find {
    /// The predicate, such as '(cat OR dog) -instance:bots.example has:media'.
    #[arg(allow_hyphen_values = true)]
    query: String,
    /// Only posts of this source.
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// The largest number of posts.
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with_all = ["all", "count", "explain"])]
    limit: u64,
    /// All posts.
    #[arg(long, conflicts_with_all = ["count", "explain"])]
    all: bool,
    /// Only count the posts. Ctrl-C ends a long count, which then says how many there are at least.
    #[arg(long, conflicts_with_all = ["explain", "csv"])]
    count: bool,
    /// Print the newest posts, the oldest of them first, and then each new post as it is stored, until
    /// the command is ended.
    #[arg(long, conflicts_with_all = ["all", "count", "explain"])]
    follow: bool,
    /// Print comma-separated values, with the names of the columns first.
    #[arg(long)]
    csv: bool,
    /// Only print how the posts are found.
    #[arg(long)]
    explain: bool,
}

/// The number of posts.
#[derive(Debug, Serialize)]
struct PostCount {
    count: u64,
    /// False if the count was ended: there are at least so many.
    exact: bool,
}

impl PostCount {
    /// Adds up portions to the last one, as long as the count goes on.
    async fn add_up(
        mut portion: impl AsyncFnMut(Option<LocalId>) -> Result<FoundPosts, CliError>,
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> Result<Self, CliError> {
        let (mut count, mut below) = (0, None);
        loop {
            let found = portion(below).await?;
            count += found.count;
            below = found.next;
            if below.is_none() || !goes_on(count) {
                let exact = below.is_none();
                return Ok(Self { count, exact });
            }
        }
    }
}

impl Find {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        if json && self.csv {
            return Err(CliError::usage("use --json or --csv, not both"));
        }
        if self.follow {
            read_query(&self.query, config.as_account.as_ref(), Usage::Standing)?;
            return self.follow(config, json).await;
        }
        store_access::with(config, Missing::Refuse, async |access| {
            self.on(access, json).await
        })
        .await
    }

    /// Prints the newest posts and then each new one, until a signal comes. Then the store is closed.
    async fn follow(&self, config: &Config, json: bool) -> Result<(), CliError> {
        let stop = stop::on_signal()?;
        let mut printer = Printer::new(json, self.csv)?;
        let mut newest = Vec::new();
        let read = store_access::with(config, Missing::Refuse, async |access| {
            let take = |post| {
                newest.push(post);
                Ok(())
            };
            tokio::select! {
                end = self.newest(access, take) => end.map(Some),
                () = stop::stopped(stop.clone()) => Ok(None),
            }
        });
        let Some(above) = read.await? else {
            return Ok(());
        };
        newest
            .iter()
            .rev()
            .try_for_each(|post| printer.print(post))?;
        printer.flush()?;
        let request = ReadFeed {
            sources: Vec::new(),
            after: None,
            events: ChangeKinds::NEW,
            history: false,
            tombstones: false,
            matching: None,
            limit: PORTION.into(),
            wait_ms: 0,
        };
        // The feed says when posts are stored. The search shows each once, at the viewer's place.
        let mut following = Following::new(config, request, false);
        let followed = tokio::select! {
            followed = self.print_new(&mut following, above, &mut printer) => followed,
            () = stop::stopped(stop) => Ok(()),
        };
        following.close().await;
        followed
    }

    /// Prints each new post above a place.
    async fn print_new(
        &self,
        following: &mut Following<'_>,
        mut above: LocalId,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        while following.next().await?.is_some() {
            loop {
                let request = FindPosts {
                    above: Some(above),
                    ..self.portion(None, PORTION.into())
                };
                let found = match following.execute(request).await {
                    Err(error) if error.may_pass() => {
                        following.retry_later(&error).await;
                        continue;
                    }
                    found => found?,
                };
                let mut posts = found.posts.iter().rev();
                posts.try_for_each(|post| printer.print(post))?;
                printer.flush()?;
                above = found.end;
                if found.next.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn on(&self, access: &mut StoreAccess, json: bool) -> Result<(), CliError> {
        if self.explain {
            let plan = access.execute(ExplainFind {
                query: self.query.clone(),
                source: self.source.clone(),
            });
            return output::reply(json, &plan.await?, |plan| {
                vec![
                    format!("predicate  {}", plan.predicate),
                    format!("look-up    {}", plan.lookup),
                    format!(
                        "waiting    {} for the index",
                        shown::count(plan.waiting.into(), "post")
                    ),
                ]
            });
        }
        if self.count {
            return self.print_count(access, json).await;
        }
        let mut printer = Printer::new(json, self.csv)?;
        self.newest(access, |post| printer.print(&post)).await?;
        printer.flush()
    }

    /// Counts all posts, or those that are found before a signal.
    async fn print_count(&self, access: &mut StoreAccess, json: bool) -> Result<(), CliError> {
        let stop = stop::on_signal()?;
        let mut progress = Progress::start(End::Unknown);
        let portion = async |below| access.execute(self.portion(below, PORTION.into())).await;
        let goes_on = |count| {
            progress.show(count, "post", Vec::new);
            !*stop.borrow()
        };
        let counted = PostCount::add_up(portion, goes_on).await?;
        progress.finish();
        output::reply(json, &counted, |counted| {
            let posts = shown::count(counted.count, "post");
            vec![match counted.exact {
                true => posts,
                false => format!("at least {posts}"),
            }]
        })?;
        match counted.exact {
            true => Ok(()),
            false => Err(CliError::Interrupted("interrupted".to_owned())),
        }
    }

    /// Hands on the newest posts, as many as are asked for. Returns the place above which later posts
    /// stand.
    async fn newest(
        &self,
        access: &mut StoreAccess,
        mut take: impl FnMut(FoundPost) -> Result<(), CliError>,
    ) -> Result<LocalId, CliError> {
        let mut left = if self.all { u64::MAX } else { self.limit };
        let (mut end, mut below) = (None, None);
        loop {
            let found = access.execute(self.portion(below, left)).await?;
            let end = *end.get_or_insert(found.end);
            let posts = found.posts.into_iter();
            for post in posts.take(usize::try_from(left).unwrap_or(usize::MAX)) {
                take(post)?;
            }
            left -= found.count.min(left);
            below = found.next;
            if below.is_none() || left == 0 {
                return Ok(end);
            }
        }
    }

    fn portion(&self, below: Option<LocalId>, left: u64) -> FindPosts {
        FindPosts {
            query: self.query.clone(),
            source: self.source.clone(),
            below,
            above: None,
            limit: u16::try_from(left).unwrap_or(PORTION).min(PORTION),
            only_count: self.count,
        }
    }
}

/// Prints posts.
enum Printer {
    Text,
    Json,
    Csv(Box<csv::Writer<io::Stdout>>),
}

impl Printer {
    fn new(is_json: bool, is_csv: bool) -> Result<Self, CliError> {
        match (is_json, is_csv) {
            (true, _) => Ok(Self::Json),
            (false, false) => Ok(Self::Text),
            (false, true) => {
                let mut writer = csv::Writer::from_writer(io::stdout());
                let header = writer.write_record(COLUMNS);
                header.map_err(|error| broken(&error))?;
                Ok(Self::Csv(Box::new(writer)))
            }
        }
    }

    fn print(&mut self, post: &FoundPost) -> Result<(), CliError> {
        match self {
            Self::Json => output::json(post),
            Self::Text => lines(post).iter().try_for_each(|text| output::line(text)),
            Self::Csv(writer) => {
                let created = post.created_at_ms.map(shown::time).unwrap_or_default();
                let record = [
                    &*post.id.to_string(),
                    post.uri.as_deref().unwrap_or_default(),
                    post.url.as_deref().unwrap_or_default(),
                    &post.instance,
                    &post.author,
                    &created,
                    post.visibility.name(),
                    &post.text,
                ];
                writer.write_record(record).map_err(|error| broken(&error))
            }
        }
    }

    fn flush(&mut self) -> Result<(), CliError> {
        match self {
            Self::Csv(writer) => writer.flush().map_err(|error| output::broken(&error)),
            Self::Text | Self::Json => Ok(()),
        }
    }
}

fn lines(post: &FoundPost) -> [String; 2] {
    let parts = shown::PostParts {
        created_at_ms: post.created_at_ms,
        author: &post.author,
        address: post.url.as_deref().or(post.uri.as_deref()),
        text: &post.text,
    };
    parts.lines()
}

fn broken(error: &csv::Error) -> CliError {
    match error.kind() {
        csv::ErrorKind::Io(error) => output::broken(error),
        _ => CliError::failed(format!("standard output cannot be written: {error}")),
    }
}

const COLUMNS: [&str; 8] = [
    "id",
    "uri",
    "url",
    "instance",
    "author",
    "created_at",
    "visibility",
    "text",
];
const PORTION: u16 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts three portions, and goes on after so many of them.
    async fn count(portions: usize) -> (u64, bool) {
        let mut counts = [(3, Some(9)), (0, Some(7)), (4, None)].into_iter();
        let portion = async |_: Option<LocalId>| {
            let (count, next) = counts.next().unwrap();
            Ok(FoundPosts {
                count,
                posts: Vec::new(),
                next: next.map(LocalId::new),
                end: LocalId::new(9),
            })
        };
        let mut left = portions;
        let goes_on = |_| {
            left = left.saturating_sub(1);
            left > 0
        };
        let counted = PostCount::add_up(portion, goes_on).await.unwrap();
        (counted.count, counted.exact)
    }

    #[tokio::test]
    async fn a_count_that_is_ended_is_not_exact() {
        assert_eq!(count(9).await, (7, true));
        assert_eq!(count(3).await, (7, true));
        assert_eq!(count(2).await, (3, false));
        assert_eq!(count(1).await, (3, false));
    }
}
