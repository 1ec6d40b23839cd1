//! How old what a node answers may be, as its answers by HTTP say.

use std::time::Duration;

use testkit::{free_port, http_get, wait_until};

use super::cluster::{are_well, node};
use super::server::CREATE;
use super::spool::Outage;

/// Queries of one RRD, of all by PromQL, of a picture, and of all names.
const QUERIES: [&str; 4] = [
    "/api/v1/fetch/host-1/value.rrd?start=1000000000&end=1000000010",
    "/api/v1/query?query=rrd_v&time=1000000001",
    PICTURE,
    "/api/v1/list?recursive=true",
];
const PICTURE: &str =
    "/graph?arg=-s1000000000&arg=-e1000000010&arg=-aSVG&arg=DEF:a=host-2/value.rrd:v:LAST&arg=LINE:a%23f00";

/// The header of an answer of that name.
fn header(http: u16, query: &str, name: &str) -> Option<String> {
    let answer = http_get(http, query).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{query}: {answer}");
    let line = answer.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches(':').trim().to_owned())
}

/// The age of an answer, if it is known.
fn age(http: u16, query: &str) -> Option<f64> {
    header(http, query, "x-roundel-age").unwrap().parse().ok()
}

/// Waits until the leaders answer, and prints the ages of all answers.
fn wait_for_leaders(http: u16) {
    for query in QUERIES {
        wait_until("an answer of the leaders", || {
            let age = age(http, query);
            println!("{query}: {age:?}");
            age == Some(0.0)
        });
    }
}

#[test]
fn answers_say_how_old_they_may_be_while_the_leader_is_lost() {
    let parent = tempfile::tempdir().unwrap();
    let (mut a, mut b) = (node(parent.path(), "a"), node(parent.path(), "b"));
    let http = free_port();
    b.more(&format!("[http]\nlisten = ['127.0.0.1:{http}']\n"));
    a.start();
    b.start();
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    for number in 0..24 {
        let name = format!("host-{number}/value.rrd");
        assert!(b.say(&format!("CREATE {name} {CREATE}")).starts_with("0 "));
        assert!(b.say(&format!("UPDATE {name} 1000000001:{number}")).starts_with("0 "));
    }
    wait_for_leaders(http);
    assert!(header(http, PICTURE, "cache-control").unwrap().contains("max-age"));
    // Nothing that any node says arrives, and what the other one leads is answered by this one.
    let outage = Outage::begin(&parent.path().join("log"));
    a.signal(testkit::Signal::STOP);
    let old = |query: &str| {
        wait_until("an old answer", || age(http, query).is_some_and(|age| age > 3.0));
        age(http, query).unwrap()
    };
    let first: Vec<f64> = QUERIES.iter().map(|query| old(query)).collect();
    std::thread::sleep(Duration::from_millis(20));
    for (query, first) in QUERIES.iter().zip(first) {
        assert!(age(http, query).unwrap() > first, "{query} does not become older");
    }
    assert_eq!(header(http, PICTURE, "cache-control").unwrap(), "no-cache");
    let metrics = http_get(http, "/metrics").unwrap();
    let ages = metrics.lines().filter(|line| line.starts_with("roundel_cluster_age_seconds{"));
    let ages: Vec<f64> = ages.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
    assert!(ages.len() == 8 && ages.iter().all(|age| *age > 3.0), "{ages:?}");
    drop(outage);
    a.signal(testkit::Signal::CONT);
    wait_for_leaders(http);
}
