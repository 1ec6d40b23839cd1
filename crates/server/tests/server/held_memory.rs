//! What each connection holds is counted as memory for clients while it does, and no longer: on the budget itself, where the test of
//! the process's memory (`crates/roundel/tests/memory.rs`) would not notice one that is missing.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::common::Roundel;
use protocol::rrdcached::whole;
use roundel_server::limits::{FRAMES_THREAD_BYTES, READ_BYTES};
use roundel_server::settings::LimitSettings;
use testkit::{Client, wait_until};

const DEFINITION: &str = "-b 1000000000 -s 1 DS:x:GAUGE:20:U:U";

fn limited(memory: u64) -> Roundel {
    Roundel::stripes_with(LimitSettings { memory, ..LimitSettings::default() })
}

/// Sends `text` and reads nothing.
fn unread(roundel: &Roundel, text: &str) -> UnixStream {
    let mut stream = UnixStream::connect(roundel.socket()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

fn used(roundel: &Roundel) -> u64 {
    roundel.service().memory.used()
}

#[test]
fn read_buffers_are_freed_when_clients_are_silent() {
    let roundel = limited(1 << 30);
    let buffers = &roundel.service().buffers;
    // The client uses one of them at most.
    (0..2).for_each(|_| buffers.give(Vec::with_capacity(READ_BYTES)));
    assert_eq!(Client::open(&roundel.socket()).say("PING"), "0 PONG\n");
    wait_until("all buffers to be freed", || buffers.unused() == 0);
}

#[test]
fn an_unread_dump_holds_the_rows_that_it_has_read() {
    let roundel = limited(1 << 30);
    let mut client = Client::open(&roundel.socket());
    // All rows of the first are read at once, those of the second in parts of 128 Ki values.
    for (name, rows, held) in [("small", 100_000, 800_000), ("large", 300_000, 1 << 20)] {
        let create = format!("CREATE {name}.rrd {DEFINITION} RRA:AVERAGE:0.5:1:{rows}");
        assert_eq!(client.say(create), "0 RRD created OK\n");
        let stream = unread(&roundel, &format!("DUMP {name}.rrd\n"));
        wait_until("the rows to be held", || used(&roundel) >= held);
        drop(stream);
        wait_until("nothing to be held", || used(&roundel) == 0);
    }
}

#[test]
fn what_is_too_large_to_be_held_is_refused_with_the_key_that_raises_it() {
    let roundel = limited(1 << 20);
    let mut client = Client::open(&roundel.socket());
    // Seasons of 960 kB, and an INFO of some megabytes.
    let create = format!("CREATE season.rrd {DEFINITION} RRA:HWPREDICT:60000:0.1:0.1:60000");
    assert_eq!(client.say(create), "0 RRD created OK\n");
    let sources: String = (0..100).map(|ds| format!(" DS:d{ds}:GAUGE:20:U:U")).collect();
    let archives: String = (1..=100).map(|rra| format!(" RRA:LAST:0:{rra}:1")).collect();
    assert_eq!(client.say(format!("CREATE wide.rrd -s 1{sources}{archives}")), "0 RRD created OK\n");
    for (line, what) in [("DUMP season.rrd", "this RRD"), ("INFO wide.rrd", "this answer")] {
        let answer = client.say(line);
        assert!(
            answer.starts_with("-1 ") && answer.contains(what),
            "{line}: {}",
            &answer[..100.min(answer.len())]
        );
        assert!(answer.contains("raise [limits] memory"), "{line}: {answer}");
    }
    assert_eq!(client.say("PING"), "0 PONG\n");
}

#[test]
fn imports_of_several_connections_share_the_memory() {
    let roundel = limited(4 << 20);
    let mut clients = [(); 2].map(|()| Client::open(&roundel.socket()));
    let piece = vec![7; protocol::rrdcached::limits::PIECE_BYTES];
    let import = |client: &mut Client, name: &str, offset: usize| {
        client.say(format!("IMPORT {name} 1200000 {offset} {}", whole::word(&piece)))
    };
    let [one, other] = &mut clients;
    // Three eighths of it are enough for one such file, but not for two.
    let mut answers = [String::new(), String::new()];
    for index in 0..1_150_000 / piece.len() {
        for (answer, (client, name)) in answers.iter_mut().zip([(&mut *one, "a.rrd"), (&mut *other, "b.rrd")])
        {
            if !answer.starts_with("-1 ") {
                *answer = import(client, name, index * piece.len());
            }
        }
    }
    let refused = answers.iter().filter(|answer| answer.contains("[limits] memory")).count();
    assert_eq!(refused, 1, "{answers:?}");
    drop(clients);
    wait_until("nothing to be held", || used(&roundel) == 0);
}

#[test]
fn a_thread_of_a_connection_is_counted_and_only_given_where_there_is_room() {
    for (memory, has_thread) in [(1 << 30, true), (8 << 20, false)] {
        let roundel = limited(memory);
        let mut stream = unread(&roundel, "FRAMES 2\n");
        stream.read_exact(&mut [0; "0 Frames of version 2 from here on\n".len()]).unwrap();
        if has_thread {
            wait_until("the thread to be counted", || used(&roundel) >= FRAMES_THREAD_BYTES);
        }
        // It is ready when it answers.
        let mut ping = Vec::new();
        protocol::frames::request::push_command(&mut ping, 1, b"PING");
        stream.write_all(&ping).unwrap();
        assert!(stream.read(&mut [0; 100]).unwrap() > 0);
        assert!(has_thread || used(&roundel) < FRAMES_THREAD_BYTES, "{}", used(&roundel));
        drop(stream);
        wait_until("nothing to be held", || used(&roundel) == 0);
    }
}

#[test]
fn clients_that_have_read_their_answers_hold_nothing() {
    let roundel = limited(1 << 30);
    let mut client = Client::open(&roundel.socket());
    let create = format!("CREATE a.rrd {DEFINITION} RRA:AVERAGE:0.5:1:20000");
    assert_eq!(client.say(create), "0 RRD created OK\n");
    let mut clients: Vec<Client> = (0..20).map(|_| Client::open(&roundel.socket())).collect();
    for client in &mut clients {
        for line in ["DUMP a.rrd", "INFO a.rrd", "HELP", "FETCH a.rrd AVERAGE 1000000000 1000000100"] {
            assert!(!client.say(line).starts_with('-'), "{line}");
        }
    }
    wait_until("nothing to be held", || used(&roundel) == 0);
    for client in &mut clients {
        assert_eq!(client.say("PING"), "0 PONG\n");
    }
}
