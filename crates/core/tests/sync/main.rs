//! The replica's machine: its conformance vectors, its sessions, and replicas that converge with a model of the server
//! whatever the network, the server and the devices do.

#![allow(clippy::print_stderr)]

mod cluster;
mod convergence;
mod exhaustive;
mod ledger;
mod model_replica;
mod model_server;
mod sessions;
mod vector;
mod vectors;
mod world;
