-- `streamed`: only a stream has shown the post at this place so far, no page.
alter table entry add column streamed {bool} not null default false;
