use std::net::{TcpListener, TcpStream};
use std::thread;

use super::*;

const SECRET: &[u8] = b"a secret of thirty-two bytes....";

fn member(node: &str) -> Membership {
    Membership::new("test", node, SECRET, None).unwrap()
}

/// Two ends of a connection.
fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let caller = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (caller, listener.accept().unwrap().0)
}

/// What a caller, in a version, and the node that it calls make of each other.
fn meet(
    caller: Membership,
    version: u8,
    called: Membership,
) -> (io::Result<Called>, io::Result<(String, u8)>) {
    let (near, far) = connected();
    let answering = thread::spawn(move || answer(&mut Stream::new(far, None).unwrap(), &called));
    let made = call(&mut Stream::new(near, None).unwrap(), &caller, version);
    (made, answering.join().unwrap())
}

/// The calling side as programs of version 2 have it.
fn call_of_version_2(mut stream: TcpStream, membership: &Membership) -> Result<(), String> {
    let hello = [&b"RNDP\x02"[..], &membership.names(), &[7; 32]].concat();
    stream.write_all(&hello).unwrap();
    let until = Until(Instant::now() + HANDSHAKE_MAX);
    verdict(&until, &mut stream).unwrap()?;
    let theirs: [u8; 32] = until.read(&mut stream).unwrap();
    let shared = [&hello, &theirs[..]].concat();
    stream.write_all(membership.proof("caller", &shared).as_ref()).unwrap();
    verdict(&until, &mut stream).unwrap()?;
    let shown: [u8; 32] = until.read(&mut stream).unwrap();
    assert!(membership.check("called", &shared, &shown));
    Ok(())
}

/// The side that is called, as programs of version 2 have it.
fn answer_of_version_2(mut stream: TcpStream, membership: &Membership) -> Result<String, String> {
    let until = Until(Instant::now() + HANDSHAKE_MAX);
    let opening: [u8; 5] = until.read(&mut stream).unwrap();
    assert_eq!(&opening[..4], b"RNDP");
    if opening[4] != 2 {
        let why = format!("it has version {} of the protocol between nodes, the others 2", opening[4]);
        return Err(refuse(&mut stream, &why).to_string());
    }
    let cluster = until.counted(&mut stream).unwrap();
    let node = until.counted(&mut stream).unwrap();
    let theirs: [u8; 32] = until.read(&mut stream).unwrap();
    assert_eq!(cluster, membership.cluster.as_bytes());
    stream.write_all(&[&[GOES_ON][..], &[9; 32]].concat()).unwrap();
    let node = String::from_utf8(node).unwrap();
    let caller = Membership { node, ..membership.clone() };
    let shared = [&opening[..], &caller.names(), &theirs, &[9; 32]].concat();
    let shown: [u8; 32] = until.read(&mut stream).unwrap();
    if !membership.check("caller", &shared, &shown) {
        return Err(refuse(&mut stream, OTHER_SECRET).to_string());
    }
    stream.write_all(&[&[GOES_ON], membership.proof("called", &shared).as_ref()].concat()).unwrap();
    Ok(caller.node)
}

#[test]
fn two_nodes_speak_the_newest_version_that_both_know() {
    let (made, answered) = meet(member("a"), VERSION_MAX, member("b"));
    assert!(matches!(made, Ok(Called::Speaks(VERSION_MAX))), "{made:?}");
    assert_eq!(answered.unwrap(), ("a".to_owned(), VERSION_MAX));
    let (made, answered) = meet(member("a").speaking(2), 2, member("b"));
    assert!(matches!(made, Ok(Called::Speaks(2))), "{made:?}");
    assert_eq!(answered.unwrap(), ("a".to_owned(), 2));
    let (made, answered) = meet(member("a"), VERSION_MAX, member("b").speaking(2));
    assert!(matches!(made, Ok(Called::Older(2))), "{made:?}");
    assert!(answered.is_err());
}

#[test]
fn programs_of_version_2_call_and_are_called() {
    let (near, far) = connected();
    let old = thread::spawn(move || call_of_version_2(near, &member("old")));
    let answered = answer(&mut Stream::new(far, None).unwrap(), &member("new"));
    assert_eq!(answered.unwrap(), ("old".to_owned(), 2));
    old.join().unwrap().unwrap();

    let (near, far) = connected();
    let old = thread::spawn(move || answer_of_version_2(far, &member("old")));
    let made = call(&mut Stream::new(near, None).unwrap(), &member("new"), VERSION_MAX);
    let Ok(Called::Older(version)) = made else { panic!("{made:?}") };
    assert!(old.join().unwrap().is_err());
    let (near, far) = connected();
    let old = thread::spawn(move || answer_of_version_2(far, &member("old")));
    let made = call(&mut Stream::new(near, None).unwrap(), &member("new"), version);
    assert!(matches!(made, Ok(Called::Speaks(2))), "{made:?}");
    assert_eq!(old.join().unwrap().unwrap(), "new");
}

#[test]
fn a_caller_that_was_made_to_speak_an_older_version_than_both_could_is_refused() {
    let (made, answered) = meet(member("a"), 2, member("b"));
    let said = changed_between(VERSION_MAX);
    assert_eq!(made.unwrap_err().to_string(), format!("it refuses this node: {said}"));
    assert_eq!(answered.unwrap_err().to_string(), said);
}

/// What becomes of a call in version 2 when something between the nodes changes the byte at a place of what the caller sends.
fn changed_on_its_way(at: usize, to: u8) -> io::Result<Called> {
    let ((near, mut taken), (given, far)) = (connected(), connected());
    let answering = thread::spawn(move || answer(&mut Stream::new(far, None).unwrap(), &member("b")));
    let mut back = (given.try_clone().unwrap(), taken.try_clone().unwrap());
    let backwards = thread::spawn(move || io::copy(&mut back.0, &mut back.1));
    let forwards = thread::spawn(move || {
        let (mut bytes, mut given) = (vec![0; 5 + 5 + 2 + 32], given);
        taken.read_exact(&mut bytes).unwrap();
        bytes[at] = to;
        given.write_all(&bytes).unwrap();
        let _ = io::copy(&mut taken, &mut given);
    });
    let mut stream = Stream::new(near, None).unwrap();
    let made = call(&mut stream, &member("a"), 2);
    let _ = stream.closer.shutdown(std::net::Shutdown::Both);
    answering.join().unwrap().unwrap_err();
    forwards.join().unwrap();
    let _ = backwards.join().unwrap();
    made
}

#[test]
fn what_the_caller_could_speak_cannot_be_taken_from_what_it_says() {
    let last = 5 + 5 + 2 + 32 - 1;
    for (at, to) in [(last, 2), (last - 1, b'!'), (11, b'x')] {
        let error = changed_on_its_way(at, to).unwrap_err().to_string();
        assert!(error.contains(OTHER_SECRET), "{at}: {error}");
    }
}

/// What a node answers to the first bytes of a caller.
fn first_answer(version: u8) -> Vec<u8> {
    let (mut near, far) = connected();
    let answering = thread::spawn(move || answer(&mut Stream::new(far, None).unwrap(), &member("b")));
    near.write_all(&[b'R', b'N', b'D', b'P', version]).unwrap();
    near.shutdown(std::net::Shutdown::Write).unwrap();
    let mut said = Vec::new();
    near.read_to_end(&mut said).unwrap();
    answering.join().unwrap().unwrap_err();
    said
}

#[test]
fn newer_callers_are_answered_in_the_newest_version_and_too_old_ones_are_told_what_to_do() {
    assert_eq!(first_answer(200), [GOES_ON, VERSION_MAX]);
    let said = first_answer(1);
    let text = "it has version 1 of the protocol between nodes, the others 2 to 3: upgrade it";
    assert_eq!((said[0], String::from_utf8_lossy(&said[2..]).as_ref()), (REFUSED, text));
}

#[test]
fn only_versions_that_this_program_knows_are_gone_back_to() {
    let said = |version: u8| older_version(5, &other_version(5, version));
    assert_eq!((said(1), said(2), said(4), said(5), said(6)), (None, Some(2), Some(4), None, None));
    assert_eq!(older_version(3, OTHER_SECRET), None);
    assert_eq!(older_version(3, &other_version(4, 2)), None);
}
