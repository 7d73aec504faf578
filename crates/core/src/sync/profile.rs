use serde::{Deserialize, Serialize};

use crate::social::{Nickname, Profile, ProfileField};

/// The value of the account's own profile: its public texts, and its settings. Pictures are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileValue {
    /// The nickname; may be empty.
    pub display_name: String,
    /// The bio, as it was written.
    pub note: String,
    /// The rows of the profile's table.
    pub fields: Vec<ProfileField>,
    /// True if new followers must be accepted.
    pub locked: bool,
    /// True if the account is automated.
    pub bot: bool,
    /// True if the account may be listed in directories.
    pub discoverable: bool,
}

impl ProfileValue {
    /// The value of an account with this nickname and profile.
    pub fn new(nickname: &Nickname, profile: &Profile) -> Self {
        Self {
            display_name: nickname.as_str().to_owned(),
            note: profile.bio.clone(),
            fields: profile.fields.clone(),
            locked: profile.locked,
            bot: profile.bot,
            discoverable: profile.discoverable,
        }
    }

    /// The nickname and the profile, with the pictures of `known`.
    ///
    /// # Errors
    /// The reason, if a text exceeds a limit or there are too many rows.
    pub fn parts(self, known: Profile) -> Result<(Nickname, Profile), String> {
        let nickname = Nickname::new(self.display_name).map_err(|error| error.to_string())?;
        let profile = Profile {
            bio: self.note,
            fields: self.fields,
            locked: self.locked,
            bot: self.bot,
            discoverable: self.discoverable,
            ..known
        };
        profile.check().map_err(|error| error.to_string())?;
        Ok((nickname, profile))
    }

    /// Removes empty rows, and checks the limits.
    pub(super) fn check(&mut self) -> Result<(), String> {
        let is_empty = |field: &ProfileField| field.name.is_empty() && field.value.is_empty();
        self.fields.retain(|field| !is_empty(field));
        self.clone().parts(Profile::default()).map(drop)
    }
}
