-- What people keep: `docs/library.md`. Keys begin with the account that a row belongs to.

-- Each object of an account's library, those that were removed included: whoever has a copy has to learn of
-- it. `first_usn` is of its creation, `usn` of its last change.
create table library_object (
    account_id {i64} not null,
    id {i64} not null,
    kind text {collate_c} not null,
    first_usn {i64} not null,
    usn {i64} not null,
    removed {bool} not null,
    primary key (account_id, id)
) {clustered};
create unique index library_object_usn on library_object (account_id, usn);

-- Posts that somebody bookmarked or favourited (`mark`).
create table marked_post (
    account_id {i64} not null,
    post_id {i64} not null,
    mark text {collate_c} not null,
    id {i64} not null,
    instance_id {i64} not null,
    primary key (account_id, post_id, mark)
) {clustered};
create unique index marked_post_page on marked_post (account_id, mark, id);

create table list (
    account_id {i64} not null,
    id {i64} not null,
    title text not null,
    replies_policy text {collate_c} not null,
    exclusive {bool} not null,
    primary key (account_id, id)
) {clustered};

-- `member_id` is an account of this server or of another one, as in `relation`.
create table list_member (
    account_id {i64} not null,
    list_id {i64} not null,
    member_id {i64} not null,
    id {i64} not null,
    primary key (account_id, list_id, member_id)
) {clustered};
create index list_member_of on list_member (member_id, account_id);

-- How far somebody has read a timeline, as apps say. `version` counts the changes.
create table marker (
    account_id {i64} not null,
    timeline text {collate_c} not null,
    id {i64} not null,
    last_read_id {i64} not null,
    version {i64} not null,
    updated_at_ms {i64} not null,
    primary key (account_id, timeline)
) {clustered};

-- `contexts` has names with spaces between them. Keywords and posts are parts of their filter.
create table filter (
    account_id {i64} not null,
    id {i64} not null,
    title text not null,
    contexts text not null,
    action text {collate_c} not null,
    expires_at_ms {i64},
    primary key (account_id, id)
) {clustered};

create table filter_keyword (
    account_id {i64} not null,
    id {i64} not null,
    filter_id {i64} not null,
    keyword text not null,
    whole_word {bool} not null,
    primary key (account_id, id)
) {clustered};

create table filter_post (
    account_id {i64} not null,
    id {i64} not null,
    filter_id {i64} not null,
    instance_id {i64} not null,
    post_id {i64} not null,
    primary key (account_id, id),
    unique (account_id, filter_id, post_id)
) {clustered};
