//! What the store promises, tested on both databases.

/// Makes each of these functions a test that runs on a fresh store of each kind.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_both {
            $(
                #[test]
                fn $test() {
                    $crate::world::on_both(super::$test);
                }
            )+
        }
    };
}

mod account_profiles;
mod accounts;
mod anchors;
mod audiences;
mod broken_links;
mod change_feed;
mod control_posts;
mod copies;
mod deletions;
mod departures;
mod distribution;
mod edits;
mod fetched_accounts;
mod fetched_history;
mod find;
mod gaps;
mod history;
mod instance_info;
mod instance_removal;
mod known_instances;
mod libraries;
mod local_ids;
mod look_up_abilities;
mod members;
mod naive_search;
mod node_leases;
mod order;
mod other_askers;
mod overviews;
mod pages;
mod placements;
mod post_texts;
mod published;
mod quarantine;
mod references;
mod refresh;
mod reservations;
mod returns;
mod round_trips;
mod scoped_content;
mod search;
mod server_keys;
mod shared_instance;
mod social;
mod source_leases;
mod sources;
mod streams;
mod sync;
mod sync_sources;
mod threads;
mod timelines;
mod tokens;
mod versions;
mod world;
