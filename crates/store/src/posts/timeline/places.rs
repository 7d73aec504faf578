//! The places of a timeline, in streams.

use driftline_core::post::Visibility;
use driftline_db::{DbError, Tx};
use driftline_index::{PlaceReader, PlaceWindow};

use super::{authors, place::Place, window::Window};
use crate::{
    id_types::{AccountId, SourceKey},
    viewer::ReadableSource,
};

/// A run of places in their order.
pub(super) enum PlaceStream<'a> {
    /// The world's public timeline.
    World,
    /// A source's entries up to this visibility.
    Source(SourceKey, Visibility),
    /// The posts of authors in these sources.
    Authors(&'a [AccountId], &'a [ReadableSource]),
    /// The places that the search index finds.
    Index(PlaceReader<'a>),
    /// These places, in any order.
    Listed(&'a [Place]),
}

impl PlaceStream<'_> {
    /// The next `count` places of a window.
    pub(super) fn read(
        &self,
        tx: &mut Tx<'_>,
        window: Window,
        count: i64,
    ) -> Result<Vec<Place>, DbError> {
        let Window { above, below, .. } = window;
        let order = window.order();
        match self {
            PlaceStream::World => tx.query(
                &format!(
                    "select coalesce(public_id, id) as place, id as post_id, instance_id, returns
                     from post
                     where (listed or deleted_at_ms is not null and in_public and visibility = 'public')
                         and coalesce(public_id, id) > $1 and coalesce(public_id, id) < $2
                     order by coalesce(public_id, id) {order} limit $3"
                ),
                &[&above, &below, &count],
                Place::from_row,
            ),
            PlaceStream::Source(key, shows) => tx.query(
                &format!(
                    "select id as place, post_id, instance_id,
                         case when gone then -1 else returns end as returns
                     from entry
                     where source_id = $4 and instance_id = $5 and visibility <= $6
                         and id > $1 and id < $2
                     order by id {order} limit $3"
                ),
                &[&above, &below, &count, &key.id(), &key.instance_id(), &shows.narrowness()],
                Place::from_row,
            ),
            PlaceStream::Authors(authors, sources) => {
                authors::read(tx, authors, sources, window, count)
            }
            PlaceStream::Index(reader) => {
                let window = PlaceWindow {
                    above,
                    below,
                    is_upward: window.is_upward,
                };
                let found = reader.read(tx, window, count)?;
                let places = found.into_iter().map(|found| Place {
                    id: found.place,
                    post_id: found.post_id,
                    instance_id: found.instance_id,
                    returns: 0,
                });
                Ok(places.collect())
            }
            PlaceStream::Listed(places) => {
                let within = places.iter().copied();
                let mut within: Vec<Place> = within
                    .filter(|place| above < place.id && place.id < below)
                    .collect();
                window.sort(&mut within, |place| place.id);
                within.truncate(count as usize);
                Ok(within)
            }
        }
    }
}
