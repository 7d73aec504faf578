-- What an account is notified of: `docs/social.md`. `id` is a local ID, of when it happened; pages go by it.
create table notification (
    account_id {i64} not null,
    id {i64} not null,
    kind text {collate_c} not null,
    from_id {i64} not null,
    post_id {i64},
    created_at_ms {i64} not null,
    primary key (account_id, id)
) {clustered};
create index notification_from on notification (account_id, from_id);

-- Sources whose posts an account has in its home timeline.
create table home_source (
    account_id {i64} not null,
    source_id {i64} not null,
    primary key (account_id, source_id)
) {clustered};

-- People look accounts up by the beginnings of their names.
create index account_acct_key on account (acct_key);
