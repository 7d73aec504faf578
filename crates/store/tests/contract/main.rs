//! What the store promises, tested on both databases.

mod accounts;
mod anchors;
mod deletions;
mod edits;
mod gaps;
mod leases;
mod order;
mod pages;

mod sources;
mod timelines;
mod world;
