//! People: their names and secrets, and the machines of accounts and relations.

mod diagrams;
mod machines;
mod names;
mod passphrases;
mod pending;
mod profiles;
mod relation_pairs;
