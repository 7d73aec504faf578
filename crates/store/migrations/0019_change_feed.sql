-- `change_usn`: the USN under which a source last reported an edit, a deletion, a departure or a return
-- of its post; null if none since the entry was made, or none since this column is there. Other USNs
-- tell of new counts only.
alter table entry add column change_usn {i64};
create index entry_changes on entry (source_id, change_usn) where change_usn is not null;

-- `allow_private`: whether the operator has allowed this source's server to be in a private network.
alter table source add column allow_private {bool} not null default false;

-- `refreshing`: whether its posts are kept fresh. A post is refreshed unless all its sources say no.
alter table source add column refreshing {bool} not null default true;
