//! The throw-away cluster goes away with the process that started it, however that ends.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use driftline_db::testing::Cluster;

const CHILD: &str = "DRIFTLINE_TEST_CLUSTER_CHILD";

fn address(url: &str) -> String {
    let (_, rest) = url.split_once('@').expect("a user");
    rest.split('/').next().expect("an address").to_owned()
}

fn listens(url: &str) -> bool {
    TcpStream::connect(address(url)).is_ok()
}

#[test]
fn a_dropped_cluster_is_stopped() {
    let cluster = Cluster::start().expect("a cluster");
    let url = cluster.url().to_owned();
    assert!(listens(&url));
    drop(cluster);
    assert!(!listens(&url));
}

#[test]
fn a_killed_process_leaves_no_cluster() {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["--exact", "child_that_is_killed", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let url = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("cluster at ")?.1.to_owned()))
        .expect("the child's cluster");
    assert!(listens(&url));
    child.kill().expect("a kill");
    child.wait().expect("an end");
    let deadline = Instant::now() + Duration::from_secs(30);
    while listens(&url) {
        assert!(Instant::now() < deadline, "the cluster goes on");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn child_that_is_killed() {
    if std::env::var_os(CHILD).is_some() {
        let cluster = Cluster::start().expect("a cluster");
        // Past the capturing of `println!`.
        writeln!(io::stdout(), "cluster at {}", cluster.url()).expect("a parent");
        loop {
            thread::park();
        }
    }
}
