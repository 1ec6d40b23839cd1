//! A client of rrdcached's text protocol over a UNIX socket, which takes each answer as it came.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::wait::DEADLINE;

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

/// A status line and the lines after it.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of lines that follow, or a negative one.
    pub status: i64,
    /// What follows the status on its line.
    pub message: String,
    /// Without their line feeds.
    pub lines: Vec<String>,
}

/// For daemons that may go away meanwhile.
impl Client {
    /// Connects to a socket.
    ///
    /// # Errors
    /// As the system says.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// How long it waits for an answer from now on.
    ///
    /// # Errors
    /// As the system says.
    pub fn wait_at_most(&self, time: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(time))
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// As the system says.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// Reads one answer.
    ///
    /// # Errors
    /// As the system says; when the connection ends first, or the answer is none.
    pub fn answer(&mut self) -> io::Result<Answer> {
        let first = self.whole_line()?;
        let (status, message) = first.split_once(' ').unwrap_or((&first, ""));
        let status = status.parse().map_err(|_| io::Error::other(format!("not an answer: {first:?}")))?;
        let message = message.to_string();
        let lines = (0..status).map(|_| self.whole_line()).collect::<io::Result<_>>()?;
        Ok(Answer { status, message, lines })
    }

    /// One command and its answer.
    ///
    /// # Errors
    /// As [`Client::answer`].
    pub fn ask(&mut self, command: &str) -> io::Result<Answer> {
        self.send(format!("{command}\n"))?;
        self.answer()
    }

    /// BATCH with these lines; what its end answers.
    ///
    /// # Errors
    /// As [`Client::answer`].
    pub fn batch(&mut self, lines: &[String]) -> io::Result<Answer> {
        let mut text = String::from("BATCH\n");
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(".\n");
        self.send(&text)?;
        self.answer()?;
        self.answer()
    }

    fn whole_line(&mut self) -> io::Result<String> {
        let mut line = self.some_line()?;
        if line.pop() != Some('\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }

    fn some_line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

/// For daemons that must answer: texts as they came, and a panic where none comes.
impl Client {
    /// Connects.
    ///
    /// # Panics
    /// When no daemon listens there.
    #[must_use]
    pub fn open(socket: &Path) -> Self {
        Client::connect(socket).expect("the daemon listens")
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// When the daemon has hung up.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.send(bytes).expect("the daemon reads");
    }

    /// Reads one line, with its line feed; empty at the end.
    ///
    /// # Panics
    /// When none comes in time.
    pub fn line(&mut self) -> String {
        self.some_line().expect("the daemon answers")
    }

    /// Reads one answer as a text: the status line and as many lines as it says.
    ///
    /// # Panics
    /// When it does not come whole.
    pub fn read(&mut self) -> String {
        let mut text = self.line();
        let count: i64 = text.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
        for _ in 0..count.max(0) {
            let line = self.line();
            assert!(!line.is_empty(), "the answer ends early: {text}");
            text.push_str(&line);
        }
        text
    }

    /// Sends a line and reads its answer.
    ///
    /// # Panics
    /// As [`Client::read`].
    pub fn say(&mut self, line: impl AsRef<[u8]>) -> String {
        self.write([line.as_ref(), b"\n"].concat());
        self.read()
    }

    /// Everything until the daemon hangs up.
    ///
    /// # Panics
    /// When it does not.
    pub fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).expect("the daemon hangs up");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
