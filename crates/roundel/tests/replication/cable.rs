//! A cable between two servers that can be cut, one way or both: what is on its way then waits.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A port that leads to another one.
pub struct Cable {
    pub port: u16,
    cut: Arc<[AtomicBool; 2]>,
}

impl Cable {
    /// A cable from `port` to another port of this machine.
    pub fn new(port: u16, to: u16) -> Cable {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let cut: Arc<[AtomicBool; 2]> = Arc::default();
        let of_thread = Arc::clone(&cut);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                for (direction, from, to) in [(0, &near, &far), (1, &far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let cut = Arc::clone(&of_thread);
                    std::thread::spawn(move || carry(from, to, &cut[direction]));
                }
            }
        });
        Cable { port, cut }
    }

    /// Cuts it: 0 = from the follower to the primary, 1 = back.
    pub fn cut(&self, direction: usize) {
        self.cut[direction].store(true, Ordering::Relaxed);
    }

    /// Mends it.
    pub fn mend(&self, direction: usize) {
        self.cut[direction].store(false, Ordering::Relaxed);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) {
    let mut buffer = [0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        while cut.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
