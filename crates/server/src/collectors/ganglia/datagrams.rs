//! Receives gmond's datagrams on a thread of its own, and looks up the names of their senders beside it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Names, Sender as NameSender, channel};
use std::time::{Duration, Instant};

use collect::ganglia::gmond::GmondReceiver;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, watch};

use super::super::context::CollectorContext;
use super::{GmondListenSettings, State};
use crate::collectors::datagrams::{DatagramBuffers, DatagramSocket};

/// The longest wait for a datagram, so that a stop is seen.
const WAIT: Duration = Duration::from_millis(200);
/// Names looked up at once.
const LOOKUPS_MAX: usize = 8;

/// A name that was looked up; none if the address has none.
type Found = (IpAddr, Option<String>);

/// The sockets with what they received.
pub(super) struct Receiver {
    sockets: Vec<DatagramSocket>,
    receiver: GmondReceiver,
    step: Duration,
    source: usize,
    looking_up: Vec<IpAddr>,
    found: (NameSender<Found>, Names<Found>),
}

impl Receiver {
    pub(super) fn new(sockets: Vec<DatagramSocket>, settings: GmondListenSettings, source: usize) -> Self {
        Receiver {
            sockets,
            receiver: GmondReceiver::new(settings.options),
            step: settings.step,
            source,
            looking_up: Vec::new(),
            found: channel(),
        }
    }

    /// Receives until `stop` becomes true.
    pub(super) fn run(
        mut self,
        state: &Arc<Mutex<State>>,
        context: &Arc<CollectorContext>,
        stop: &watch::Receiver<bool>,
    ) {
        let handle = Handle::current();
        let mut buffers = DatagramBuffers::default();
        let mut due = Instant::now() + self.step;
        while !*stop.borrow() {
            if let Err(error) = self.receive(context, &mut buffers) {
                tracing::error!(%error, "cannot receive gmond's datagrams any more");
                return;
            }
            self.look_up(&handle);
            if Instant::now() >= due {
                due = Instant::now() + self.step;
                let now = context.now();
                let feed = self.receiver.feed(now);
                let dropped = self.sockets.iter().map(DatagramSocket::dropped).sum();
                let received = (*self.receiver.counts(), dropped);
                let source = self.source;
                handle.block_on(async {
                    let mut state = state.lock().await;
                    state.received = received;
                    state.read(source, now, feed).await;
                });
            }
        }
    }

    fn receive(&mut self, context: &CollectorContext, buffers: &mut DatagramBuffers) -> io::Result<()> {
        let mut files: Vec<_> =
            self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let wait = Timespec { tv_sec: 0, tv_nsec: WAIT.as_nanos() as _ };
        match poll(&mut files, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        drop(files);
        let receiver = &mut self.receiver;
        for socket in &mut self.sockets {
            let now = context.now();
            let mut requests: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
            // An error of one datagram is not the socket's: an earlier request may have met a closed port.
            let _ = socket.receive(buffers, |sender, bytes| {
                if let Some(request) = receiver.receive(now, sender.ip(), bytes) {
                    requests.push((sender, request));
                }
            });
            for (to, request) in requests {
                // Lost, it is asked for again.
                let _ = socket.socket().send_to(&request, to);
            }
        }
        Ok(())
    }

    /// Takes the names that were found, and begins to look up others.
    fn look_up(&mut self, handle: &Handle) {
        while let Ok((address, name)) = self.found.1.try_recv() {
            self.looking_up.retain(|known| *known != address);
            self.receiver.set_name(address, name.as_deref());
        }
        for address in self.receiver.nameless(LOOKUPS_MAX) {
            if self.looking_up.len() >= LOOKUPS_MAX || self.looking_up.contains(&address) {
                continue;
            }
            self.looking_up.push(address);
            let sender = self.found.0.clone();
            handle.spawn_blocking(move || {
                // Nothing receives it only once the daemon stops.
                let _ = sender.send((address, reverse_name(address)));
            });
        }
    }
}

/// The name of an address by this system's rules. The standard library cannot ask for it; the C library's own command can.
fn reverse_name(address: IpAddr) -> Option<String> {
    let mut command = Command::new("getent");
    command.args(["hosts", &address.to_string()]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(1).map(str::to_string)
}
