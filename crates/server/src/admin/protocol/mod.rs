//! The requests of the admin commands and their replies, as the command line, the local socket and
//! tests see them. Times are Unix ms.

mod account_home;
mod account_tokens;
mod accounts;
mod credentials;
mod feed;
mod find;
mod index;
mod instances;
mod nodes;
mod posts;
mod refresh;
mod sources;
mod space;
mod status;

use driftline_runtime::CommandError;
use serde::{Serialize, de::DeserializeOwned};

pub use account_home::*;
pub use account_tokens::*;
pub use accounts::*;
pub use credentials::*;
pub use feed::*;
pub use find::*;
pub use index::*;
pub use instances::*;
pub use nodes::*;
pub use posts::*;
pub use refresh::*;
pub use sources::*;
pub use space::*;
pub use status::*;

use super::Host;

/// A request to execute a command.
pub trait Request: Serialize + DeserializeOwned + Send + Sync {
    /// The command's name on the socket.
    const NAME: &'static str;
    /// The result, which is what `--json` prints.
    type Reply: Serialize + DeserializeOwned + Send;

    /// Executes it.
    ///
    /// # Errors
    /// [`CommandError`]: nothing was changed.
    fn execute(self, host: &Host)
    -> impl Future<Output = Result<Self::Reply, CommandError>> + Send;
}
