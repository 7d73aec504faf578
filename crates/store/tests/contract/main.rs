//! What the store promises, tested on both databases.

mod accounts;
mod anchors;
mod deletions;
mod departures;
mod edits;
mod find;
mod fixtures;
mod gaps;
mod history;
mod libraries;
mod local_ids;
mod look_up_abilities;
mod node_leases;
mod order;
mod pages;
mod refresh;
mod returns;
mod source_leases;
mod sources;
mod streams;
mod timelines;
mod world;
