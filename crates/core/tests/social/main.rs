//! People: their names and secrets, and the machines of accounts and relations.

mod diagrams;
mod instance_info;
mod machines;
mod names;
mod passphrases;
mod pending;
mod profiles;
mod refresh_tokens;
mod relation_pairs;
