-- Posts are found by their addresses and names. These come from upstreams, of any length, and
-- PostgreSQL refuses long keys, so their beginnings are the keys.
create index post_url on post (substr(url, 1, 500));
create index post_uri on post (substr(uri, 1, 500));
