//! `replica`: an offline copy of an account's library and of sources on this device.

mod bookmark;
mod conflicts;
mod draft;
mod init;
mod list;
mod listener;
mod note;
mod pace;
mod read;
mod round;
mod show;
mod status;
mod subscribe;
mod timeline;
mod verify;
mod watch;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use driftline_replica::Direction;

pub use self::round::random;
use crate::{error::CliError, options::global_options::Global};

/// Works with an offline copy of an account's library: bookmarks, favourites, lists, read markers, filters, notes on posts and
/// accounts, drafts, follows, blocks, mutes and the own profile; and of the posts of sources.
///
/// Edits are stored here at once, without a network, and sent with the next `sync`. `docs/replica.md` is the guide. A replica is
/// no store: --read-only, --as, --database-url and --database-pool are refused.
#[derive(Debug, Args)]
pub struct Replica {
    /// The folder of the replica [default: replica in the folder of --data, or in the platform's data folder].
    #[arg(long = "replica", global = true, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    #[command(subcommand)]
    command: ReplicaCommand,
}

/// The commands of a replica.
#[derive(Debug, Subcommand)]
enum ReplicaCommand {
    /// Make a replica, or give it another token of the same account.
    Init(init::Init),
    #[command(flatten)]
    Opened(OpenedCommand),
    /// Sync again and again, until it is ended.
    Watch(watch::Watch),
}

/// The commands on a replica that is there.
#[derive(Debug, Subcommand)]
enum OpenedCommand {
    /// Subscribe to sources, whose posts are then copied, too.
    Subscribe(subscribe::Subscribe),
    /// End the subscription of a source.
    Unsubscribe(subscribe::Unsubscribe),
    /// Show the posts of the subscribed sources.
    Timeline(timeline::Timeline),
    /// Find posts of the subscribed sources and of bookmarks by a predicate.
    Find(timeline::Find),
    /// Fetch the changes of the account's library and of the subscribed sources.
    Pull(round::Round),
    /// Send the changes of this device.
    ///
    /// A pull comes before. Changes that come to the server meanwhile are left to the next pull.
    Push(round::Round),
    /// Fetch changes, and send those of this device.
    ///
    /// It may be ended and started again at any moment: it goes on where it stopped. If it would remove most of the replica,
    /// it asks before.
    Sync(round::Round),
    /// Compare the replica with the server's libraries.
    Verify(verify::Verify),
    /// Show the state of the replica.
    ///
    /// Its objects by kind, the subscriptions, changes that were not sent yet, conflicts, the last sync.
    Status,
    /// List the conflicts, or resolve one.
    Conflicts(conflicts::Conflicts),
    /// Bookmark a post, or remove its bookmark.
    Bookmark(bookmark::Bookmark),
    /// Write, show or remove the note on a post.
    Note(note::Note),
    /// List the drafts; write, change or remove one.
    Draft(draft::Draft),
    /// Set the read marker of a timeline.
    Read(read::Read),
    /// Show the lists with their accounts.
    List,
    /// Show the objects of the replica.
    Show(show::Show),
}

impl Replica {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, global: &Global) -> Result<(), CliError> {
        refuse_options_of_stores(global)?;
        let json = global.json;
        let folder = match (self.folder, &global.data) {
            (Some(folder), _) => folder,
            (None, Some(data)) => data.join("replica"),
            (None, None) => default_folder()?,
        };
        let folder = folder.as_path();
        match self.command {
            ReplicaCommand::Init(init) => init.run(folder, json).await,
            ReplicaCommand::Watch(watch) => watch.run(folder, json).await,
            ReplicaCommand::Opened(command) => {
                let replica = driftline_replica::Replica::open(folder).await?;
                let done = Box::pin(command.run(&replica, json)).await;
                replica.close().await;
                done
            }
        }
    }
}

impl OpenedCommand {
    async fn run(self, replica: &driftline_replica::Replica, json: bool) -> Result<(), CliError> {
        match self {
            Self::Subscribe(subscribe) => subscribe.run(replica, json).await,
            Self::Unsubscribe(unsubscribe) => unsubscribe.run(replica, json).await,
            Self::Timeline(timeline) => timeline.run(replica, json).await,
            Self::Find(find) => find.run(replica, json).await,
            Self::Pull(pull) => pull.run(replica, Direction::Pull, json).await,
            Self::Push(push) => push.run(replica, Direction::Push, json).await,
            Self::Sync(sync) => sync.run(replica, Direction::Both, json).await,
            Self::Verify(verify) => verify.run(replica, json).await,
            Self::Status => status::show(replica, json).await,
            Self::Conflicts(conflicts) => conflicts.run(replica, json).await,
            Self::Bookmark(bookmark) => bookmark.run(replica, json).await,
            Self::Note(note) => note.run(replica, json).await,
            Self::Draft(draft) => draft.run(replica, json).await,
            Self::Read(read) => read.run(replica, json).await,
            Self::List => list::show(replica, json).await,
            Self::Show(show) => show.run(replica, json).await,
        }
    }
}

/// Refuses what has no meaning without a store.
fn refuse_options_of_stores(global: &Global) -> Result<(), CliError> {
    let given = [
        ("--read-only", global.read_only),
        ("--as", global.as_account.is_some()),
        ("--database-url", global.database_url.is_some()),
        ("--database-pool", global.database_pool.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(CliError::usage(format!(
            "{option} has no meaning for a replica: leave it out"
        ))),
        None => Ok(()),
    }
}

fn default_folder() -> Result<PathBuf, CliError> {
    let folders = directories::ProjectDirs::from("", "", "driftline");
    let folder = folders.map(|folders| folders.data_dir().join("replica"));
    folder.ok_or_else(|| {
        CliError::usage("this system has no folder for data; name one with --replica")
    })
}
