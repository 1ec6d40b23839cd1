//! One HTTP request.

use std::io::{Read, Write};
use std::net::TcpStream;

/// The answer to a GET on this machine, with its head; `None` while nothing listens on the port.
#[must_use]
pub fn http_get(port: u16, target: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The answer to a form that a page of this machine sends, with its head; `None` while nothing listens on the port. `origin` is the page's site.
#[must_use]
pub fn http_post_form(port: u16, target: &str, form: &str, origin: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: {origin}\r\nConnection: close\r\n"
    );
    let kind = "Content-Type: application/x-www-form-urlencoded";
    write!(stream, "{head}{kind}\r\nContent-Length: {}\r\n\r\n{form}", form.len()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}
