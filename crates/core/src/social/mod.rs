//! The accounts of this server, their permissions, and the relations between them.
//!
//! The two machines, [`AccountState`] and [`Relation`], have exactly the edges of the diagrams in
//! `docs/social.md`, which a test compares. All other types cannot contain an invalid value.

mod account_name;
mod account_state;
mod bidi;
mod filter_settings;
mod instance_info;
mod list_settings;
mod mail_address;
mod mark;
mod nickname;
mod notification_kind;
mod passphrase;
mod passphrase_hash;
mod pending_account;
mod profile;
mod refresh_tokens;
mod relation;
mod relation_pair;
mod role;

pub use account_name::{AccountName, AccountNameError};
pub use account_state::{AccountAction, AccountState, LogInRefused, StateChangeError};
pub use bidi::{BIDI_CONTROLS, without_bidi_controls};
pub use filter_settings::{
    FilterAction, FilterContext, FilterError, FilterKeyword, FilterSettings, MAX_FILTERS,
    MAX_KEYWORDS_PER_FILTER, MAX_POSTS_PER_FILTER,
};
pub use instance_info::{InstanceInfo, InstanceSelfDescription};
pub use list_settings::{
    ListSettings, MAX_LIST_MEMBERS, MAX_LIST_TITLE_CHARS, MAX_LISTS, RepliesPolicy, TextError,
};
pub use mail_address::{MailAddress, MailAddressError};
pub use mark::{Mark, MarkedTimeline};
pub use nickname::{Nickname, NicknameError};
pub use notification_kind::NotificationKind;
pub use passphrase::{Passphrase, PassphraseError};
pub use passphrase_hash::{HashCost, PassphraseHash};
pub use pending_account::{PendingCheck, VerificationDigest, VerificationState};
pub use profile::{Profile, ProfileError, ProfileField};
pub use refresh_tokens::{RefreshTokens, RefreshTokensError, TokenReused};
pub use relation::{Relation, RelationChangeError};
pub use relation_pair::{Direction, RelationMove, RelationPair, RelationRefused, RelationStep};
pub use role::Role;
