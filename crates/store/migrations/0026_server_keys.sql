-- What the processes of a store agree on about their keys, by the store's name, which a restored store has not.
--
-- `fingerprint` is what the key of sealed texts is recognised by; `token_keys` are those of native tokens,
-- sealed with that key.
create table server_keys (
    store_nonce text {collate_c} primary key,
    fingerprint text not null,
    token_keys text not null
) {strict};
