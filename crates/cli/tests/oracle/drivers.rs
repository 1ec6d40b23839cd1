//! Programs that drive `rrdtool -` as Cacti, LibreNMS and RRDTool::OO do: through a pair of pipes, reading up
//! to the line with `OK u:` or `ERROR:`, with several commands in flight. Each is run with both rrdtools and
//! must read the same.

use std::process::{Command, Stdio};

use crate::harness::Pair;

/// Perl's open2: a command, its answer, the next one.
const PERL: &str = r#"
use IPC::Open2;
my $process = open2(my $out, my $in, $ARGV[0], '-');
sub ask {
    print $in "$_[0]\n";
    $in->flush;
    while (my $line = <$out>) {
        if ($line =~ /^OK u:[\d.]+ s:[\d.]+ r:[\d.]+$/) { print "OK\n"; return }
        print $line;
        return if $line =~ /^ERROR: /;
    }
    die "the program has ended";
}
ask("create a.rrd --start 1000000000 --step 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:50");
for my $round (1 .. 300) {
    my $time = 1000000000 + 10 * $round;
    ask("update a.rrd $time:$round");
    ask("update a.rrd $time:$round") if $round % 50 == 0;
    ask("fetch a.rrd AVERAGE -s $time -e $time") if $round % 20 == 0;
    ask("bogus x") if $round % 100 == 0;
}
ask("last a.rrd");
ask("xport -s 1000002900 -e 1000003000 DEF:a=a.rrd:x:AVERAGE 'XPORT:a:in traffic'");
print $in "quit\n";
close $in;
waitpid $process, 0;
print "status ", $? >> 8, "\n";
"#;

/// Python's pipes: a thousand commands are written before the first answer is read, then more while reading.
const PYTHON: &str = r#"
import subprocess, sys, threading
program = subprocess.Popen([sys.argv[1], '-'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def answers(count):
    while count:
        line = program.stdout.readline()
        if not line:
            sys.exit('the program has ended')
        if line.startswith(b'OK u:'):
            line = b'OK\n'
        sys.stdout.buffer.write(line)
        count -= line == b'OK\n' or line.startswith(b'ERROR: ')
def write(lines):
    program.stdin.write(''.join(line + '\n' for line in lines).encode())
    program.stdin.flush()
write(['create b.rrd -b 1000000000 -s 60 DS:x:COUNTER:120:0:U DS:y:GAUGE:120:U:U RRA:LAST:0:1:100 RRA:MAX:0.5:5:9'])
answers(1)
writer = threading.Thread(target=write, args=(
    ['update b.rrd %d:%d:U' % (1000000000 + 7 * i, i * i) for i in range(1000)] + ['info b.rrd', 'dump b.rrd'],))
writer.start()
answers(1002)
writer.join()
for i in range(50):
    write(['update b.rrd %d:%d:%d' % (1000010000 + i * 60, i, i), 'lastupdate b.rrd'])
    answers(2)
# Half a line, then the rest of it.
program.stdin.write(b'fetch b.rrd LA')
program.stdin.flush()
write(['ST -s 1000012000 -e 1000012600\r'])
answers(1)
program.stdin.close()
sys.stdout.buffer.write(program.stdout.read())
print('status', program.wait())
"#;

pub fn check() {
    let pair = Pair::new();
    let Some(theirs) = &pair.theirs else { return };
    let mut ran = 0;
    for (interpreter, option, script) in [("perl", "-e", PERL), ("python3", "-c", PYTHON)] {
        let read = |program: &crate::harness::Program| {
            let output = Command::new(interpreter)
                .args([option, script])
                .arg(program.path())
                .current_dir(&program.directory)
                .env("TZ", "UTC")
                .env("LC_ALL", "C")
                .env_remove("RRDCACHED_ADDRESS")
                .stdin(Stdio::null())
                .output()
                .ok()?;
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            Some((pair.normal(&String::from_utf8_lossy(&output.stdout)), error, output.status.code()))
        };
        // The interpreter may not be installed.
        let (Some(ours), Some(want)) = (read(&pair.ours), read(theirs)) else { continue };
        ran += 1;
        assert_eq!((&ours.1, ours.2), (&want.1, want.2), "{interpreter}");
        assert!(want.0.lines().count() > 300, "{interpreter}: {}", want.0);
        // The usage page has our own text.
        let lines = |text: &str| crate::session::without_usage(text);
        let (ours, want) = (lines(&ours.0), lines(&want.0));
        let first = ours.lines().zip(want.lines()).find(|(ours, want)| ours != want);
        assert!(ours == want, "{interpreter}: ours and theirs: {first:?}");
    }
    assert!(ran > 0, "neither perl nor python3 is installed");
}
