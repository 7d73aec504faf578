-- People: `docs/social.md`. The keys begin with the account that a row belongs to.

-- An account of this server; `account` holds copies of what instances showed. `name_key` and `mail_key`
-- are folded in case. An account with `deleting` is being removed, and nobody's any more.
create table local_account (
    id {i64} primary key not null,
    name text not null,
    name_key text {collate_c} not null unique,
    nickname text not null,
    state text {collate_c} not null,
    awaits_approval {bool} not null,
    role text {collate_c} not null,
    mail text not null,
    mail_key text {collate_c} not null unique,
    mail_verified_at_ms {i64} not null,
    created_at_ms {i64} not null,
    last_login_at_ms {i64},
    passphrase_hash {blob} not null,
    salt {blob} not null,
    hash_memory_kib {i64} not null,
    hash_passes {i64} not null,
    hash_lanes {i64} not null,
    normalization {i64} not null,
    reason text not null,
    deleting {bool} not null
) {strict} {fillfactor 80};

create table profile (
    account_id {i64} primary key not null,
    bio text not null,
    avatar text,
    header text,
    fields text not null,
    locked {bool} not null,
    bot {bool} not null,
    discoverable {bool} not null
) {strict} {fillfactor 80};

-- No account yet: its mail address is not verified. `state_digest` is of the random text that was mailed.
create table pending_account (
    id {i64} primary key not null,
    name text not null,
    name_key text {collate_c} not null unique,
    mail text not null,
    mail_key text {collate_c} not null,
    passphrase_hash {blob} not null,
    salt {blob} not null,
    hash_memory_kib {i64} not null,
    hash_passes {i64} not null,
    hash_lanes {i64} not null,
    normalization {i64} not null,
    reason text not null,
    locale text not null,
    state_digest {blob} not null,
    attempts {i64} not null,
    created_at_ms {i64} not null
) {strict};
create index pending_account_mail on pending_account (mail_key);
create index pending_account_age on pending_account (created_at_ms);

-- How an account stands to another one, and that one to it. Two accounts of this server have a row each,
-- which say the same. `…_id` is the local ID that the direction's last change took.
create table relation (
    account_id {i64} not null,
    other_id {i64} not null,
    outgoing text {collate_c} not null,
    outgoing_id {i64} not null,
    incoming text {collate_c} not null,
    incoming_id {i64} not null,
    show_boosts {bool} not null,
    notify {bool} not null,
    primary key (account_id, other_id)
) {clustered};
create index relation_outgoing on relation (account_id, outgoing, outgoing_id);
create index relation_incoming on relation (account_id, incoming, incoming_id);

create table mute (
    account_id {i64} not null,
    other_id {i64} not null,
    id {i64} not null,
    notifications {bool} not null,
    until_ms {i64},
    primary key (account_id, other_id),
    unique (account_id, id)
) {clustered};
create index mute_other on mute (other_id);
