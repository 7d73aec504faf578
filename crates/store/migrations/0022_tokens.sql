-- What lets programs act for people. Secrets are kept as SHA-256 alone. Keys begin with the account, whose
-- ID is in each secret too, so that these tables can be distributed by it.

-- Programs, as they registered themselves. `redirect_uris` has one on each line.
create table app (
    client_id text {collate_c} primary key not null,
    id {i64} not null,
    secret_hash {blob} not null,
    name text not null,
    website text,
    redirect_uris text not null,
    scopes text not null,
    created_at_ms {i64} not null,
    unique (id)
) {strict};

-- Codes that an app exchanges for a token, once. A used one stays until it expires, with the token that
-- was given for it, which is revoked if the code comes again.
create table authorization_code (
    account_id {i64} not null,
    hash {blob} not null,
    app_id {i64} not null,
    redirect_uri text not null,
    scopes text not null,
    challenge text,
    expires_at_ms {i64} not null,
    token_id {i64},
    primary key (account_id, hash)
) {clustered};

-- Tokens of Mastodon's API. `account_id` is 0 for those of an app alone.
create table access_token (
    account_id {i64} not null,
    hash {blob} not null,
    id {i64} not null,
    app_id {i64} not null,
    scopes text not null,
    created_at_ms {i64} not null,
    used_at_ms {i64} not null,
    primary key (account_id, hash),
    unique (account_id, id)
) {clustered};

-- Native tokens by the log-in that began them. `current_hash` is of the refresh token that may be used;
-- `previous_hash` of the one before, which may be used again for a moment, since its answer may be lost.
create table token_family (
    account_id {i64} not null,
    id {i64} not null,
    device text not null,
    current_hash {blob} not null,
    previous_hash {blob},
    created_at_ms {i64} not null,
    rotated_at_ms {i64} not null,
    ends_at_ms {i64} not null,
    primary key (account_id, id)
) {clustered};

-- Browsers that are logged in on our own pages.
create table web_session (
    account_id {i64} not null,
    hash {blob} not null,
    id {i64} not null,
    browser text not null,
    created_at_ms {i64} not null,
    ends_at_ms {i64} not null,
    primary key (account_id, hash),
    unique (account_id, id)
) {clustered};
