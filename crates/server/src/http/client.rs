//! The other end of the administrator's socket: one request a connection, HTTP/1.1, nothing more.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::percent::encode;
use crate::limits::IMPORT_BYTES_MAX;

/// Why a request was not done.
#[derive(Debug)]
pub enum RequestError {
    /// Nobody answers, or not as the daemon does.
    Io(io::Error),
    /// The daemon refused; its words.
    Refused(String),
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequestError::Io(error) => write!(f, "cannot talk to the daemon: {error}"),
            RequestError::Refused(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<io::Error> for RequestError {
    fn from(error: io::Error) -> Self {
        RequestError::Io(error)
    }
}

/// Gives the daemon a `.rrd` file.
pub fn import(socket: &Path, name: &[u8], file: &[u8], no_overwrite: bool) -> Result<(), RequestError> {
    let query = if no_overwrite { "?no-overwrite" } else { "" };
    request(socket, "PUT", &format!("/import/{}{query}", encode(name)), file).map(|_| ())
}

/// Gets a `.rrd` file from the daemon.
pub fn export(socket: &Path, name: &[u8]) -> Result<Vec<u8>, RequestError> {
    request(socket, "GET", &format!("/export/{}", encode(name)), b"")
}

fn request(socket: &Path, method: &str, target: &str, body: &[u8]) -> Result<Vec<u8>, RequestError> {
    let mut stream = UnixStream::connect(socket)?;
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: roundel\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    // A daemon that refuses early closes before it has read everything; its answer says why.
    let sent = stream.write_all(body);
    let answer = read_response(&mut BufReader::new(&stream));
    match (sent, answer) {
        (Err(error), Err(_)) => Err(error.into()),
        (_, answer) => answer,
    }
}

fn read_response(stream: &mut impl BufRead) -> Result<Vec<u8>, RequestError> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the answer is no HTTP of ours");
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
    let status = status.ok_or_else(invalid)?;
    let mut length = None;
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(invalid().into());
        }
        match line.trim_end().split_once(':') {
            Some((key, value)) if key.eq_ignore_ascii_case("content-length") => {
                length = Some(value.trim().parse::<usize>().map_err(|_| invalid())?);
            }
            Some(_) => {}
            None => break,
        }
    }
    let length = length.filter(|&length| length <= IMPORT_BYTES_MAX).ok_or_else(invalid)?;
    let mut body = Vec::new();
    stream.take(length as u64).read_to_end(&mut body)?;
    if body.len() != length {
        return Err(RequestError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    if status == 200 {
        Ok(body)
    } else {
        Err(RequestError::Refused(String::from_utf8_lossy(&body).trim_end().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: Result<&str, &str>) {
        let got = read_response(&mut text.as_bytes());
        let got = got.map(|body| String::from_utf8(body).unwrap()).map_err(|error| error.to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{text:?}");
    }

    #[test]
    fn answers_are_read_whole_or_not_at_all() {
        check("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", Ok("ok"));
        check("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nx: y\r\n\r\nno\n", Err("no"));
        let invalid = "cannot talk to the daemon: the answer is no HTTP of ours";
        check("HTTP/1.1 200 OK\r\n\r\nok", Err(invalid));
        check("hello", Err(invalid));
        let cut = "cannot talk to the daemon: unexpected end of file";
        check("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", Err(cut));
    }
}
