-- The entries of all sources in the order of their places, in which those of many authors are found.
create index entry_by_place on entry (coalesce(place_id, id));
