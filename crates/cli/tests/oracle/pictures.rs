//! Images: the pixels of a PNG compared with Debian's, and when and from which data one is drawn.

use std::path::Path;
use std::time::{Duration, SystemTime};

use testkit::Rrdcached;

use crate::harness::{Answer, Pair, Program};

/// Time of the first and of the last row.
const START: i64 = 1_000_000_200;
const END: i64 = START + 600 * 300;
/// Least similarity of two images. Measured: 0.96 where the mark along the right edge, which differs, is a
/// large part of a small image, elsewhere at least 0.97.
const LIKE: f64 = 0.95;
/// Width and height in pixels of a window for the similarity.
const WINDOW: usize = 8;
/// How far, of 255 per channel, a pixel may be from a colour to count as that colour: antialiasing changes
/// the corners of lines.
const NEAR: u8 = 40;

/// The arguments of the images, without their time range.
const PICTURES: &[&str] = &[
    "AREA:a#00cf00 LINE1:b#0000ff",
    "AREA:a#00cf00:in LINE1:b#0000ff:out GPRINT:b:LAST:%6.2lf%s GPRINT:a:MAX:%6.2lf%s",
    "-E AREA:a#00cf00:in LINE2:b#0000ff:out",
    "-t Title -v label LINE2:a#ff0000:two LINE3:b#0000ff:three",
    "AREA:a#00cf00:one AREA:b#ff8000:two:STACK LINE1:a#000000:three:STACK",
    "AREA:a#00cf0080:half LINE1:b#0000ff80:half",
    "AREA:a#00cf00#ffffff:gradient LINE1:b#0000ff",
    "-E LINE1:a#ff0000 LINE1:b#0000ff -W watermark",
    "LINE1:a#ff0000:dashes:dashes HRULE:400#0000ff:rule VRULE:1000100000#00ff00:time",
    "-o -l 1 -u 1000 LINE1:a#ff0000 AREA:b#00cf0080",
    "-j -w 300 -h 80 AREA:a#00cf00 LINE1:b#0000ff",
    "-w 97 -h 51 AREA:a#00cf00 LINE1:b#0000ff:x",
    "-w 900 -h 300 AREA:a#00cf00 LINE1:b#0000ff:x",
    "-m 2 AREA:a#00cf00:large LINE1:b#0000ff:large",
    "-m 1.5 AREA:a#00cf00:larger LINE1:b#0000ff:larger",
    "-N LINE1:a#ff0000:loose AREA:b#00cf0080:loose",
    "-R mono -G mono AREA:a#00cf00:hard LINE1:b#0000ff:hard",
    "-R light AREA:a#00cf00:light LINE1:b#0000ff:light",
    "--right-axis 2:1 --right-axis-label right TICK:a#ff000080:0.1:marks LINE1:b#0000ff",
    "-c BACK#202020 -c CANVAS#000000 -c FONT#ffffff -c GRID#404040 -c MGRID#808080 LINE1:a#ffff00:dark",
    "--legend-position east AREA:a#00cf00:beside LINE1:b#0000ff:beside",
    "--border 0 -n DEFAULT:10 -n TITLE:14 -t Larger AREA:a#00cf00:text LINE1:b#0000ff:text",
];

/// Pixels as red, green and blue.
struct Image {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

impl Image {
    fn read(path: &Path) -> Image {
        let mut decoder =
            png::Decoder::new(std::io::BufReader::new(std::fs::File::open(path).expect("a file")));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
        let mut reader = decoder.read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut bytes).expect("its pixels");
        let pixels = bytes[..info.buffer_size()].chunks_exact(4).map(|it| [it[0], it[1], it[2]]).collect();
        Image { width: info.width as usize, height: info.height as usize, pixels }
    }

    fn is_near(&self, x: usize, y: usize, colour: [u8; 3]) -> bool {
        let pixel = self.pixels[y * self.width + x];
        pixel.iter().zip(colour).all(|(part, wanted)| part.abs_diff(wanted) <= NEAR)
    }

    /// For each column, the top and bottom pixel of this colour, and the number of such pixels.
    fn columns(&self, colour: [u8; 3]) -> Vec<(usize, usize, usize)> {
        let column = |x: usize| {
            let rows: Vec<usize> = (0..self.height).filter(|y| self.is_near(x, *y, colour)).collect();
            (rows.first().copied().unwrap_or(0), rows.last().copied().unwrap_or(0), rows.len())
        };
        (0..self.width).map(column).collect()
    }

    /// As above, for rows.
    fn rows(&self, colour: [u8; 3]) -> Vec<(usize, usize, usize)> {
        let row = |y: usize| {
            let columns: Vec<usize> = (0..self.width).filter(|x| self.is_near(*x, y, colour)).collect();
            (columns.first().copied().unwrap_or(0), columns.last().copied().unwrap_or(0), columns.len())
        };
        (0..self.height).map(row).collect()
    }

    /// The luminance of a colour.
    fn light(&self, x: usize, y: usize) -> f64 {
        let [red, green, blue] = self.pixels[y * self.width + x].map(f64::from);
        0.299 * red + 0.587 * green + 0.114 * blue
    }
}

/// Structural similarity (Wang and others, 2004): the mean over half-overlapping windows.
fn likeness(a: &Image, b: &Image) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for top in (0..=a.height.saturating_sub(WINDOW)).step_by(WINDOW / 2) {
        for left in (0..=a.width.saturating_sub(WINDOW)).step_by(WINDOW / 2) {
            sum += likeness_at(a, b, left, top);
            count += 1.0;
        }
    }
    sum / count
}

fn likeness_at(a: &Image, b: &Image, left: usize, top: usize) -> f64 {
    let places = (0..WINDOW * WINDOW).map(|at| (left + at % WINDOW, top + at / WINDOW));
    let [mut mean_a, mut mean_b, mut square_a, mut square_b, mut product] = [0.0; 5];
    for (x, y) in places {
        let (a, b) = (a.light(x, y), b.light(x, y));
        mean_a += a;
        mean_b += b;
        square_a += a * a;
        square_b += b * b;
        product += a * b;
    }
    let count = (WINDOW * WINDOW) as f64;
    let (mean_a, mean_b) = (mean_a / count, mean_b / count);
    let (spread_a, spread_b) = (square_a / count - mean_a * mean_a, square_b / count - mean_b * mean_b);
    let common = product / count - mean_a * mean_b;
    // The authors' constants: a hundredth and three hundredths of the range, squared.
    let (c1, c2) = (6.5025, 58.5225);
    (2.0 * mean_a * mean_b + c1) * (2.0 * common + c2)
        / ((mean_a * mean_a + mean_b * mean_b + c1) * (spread_a + spread_b + c2))
}

/// Both programs with the same `a.rrd`; `None` if Debian's is not installed.
fn pair() -> Option<Pair> {
    let pair = Pair::new();
    let maker = pair.theirs.as_ref()?;
    let create = format!(
        "create a.rrd -b {START} -s 300 DS:a:GAUGE:600:U:U DS:b:GAUGE:600:U:U RRA:AVERAGE:0.5:1:600 RRA:MAX:0.5:6:100"
    );
    assert_eq!(maker.run(&words(&create), b"").status, Some(0));
    let mut update = vec!["update".to_string(), "a.rrd".to_string()];
    update.extend((1..=600).map(|row: i64| {
        let wave = (row % 200 - 100).abs() * 5;
        let gap = if row % 97 == 0 { "U".to_string() } else { (wave + row * 7919 % 101).to_string() };
        format!("{}:{gap}:{}", START + row * 300, 100 + wave / 3 + row * 31 % 57)
    }));
    assert_eq!(maker.run(&update, b"").status, Some(0));
    std::fs::copy(maker.directory.join("a.rrd"), pair.ours.directory.join("a.rrd")).expect("a copy");
    Some(pair)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_string).collect()
}

/// The arguments of an image of the last day.
fn graph(arguments: &str) -> Vec<String> {
    let start = END - 86_400;
    words(&format!("graph x.png -s {start} -e {END} DEF:a=a.rrd:a:AVERAGE DEF:b=a.rrd:b:AVERAGE {arguments}"))
}

/// The two images for the same arguments.
fn both(pair: &Pair, arguments: &str) -> [Image; 2] {
    let theirs = pair.theirs.as_ref().expect("it is installed");
    [&pair.ours, theirs].map(|program| {
        let answer = program.run(&graph(arguments), b"");
        assert_eq!(answer.status, Some(0), "{arguments}: {answer:?}");
        Image::read(&program.directory.join("x.png"))
    })
}

pub fn check_likeness() {
    let Some(pair) = pair() else { return };
    let mut unlike = Vec::new();
    for arguments in PICTURES {
        let [ours, theirs] = both(&pair, arguments);
        assert_eq!((ours.width, ours.height), (theirs.width, theirs.height), "{arguments}");
        let likeness = likeness(&ours, &theirs);
        if likeness < LIKE {
            unlike.push(format!("{likeness:.4}: {arguments}"));
        }
    }
    assert!(unlike.is_empty(), "{}", unlike.join("\n"));
}

/// Each part in a colour that no other part resembles.
pub fn check_places() {
    let Some(pair) = pair() else { return };
    let colours = "-c BACK#00ffff -c CANVAS#ff00ff -c SHADEA#808000 -c SHADEB#008080 -c GRID#ffff00 -c MGRID#000000 \
        -c FRAME#800000 -c AXIS#ff8080 -c ARROW#80ff80 -g";
    let parts: &[(&str, [u8; 3])] = &[
        ("background", [0, 255, 255]),
        ("canvas", [255, 0, 255]),
        ("upper border", [128, 128, 0]),
        ("lower border", [0, 128, 128]),
        ("area", [0, 0, 255]),
        ("line", [255, 255, 255]),
    ];
    for arguments in [
        "AREA:a#0000ff LINE1:b#ffffff",
        "AREA:a#0000ff LINE2:b#ffffff -w 211 -h 77",
        "LINE3:a#0000ff LINE1:b#ffffff --border 5",
        "AREA:a#0000ff AREA:b#ffffff:STACK -l -300",
        "HRULE:1#0000ff VRULE:1000150000#ffffff -l 0 -u 700",
    ] {
        // Texts are rendered in slightly different shades, so they are left out.
        let [ours, theirs] = both(&pair, &format!("{colours} -c FONT#00ffff {arguments}"));
        for (part, colour) in parts {
            let columns = difference(&ours.columns(*colour), &theirs.columns(*colour));
            assert_eq!(columns, None, "column, ours, theirs; {part}: {arguments}");
            let rows = difference(&ours.rows(*colour), &theirs.rows(*colour));
            assert_eq!(rows, None, "row, ours, theirs; {part}: {arguments}");
        }
        assert_eq!(lines(&ours), lines(&theirs), "lines of the grid: {arguments}");
    }
}

/// The first position where two lists differ, with both values.
fn difference<T: PartialEq + Copy>(ours: &[T], theirs: &[T]) -> Option<(usize, T, T)> {
    let mut pairs = ours.iter().zip(theirs).enumerate();
    pairs.find(|(_, (a, b))| a != b).map(|(at, (a, b))| (at, *a, *b))
}

/// The rows and columns of an image in which at least a third is neither canvas nor background: the dashed
/// lines of the grid.
fn lines(image: &Image) -> (Vec<usize>, Vec<usize>) {
    let is_line = |x: usize, y: usize| {
        ![[0, 255, 255], [255, 0, 255], [0, 0, 255], [255, 255, 255]]
            .iter()
            .any(|it| image.is_near(x, y, *it))
    };
    let row = |y: &usize| 3 * (0..image.width).filter(|x| is_line(*x, *y)).count() > image.width;
    let column = |x: &usize| 3 * (0..image.height).filter(|y| is_line(*x, *y)).count() > image.height;
    ((0..image.height).filter(row).collect(), (0..image.width).filter(column).collect())
}

/// The answer of a program, and whether the file was rewritten.
fn lazily(program: &Program, file: &str, more: &str, age: Duration) -> (Answer, bool) {
    let path = program.directory.join(file);
    let there = std::fs::read(&path).ok();
    if there.is_some() {
        let opened = std::fs::File::options().write(true).open(&path).expect("a file");
        opened.set_modified(SystemTime::now() - age).expect("a time");
    }
    let stamp = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified()).ok();
    let before = stamp(&path);
    let arguments =
        format!("graphv {file} --lazy {more} -s end-1d -e now DEF:a=a.rrd:a:AVERAGE LINE1:a#ff0000:x");
    let mut answer = program.run(&words(&arguments), b"");
    // The two programs do not run within the same second.
    let timeless = |line: &&str| !line.starts_with("graph_start") && !line.starts_with("graph_end");
    answer.output = answer.output.split_inclusive('\n').filter(timeless).collect();
    // The messages of libpng are not an interface.
    answer.error = answer.error.split_inclusive('\n').filter(|line| !line.starts_with("libpng")).collect();
    (answer, stamp(&path) != before)
}

pub fn check_lazy() {
    let Some(pair) = pair() else { return };
    let theirs = pair.theirs.as_ref().expect("it is installed");
    // A column of a day in 400 pixels is 216 seconds.
    let (new, old) = (Duration::from_secs(60), Duration::from_secs(300));
    let check = |file: &str, more: &str, age: Duration, drawn: bool| {
        let [ours, theirs] = [&pair.ours, theirs].map(|program| lazily(program, file, more, age));
        assert_eq!(ours, theirs, "{file} {more} {age:?}");
        assert_eq!(ours.1, drawn, "{file} {more} {age:?}");
    };
    check("x.png", "", new, true);
    check("x.png", "", new, false);
    check("x.png", "", old, true);
    check("x.png", "-w 200", old, false);
    check("x.png", "PRINT:a:MAX:%lf", new, false);
    check("x.svg", "-a SVG", new, true);
    check("x.svg", "-a SVG", new, false);
    for directory in pair.directories() {
        std::fs::write(directory.join("x.png"), "no picture").expect("a file");
    }
    check("x.png", "", new, true);
}

pub fn check_surroundings() {
    let Some(pair) = pair() else { return };
    let theirs = pair.theirs.as_ref().expect("it is installed");
    let told = |program: &Program, arguments: &str| {
        let mut words = graph(arguments);
        words[0] = "graphv".to_string();
        program.run(&words, b"")
    };
    let with = |name: &str, value: &str| {
        [&pair.ours, theirs].map(|program| {
            let mut program = program.clone();
            program.environment.push((name.to_string(), value.to_string()));
            told(&program, "-t Title -v label LINE1:a#ff0000:legend GPRINT:b:MAX:%lf")
        })
    };
    let plain = with("RRD_DEFAULT_FONT", "");
    for font in ["DejaVu Serif Bold", "DejaVu Sans", "DejaVu Sans Mono", "no such family"] {
        let [ours, theirs] = with("RRD_DEFAULT_FONT", font);
        assert_eq!(ours, theirs, "{font}");
        assert!(font != "DejaVu Serif Bold" || ours != plain[0], "the font changes the layout");
    }
    for mode in ["-R normal", "-R light", "-R mono", "-G normal", "-G mono", "-R mono -G mono"] {
        let arguments = format!("{mode} LINE1:a#ff0000:legend");
        assert_eq!(told(&pair.ours, &arguments), told(theirs, &arguments), "{mode}");
    }
    let colours = |mode: &str| {
        let [ours, _] = both(&pair, &format!("{mode} -t Title LINE1:a#ff0000:legend"));
        let mut pixels = ours.pixels;
        pixels.sort_unstable();
        pixels.dedup();
        pixels.len()
    };
    assert!(colours("-R mono") < colours("-R normal"), "texts in one colour only");
}

/// Total memory for an image, in KiB: the largest possible image has 256 MiB, and its file about as much.
const MEMORY_KIB: u32 = 1 << 20;

pub fn check_bounds() {
    let pair = Pair::new();
    let create = format!("create a.rrd -b {START} -s 300 DS:a:GAUGE:600:U:U RRA:AVERAGE:0.5:1:600");
    assert_eq!(pair.ours.run(&words(&create), b"").status, Some(0));
    let shell = Program::new(Path::new("/bin/sh"), &pair.ours.directory);
    let run = |file: &str, arguments: &str| {
        let path = pair.ours.path().display();
        let script =
            format!("ulimit -v {MEMORY_KIB}; exec '{path}' graph {file} -s {START} -e {END} {arguments}");
        let answer = shell.run(&["-c", &script], b"");
        assert!(matches!(answer.status, Some(0 | 1)), "{file} {arguments:.200}: {answer:?}");
        answer
    };
    let shapes = "DEF:a=a.rrd:a:AVERAGE AREA:a#ff0000 LINE1:a#0000ff:x";
    let thousand: String = (0..1000)
        .map(|number| {
            format!(" DEF:a{number}=a.rrd:a:AVERAGE:step={} AREA:a{number}#ff0000::STACK", 300 + number)
        })
        .collect();
    for arguments in [
        format!("-w 100000 -h 100 {shapes}"),
        format!("-w 100 -h 100000 {shapes}"),
        format!("-w 32000 -h 2000 {shapes}"),
        format!("-w 100000 -h 100000 {shapes}"),
        format!("-w 2000000000 -h 2000000000 {shapes}"),
        format!("-m 1000 {shapes}"),
        format!("-w 1000 {thousand}"),
        format!("-w 30000 {thousand}"),
        format!("-n DEFAULT:9999 -t Title {shapes}"),
        format!("-y 1e-9:1 -l 0 -u 1e9 {shapes}"),
        format!("-x SECOND:1:SECOND:1:SECOND:1:0:%X {shapes}"),
    ] {
        run("x.png", &arguments);
        run("x.svg", &format!("-a SVG {arguments}"));
    }
}

pub fn check_daemon() {
    let Some(pair) = pair() else { return };
    let theirs = pair.theirs.as_ref().expect("it is installed");
    let place = tempfile::tempdir().expect("a directory");
    let daemon = Rrdcached::over(place.path(), &[]).expect("rrdcached is installed");
    let socket = daemon.socket().display();
    let row = END + 300;
    for directory in pair.directories() {
        let file = directory.join("a.rrd");
        let update = format!("update {} --daemon unix:{socket} {row}:4711:1", file.display());
        assert_eq!(theirs.run(&words(&update), b"").status, Some(0));
    }
    let check = |arguments: &str, want: &str| {
        let line = format!("graph x.png -s {END} -e {row} {arguments} PRINT:a:LAST:%.0lf LINE1:a#ff0000");
        let answers = [&pair.ours, theirs].map(|program| {
            let mut answer = program.run(&words(&line), b"");
            answer.error = pair.normal(&answer.error);
            answer
        });
        assert_eq!(answers[0], answers[1], "{arguments}");
        let text = if want.is_empty() { &answers[0].error } else { &answers[0].output };
        assert!(text.contains(want), "{arguments}: {answers:?}");
    };
    // Updates pending in the daemon are visible only through it.
    check("DEF:a=a.rrd:a:AVERAGE", "nan");
    check(r"DEF:a=a.rrd:a:AVERAGE:daemon=unix\:/nowhere/at/all", "");
    check(&format!(r"DEF:a=a.rrd:a:AVERAGE:daemon=unix\:{socket}"), "4711");
    let update = format!("{}:42:1", row + 300);
    for directory in pair.directories() {
        let file = directory.join("a.rrd");
        let update = format!("update {} --daemon unix:{socket} {update}", file.display());
        assert_eq!(theirs.run(&words(&update), b"").status, Some(0));
    }
    check(&format!("--daemon unix:{socket} -e {} DEF:a=a.rrd:a:AVERAGE", row + 300), "42");
}
