//! Accounts that tests create.

use driftline_core::social::{AccountName, HashCost, MailAddress, PassphraseHash, Role};

use crate::social::local_account::NewAccount;

/// A member whose mail address is `NAME@mail.example`, and who need not be approved.
///
/// # Panics
/// If the name is invalid.
pub fn new_account(name: &str) -> NewAccount {
    NewAccount {
        name: AccountName::new(name).expect("a name"),
        mail: MailAddress::new(format!("{name}@mail.example")).expect("an address"),
        passphrase: passphrase_hash(1),
        role: Role::Member,
        awaits_approval: false,
        reason: String::new(),
    }
}

/// A hash that repeats a byte. No passphrase is known that has it.
pub fn passphrase_hash(byte: u8) -> PassphraseHash {
    PassphraseHash {
        hash: vec![byte; 32],
        salt: [byte; 16],
        cost: HashCost::DEFAULT,
        normalization: 1,
    }
}
