-- What instances say of themselves, and accounts that were fetched without a post.
--
-- `asks_at_ms`: when the instance is to be asked again; whoever moves it on asks. `fetched_at_ms` is null until an
-- answer came. `extensions` is a list of texts, JSON.
create table instance_info (
    instance_id {i64} primary key not null,
    name text not null default '',
    description text not null default '',
    version text not null default '',
    software_name text not null default '',
    extensions text not null default '[]',
    maintainer_name text not null default '',
    fetched_at_ms {i64},
    asks_at_ms {i64} not null
) {strict};

-- Accounts that were found by their names, for whom a hidden source of theirs is: `acct_id` is known to them as if the
-- source had a post of it.
create table fetched_account (
    source_id {i64} not null,
    acct_id {i64} not null,
    instance_id {i64} not null,
    primary key ({key source_id, acct_id + instance_id})
) {clustered};
create index fetched_account_acct on fetched_account (acct_id);
