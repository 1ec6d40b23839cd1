//! An encrypted connection without its socket: what was received becomes plain text, what is to be sent becomes records.
//!
//! The library reads four kilobytes at a time and keeps what is incomplete, unseen. Here large reads are cut at the ends of
//! records, so that it keeps nothing, what a client holds by half a record is known, and a bulk of updates takes few system calls.

use std::io::{self, BufRead, Write};

use rustls::ServerConnection;

/// Bytes of a record's head: its kind, version and length (RFC 8446, 5.1).
pub const HEAD_BYTES: usize = 5;
/// The longest record: with TLS 1.2, whose records may grow by 2048 bytes in encryption.
const RECORD_BYTES_MAX: usize = HEAD_BYTES + 16_384 + 2_048;
/// Bytes of records without content that a client may send one after the other: new keys and warnings are short, and a client
/// that sends nothing else keeps the daemon busy.
const NOISE_BYTES_MAX: usize = 4_096;
/// The most that is encrypted and not yet taken by the socket: the library's limit.
pub const SENDING_BYTES_MAX: usize = 64 * 1024;

/// The state of an encrypted connection.
#[derive(Debug)]
pub struct Records {
    tls: ServerConnection,
    /// The beginning of a record.
    partial: Vec<u8>,
    /// Bytes of records since there was content.
    noise: usize,
    has_ended: bool,
}

/// What was found among received bytes.
enum Found {
    /// So many bytes of content.
    Content(usize),
    /// Nothing yet.
    Nothing,
    /// The client sends no more.
    End,
}

impl Records {
    /// Of a connection whose handshake is done, and that has read no further.
    pub fn new(tls: ServerConnection) -> Self {
        Records { tls, partial: Vec::new(), noise: 0, has_ended: false }
    }

    /// Bytes of a record of which the rest has not arrived.
    pub fn partial_bytes(&self) -> usize {
        self.partial.len()
    }

    /// Appends what the client has sent to `plain`, as `receive` gives it, which is called until there is content; `wire` is room for
    /// what it gives. Returns how much was appended; 0 at the end.
    ///
    /// # Errors
    /// Errors of `receive`, and of what was received.
    pub fn read(
        &mut self,
        wire: &mut Vec<u8>,
        plain: &mut Vec<u8>,
        mut receive: impl FnMut(&mut Vec<u8>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        while !self.has_ended {
            wire.clear();
            wire.append(&mut self.partial);
            let received = match receive(wire) {
                Ok(count) => count,
                Err(error) => {
                    self.partial.extend_from_slice(wire);
                    return Err(error);
                }
            };
            let whole = whole_records(wire)?;
            let found = self.decrypt(&wire[..whole], plain)?;
            self.partial.extend_from_slice(&wire[whole..]);
            match found {
                Found::Content(count) => return Ok(count),
                // An end without its announcement: the line was cut between requests, or within one that is not taken then.
                Found::Nothing if received > 0 => {}
                Found::Nothing | Found::End => self.has_ended = true,
            }
        }
        Ok(0)
    }

    /// Decrypts whole records.
    fn decrypt(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> io::Result<Found> {
        let (mut content, length) = (0, wire.len());
        while !wire.is_empty() {
            self.tls.read_tls(&mut wire)?;
            self.tls.process_new_packets().map_err(invalid)?;
            match self.take_content(plain)? {
                Found::Content(count) => content += count,
                Found::Nothing => {}
                Found::End if content == 0 => return Ok(Found::End),
                Found::End => break,
            }
        }
        if content > 0 {
            self.noise = 0;
            return Ok(Found::Content(content));
        }
        self.noise += length;
        match self.noise > NOISE_BYTES_MAX {
            true => Err(invalid("too many records without content")),
            false => Ok(Found::Nothing),
        }
    }

    fn take_content(&mut self, plain: &mut Vec<u8>) -> io::Result<Found> {
        let (before, mut reader) = (plain.len(), self.tls.reader());
        let has_ended = loop {
            match reader.fill_buf() {
                Ok([]) => break true,
                Ok(piece) => {
                    plain.extend_from_slice(piece);
                    let count = piece.len();
                    reader.consume(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(error) => return Err(error),
            }
        };
        Ok(match plain.len() - before {
            0 if has_ended => Found::End,
            0 => Found::Nothing,
            count => Found::Content(count),
        })
    }

    /// Encrypts some of `plain`, as much as may wait to be sent; returns how much.
    ///
    /// # Errors
    /// None that is known.
    pub fn write(&mut self, plain: &[u8]) -> io::Result<usize> {
        self.tls.writer().write(plain)
    }

    /// Whether something is to be sent.
    pub fn wants_to_send(&self) -> bool {
        self.tls.wants_write()
    }

    /// Sends what is to be sent.
    ///
    /// # Errors
    /// Those of `out`; what it did not take is sent next time.
    pub fn send(&mut self, out: &mut dyn Write) -> io::Result<()> {
        while self.tls.wants_write() {
            if self.tls.write_tls(out)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Prepares the announcement that nothing more is sent.
    pub fn end(&mut self) {
        self.tls.send_close_notify();
    }
}

/// How many bytes at the beginning are whole records.
fn whole_records(wire: &[u8]) -> io::Result<usize> {
    let mut at = 0;
    while let Some(bytes) = record_bytes(&wire[at..])?.filter(|bytes| *bytes <= wire.len() - at) {
        at += bytes;
    }
    Ok(at)
}

/// The bytes of the record that begins here, if its head is there.
///
/// # Errors
/// When no record is so long.
pub fn record_bytes(wire: &[u8]) -> io::Result<Option<usize>> {
    let Some(&[_, _, _, high, low]) = wire.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let bytes = HEAD_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if bytes > RECORD_BYTES_MAX { Err(invalid("a record that is too long")) } else { Ok(Some(bytes)) }
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use rustls::ClientConnection;

    use super::*;

    /// A server's records and its client, whose handshake is done.
    fn pair() -> (Records, ClientConnection) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
        let (certificate, key) = (made.cert.der().clone(), made.signing_key.serialize_der());
        let provider = Arc::new(crate::tls::provider());
        let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.try_into().unwrap())
            .unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        let mut client = ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
        while server.is_handshaking() || client.is_handshaking() {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            feed(&wire, |wire| server.read_tls(wire).unwrap());
            server.process_new_packets().unwrap();
            let mut wire = Vec::new();
            server.write_tls(&mut wire).unwrap();
            feed(&wire, |wire| client.read_tls(wire).unwrap());
            client.process_new_packets().unwrap();
        }
        (Records::new(server), client)
    }

    fn feed(mut wire: &[u8], mut take: impl FnMut(&mut &[u8]) -> usize) {
        while !wire.is_empty() {
            take(&mut wire);
        }
    }

    /// What a client sends for this.
    fn sent(client: &mut ClientConnection, bytes: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        for part in bytes.chunks(10_000) {
            client.writer().write_all(part).unwrap();
            while client.wants_write() {
                client.write_tls(&mut wire).unwrap();
            }
        }
        wire
    }

    /// Reads what arrives in these pieces until there is no more; returns the content and the last result.
    fn read(records: &mut Records, pieces: &mut VecDeque<Vec<u8>>) -> (Vec<u8>, io::Result<usize>) {
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        loop {
            let result = records.read(&mut wire, &mut plain, |wire| match pieces.pop_front() {
                Some(piece) => {
                    wire.extend_from_slice(&piece);
                    Ok(piece.len())
                }
                None => Err(io::ErrorKind::WouldBlock.into()),
            });
            if !matches!(result, Ok(1..)) {
                return (plain, result);
            }
        }
    }

    #[test]
    fn content_is_the_same_however_it_arrives() {
        let bytes: Vec<u8> = (0..100_000u32).map(|number| number as u8).collect();
        for size in [1, 7, 4_096, 16_500, 1 << 20] {
            let (mut records, mut client) = pair();
            let wire = sent(&mut client, &bytes);
            let mut pieces: VecDeque<Vec<u8>> = wire.chunks(size).map(<[u8]>::to_vec).collect();
            let (plain, last) = read(&mut records, &mut pieces);
            assert!(plain == bytes, "{size}");
            assert_eq!(last.unwrap_err().kind(), io::ErrorKind::WouldBlock);
            assert_eq!(records.partial_bytes(), 0);
        }
    }

    #[test]
    fn what_is_incomplete_is_known() {
        let (mut records, mut client) = pair();
        let wire = sent(&mut client, &[b'x'; 9_000]);
        let mut pieces = VecDeque::from([wire[..5_000].to_vec()]);
        assert_eq!(read(&mut records, &mut pieces).0, b"");
        assert_eq!(records.partial_bytes(), 5_000);
        let mut pieces = VecDeque::from([wire[5_000..].to_vec()]);
        assert_eq!(read(&mut records, &mut pieces).0.len(), 9_000);
        assert_eq!(records.partial_bytes(), 0);
    }

    #[test]
    fn an_end_is_one_with_and_without_its_announcement() {
        let (mut records, mut client) = pair();
        client.send_close_notify();
        let wire = sent(&mut client, b"");
        let mut announced = Vec::new();
        client.write_tls(&mut announced).unwrap();
        let mut pieces = VecDeque::from([[wire, announced].concat()]);
        assert_eq!(read(&mut records, &mut pieces).1.unwrap(), 0);
        let (mut records, mut client) = pair();
        let mut pieces = VecDeque::from([sent(&mut client, b"PING\n"), Vec::new()]);
        let (plain, last) = read(&mut records, &mut pieces);
        assert_eq!((&*plain, last.unwrap()), (&b"PING\n"[..], 0));
    }

    #[test]
    fn what_is_no_record_or_only_noise_ends_the_connection() {
        let (mut records, _client) = pair();
        let mut pieces = VecDeque::from([vec![23, 3, 3, 0xff, 0xff]]);
        let text = read(&mut records, &mut pieces).1.unwrap_err().to_string();
        assert!(text.contains("too long"), "{text}");
        let (mut records, mut client) = pair();
        let mut last = Ok(0);
        for count in 0.. {
            client.refresh_traffic_keys().unwrap();
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            last = read(&mut records, &mut VecDeque::from([wire])).1;
            if !matches!(&last, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                assert!((8..1000).contains(&count), "{count}");
                break;
            }
        }
        // By the library or by us.
        assert_eq!(last.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
