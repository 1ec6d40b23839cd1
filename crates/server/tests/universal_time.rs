//! `--utc` over HTTP on a host in another time zone. It is the only test of its process, because it sets the
//! time zone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod common;

use common::Roundel;
use common::http::get;
use protocol::rrdcached::command::Permissions;
use roundel_server::service::CreatePolicy;

#[test]
fn times_of_a_graph_are_local_unless_asked_otherwise() {
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var("TZ", "Asia/Tokyo") };
    let roundel = Roundel::stripes(CreatePolicy::default(), Permissions::ALL);
    let start = |option: &str| {
        let target = format!(
            "/graph?describe=true{option}&arg=--start&arg=00:00+20010909&arg=--end&arg=01:00+20010909&arg=HRULE:1%23f00"
        );
        let answer = get(&roundel, &target);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["graph_start"].as_i64().unwrap()
    };
    assert_eq!(start("&arg=--utc"), 999_993_600);
    assert_eq!(start(""), 999_993_600 - 9 * 3600);
}
