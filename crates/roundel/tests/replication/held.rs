//! A device that is asked through a socket that can keep its answers back.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers on their way; `None` while they pass.
type Kept = Arc<Mutex<Option<Vec<(SocketAddr, Vec<u8>)>>>>;

/// Stands before a device. Its thread ends with the process.
pub struct HeldAnswers {
    pub port: u16,
    socket: UdpSocket,
    kept: Kept,
}

impl HeldAnswers {
    /// Of the device on this port.
    pub fn of(device: u16) -> HeldAnswers {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let kept = Kept::default();
        let (front, keeps) = (socket.try_clone().unwrap(), Arc::clone(&kept));
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(("127.0.0.1", device)).unwrap();
        back.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok((length, from)) = front.recv_from(&mut buffer) {
                back.send(&buffer[..length]).unwrap();
                let Ok(length) = back.recv(&mut buffer) else { continue };
                match &mut *keeps.lock().unwrap() {
                    Some(kept) => kept.push((from, buffer[..length].to_vec())),
                    None => drop(front.send_to(&buffer[..length], from)),
                }
            }
        });
        HeldAnswers { port: socket.local_addr().unwrap().port(), socket, kept }
    }

    pub fn hold(&self) {
        *self.kept.lock().unwrap() = Some(Vec::new());
    }

    pub fn count(&self) -> usize {
        self.kept.lock().unwrap().as_ref().map_or(0, Vec::len)
    }

    /// Lets go what was kept, and what comes.
    pub fn release(&self) {
        for (to, answer) in self.kept.lock().unwrap().take().unwrap_or_default() {
            self.socket.send_to(&answer, to).unwrap();
        }
    }
}
