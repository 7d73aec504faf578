//! Where an ID service gets its node, and the other services that it knows, as they are typed.

use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::parse;

/// A node as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeText {
    /// Its number.
    Number(u64),
    /// The values of its fields.
    Fields(Vec<(String, u64)>),
}

impl FromStr for NodeText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let field = |part: &str| {
            let (name, value) = part.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().parse().ok()?))
        };
        let fields: Option<_> = text.split(',').map(field).collect();
        fields.map(Self::Fields).ok_or_else(|| {
            format!(
                "invalid node {text:?}: expected a number, or fields such as datacenter=1,worker=5"
            )
        })
    }
}

impl<'de> Deserialize<'de> for NodeText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parse::written(from, Self::from_str)
    }
}

/// Where nodes are leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseStore {
    /// In the data folder.
    File,
    /// In the store.
    Store,
}

/// [`peer`]s in a configuration.
///
/// # Errors
/// As for one of them.
pub fn peers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let peers: Result<_, String> = texts.iter().map(|text| peer(text)).collect();
    peers.map_err(D::Error::custom)
}

/// Where another service listens, as `HOST:PORT`.
///
/// # Errors
/// A message that shows the form.
pub fn peer(text: &str) -> Result<String, String> {
    let port = |(host, port): (&str, &str)| !host.is_empty() && port.parse::<u16>().is_ok();
    if text.rsplit_once(':').is_some_and(port) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "invalid peer address {text:?}: expected HOST:PORT, such as ids2.example:7609"
    ))
}
