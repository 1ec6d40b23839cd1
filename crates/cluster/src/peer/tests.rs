use std::net::TcpListener;
use std::sync::mpsc;

use store::engine::Engine;

use super::*;
use crate::routes::{Route, Routes};
use crate::serve::Listener;
use crate::wire::{Answer, Ask, Request, VERSION_MAX};

/// A node without partitions.
struct Nothing;

impl Routes for Nothing {
    fn partition_count(&self) -> u32 {
        1
    }

    fn local(&self, _: u32) -> Option<(Arc<dyn Engine>, bool)> {
        None
    }

    fn lead(&self, _: u32) -> Option<(Arc<dyn Engine>, u32)> {
        None
    }

    fn route(&self, _: u32) -> Route {
        Route::default()
    }
}

fn member(node: &str) -> Membership {
    Membership::new("test", node, b"a secret of thirty-two bytes....", None).unwrap()
}

fn ask(peer: &Peer, letter: Letter) -> Result<Told, NoAnswer> {
    let (sender, receiver) = mpsc::channel();
    let until = Instant::now() + Duration::from_secs(60);
    peer.ask(0, letter, until, Box::new(move |heard| sender.send(heard).unwrap()));
    receiver.recv().unwrap().map(|received| received.told().unwrap())
}

/// Asks a node that speaks no version after one; first before there is a connection.
fn asked_twice(newest: u8, letter: &Letter) -> [Result<Told, NoAnswer>; 2] {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = Listener::start(socket, member("b").speaking(newest), Arc::new(Nothing)).unwrap();
    let node = NodeAddress { name: "b".into(), address: listener.address().to_string() };
    let peer = Peer::new(&node, &member("a"), 1 << 20).unwrap();
    [ask(&peer, letter.clone()), ask(&peer, letter.clone())]
}

#[test]
fn a_node_of_an_older_version_is_asked_what_it_knows_and_nothing_else() {
    let request = Request::Delete(store::name::RrdName::new(b"a").unwrap());
    let letter = Ask { partition: 0, leader_only: true, round: 0, request }.letter();
    for newest in [2, VERSION_MAX] {
        for told in asked_twice(newest, &letter) {
            assert!(matches!(told, Ok(Told::NotLeader(None))), "{told:?}");
        }
    }
    let newer = Letter { since: 3, ..letter };
    for told in asked_twice(2, &newer) {
        assert_eq!(told.unwrap_err(), NoAnswer::Older(2));
    }
    for told in asked_twice(3, &newer) {
        assert!(matches!(told, Ok(Told::NotLeader(None))), "{told:?}");
    }
    assert!(NoAnswer::older(2).ends_with("upgrade it"));
    let age = Received { version: 3, bytes: Told::Answer(Answer::Done, Some(Duration::ZERO)).encode(3) };
    assert!(matches!(age.told(), Ok(Told::Answer(Answer::Done, Some(Duration::ZERO)))));
}
