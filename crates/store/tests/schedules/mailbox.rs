//! The mailbox alone: several senders, one owner.

use std::sync::Arc;
use std::time::Duration;

use shuttle::thread;

use crate::explore;
use crate::shard::mailbox::Mailbox;

const IDLE: Duration = Duration::from_millis(500);
/// Two of them fill the lane.
const LARGE: usize = 2 * 1024 * 1024;
const SENDERS: u32 = 3;
const SENT: u32 = 4;

/// Broken once each, and seen:
/// - without `notify_one` in `wake`: a deadlock (the owner sleeps on);
/// - without `notify_all` of `emptied` in `take`: a deadlock (a sender sleeps on);
/// - without `notify_all` of `filled` in `close`: a deadlock (the owner does not end);
/// - `pop_back` for `pop_front`: "out of order";
/// - `is_idle` without `owner_holds`: idle with commands in hand.
#[test]
fn each_message_arrives_once_and_in_its_senders_order() {
    explore(4000, || {
        let mailbox: Arc<Mailbox<(u32, u32), u32>> = Arc::default();
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || {
                    for number in 0..SENT {
                        mailbox.send_command((sender, number), LARGE).unwrap();
                        if number % 2 == 0 {
                            mailbox.send_priority(sender).unwrap();
                        }
                    }
                })
            })
            .collect();
        let owner = thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || own(&mailbox)
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        mailbox.close();
        let (next, queries) = owner.join().unwrap();
        assert_eq!((next, queries), ([SENT; SENDERS as usize], (SENDERS * SENT).div_ceil(2)));
        assert!(mailbox.send_command((0, 0), 1).is_err() && mailbox.send_priority(0).is_err());
    });
}

/// Takes all there is until the mailbox is closed: the number of commands of each sender, and of queries.
fn own(mailbox: &Mailbox<(u32, u32), u32>) -> ([u32; SENDERS as usize], u32) {
    let (mut next, mut queries) = ([0; SENDERS as usize], 0);
    let (mut commands, mut priority) = (Vec::new(), Vec::new());
    while mailbox.take(&mut commands, &mut priority, LARGE, IDLE) {
        // It holds what it took, and what waits is no more than the lane and one command of each sender.
        assert!(commands.is_empty() || !mailbox.is_idle());
        queries += priority.drain(..).count() as u32;
        for (sender, number) in commands.drain(..) {
            assert_eq!(next[sender as usize], number, "out of order");
            next[sender as usize] += 1;
        }
    }
    (next, queries)
}

/// The lane takes no more once it is full, while queries pass, and a sender that waits is let in or sent away.
///
/// Broken and seen: without `notify_all` of `emptied` in `close`: a deadlock.
#[test]
fn a_full_lane_blocks_senders_and_a_closed_one_sends_them_away() {
    explore(2000, || {
        let mailbox: Arc<Mailbox<u32, u32>> = Arc::default();
        let sent = |number| mailbox.send_command(number, LARGE).is_ok();
        assert!(sent(0) && sent(1));
        let senders: Vec<_> = (2..4)
            .map(|number| {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || mailbox.send_command(number, LARGE).map_err(|closed| closed.0))
            })
            .collect();
        let (mut commands, mut priority) = (Vec::new(), Vec::new());
        mailbox.send_priority(7).unwrap();
        assert!(mailbox.has_priority());
        assert!(mailbox.take(&mut commands, &mut priority, 0, IDLE), "a query passes");
        assert_eq!((&commands[..], &priority[..]), (&[][..], &[7][..]));
        // Makes room for one.
        assert!(mailbox.take(&mut commands, &mut Vec::new(), 1, IDLE));
        mailbox.close();
        let results: Vec<_> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
        let refused: Vec<u32> = results.into_iter().filter_map(Result::err).collect();
        assert!(!refused.is_empty(), "there was room for one only");
        while mailbox.take(&mut commands, &mut Vec::new(), 1, IDLE) {
            if commands.last().is_none_or(|_| !mailbox.is_waiting()) {
                break;
            }
        }
        commands.extend(refused);
        commands.sort_unstable();
        assert_eq!(commands, [0, 1, 2, 3], "each was taken or came back");
    });
}

#[test]
fn a_closed_mailbox_delivers_what_is_queued_and_refuses_more() {
    explore(2, || {
        let mailbox: Mailbox<u32, u32> = Mailbox::default();
        mailbox.send_command(1, 1).unwrap();
        mailbox.close();
        assert!(mailbox.send_command(2, 1).is_err() && mailbox.send_priority(2).is_err());
        let (mut commands, mut priority) = (Vec::new(), Vec::new());
        assert!(mailbox.take(&mut commands, &mut priority, 9, Duration::ZERO));
        commands.clear();
        assert!(!mailbox.take(&mut commands, &mut priority, 9, IDLE));
    });
}

#[test]
fn it_is_idle_only_after_the_taken_commands_are_done() {
    explore(2, || {
        let mailbox: Mailbox<u32, u32> = Mailbox::default();
        assert!(mailbox.is_idle());
        mailbox.send_command(1, 1).unwrap();
        assert!(!mailbox.is_idle());
        let (mut commands, mut priority) = (Vec::new(), Vec::new());
        assert!(mailbox.take(&mut commands, &mut priority, 9, Duration::ZERO));
        assert!(!mailbox.is_idle() && !mailbox.is_waiting(), "the owner may still be at work");
        // By coming back, the owner reports that it has executed what it took.
        assert!(mailbox.take(&mut commands, &mut priority, 9, Duration::ZERO));
        assert!(mailbox.is_idle());
        mailbox.send_priority(1).unwrap();
        assert!(mailbox.is_idle(), "a query overtakes anyway");
        mailbox.close();
        assert!(!mailbox.is_idle());
    });
}

/// A nudge is not lost, whether the owner sleeps or is about to; and without a budget commands stay where they are.
///
/// Broken and seen: `take` does not look at `nudged`: a deadlock.
#[test]
fn a_nudge_ends_one_wait_and_a_budget_of_zero_takes_no_commands() {
    explore(1000, || {
        let mailbox: Arc<Mailbox<u32, u32>> = Arc::default();
        let nudging = thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || mailbox.nudge()
        });
        let (mut commands, mut priority) = (Vec::new(), Vec::new());
        assert!(mailbox.take(&mut commands, &mut priority, 9, IDLE));
        nudging.join().unwrap();
        mailbox.send_command(1, 1).unwrap();
        assert!(mailbox.take(&mut commands, &mut priority, 0, Duration::ZERO));
        assert!(commands.is_empty() && mailbox.is_waiting());
    });
}
