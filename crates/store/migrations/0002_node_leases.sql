-- `record` is what a `driftline_id::window::Record` displays as. It holds the window, the node
-- and the fence too; the columns repeat what statements compare.
create table node_lease (
    layout text {collate_c} not null,
    node {i64} not null,
    record text not null,
    lease_holder text,
    lease_fence {i64} not null,
    lease_until_ms {i64} not null,
    primary key (layout, node)
) {strict} {fillfactor 50};
