//! Each page of `docs/format` and `docs/protocol` against the constants of the code that it describes. (`docs/format/log.md`
//! and the tables of `docs/format/segment.md` are checked beside their code, by tests of `store`.)

use roundel_tidy::constants::{Constants, collect, fill};
use roundel_tidy::{files, read};

/// A page, the source files whose constants it states, and what it says, with `{EXPRESSION}` for values.
struct Page {
    document: &'static str,
    sources: &'static [&'static str],
    lines: &'static [&'static str],
    /// Every constant whose name starts like this is in one of the lines.
    complete: &'static [&'static str],
}

const PAGES: &[Page] = &[
    Page {
        document: "docs/format/store.md",
        sources: &["/src/checkpoint.rs", "/src/manifest.rs"],
        lines: &[
            "`roundel-manifest {VERSION}`",
            "| {MAGIC}2 | page",
            "The first 8 bytes are `{MAGIC}`",
            "each with a head of {FRAME_HEAD_BYTES} bytes",
            "| {OWNER_AT} | 4 | owner |",
            "| 0 | 4 | kind: {KIND_PAGE} page, {KIND_END} end |",
            "| {FRAME_HEAD_BYTES - 4} | 4 | CRC32C of bytes 0 to {FRAME_HEAD_BYTES - 5} and",
            "A page holds {PAGE_IDS} ids",
        ],
        complete: &["KIND_"],
    },
    Page {
        document: "docs/format/segment.md",
        sources: &[
            "/src/segment.rs",
            "/segment/block.rs",
            "/segment/footer.rs",
            "/segment/merge.rs",
            "/column/codec.rs",
        ],
        lines: &[
            "Compatibility: version {VERSION},",
            "| {HEAD_MAGIC_AT} | magic | 8 | `{HEAD_MAGIC}` |",
            "| {HEAD_VERSION_AT} | version | 4 | {HEAD_VERSION}, then",
            "| {TRAILER_MAGIC_AT} | magic | 8 | `{TRAILER_MAGIC}` |",
            "| {TRAILER_VERSION_AT} | version | 4 | {VERSION} |",
            "Limits: {RUN_ROWS_MAX} rows per run",
            "make runs of {JOINED_ROWS} rows and fill gaps of up to {GAP_ROWS_MAX} rows",
            "{KEY_SAME} same RRD and source as the previous run; {KEY_NEXT_SLOT} the next slot; {KEY_LATER_SLOT} a later slot; \
             {KEY_WHOLE} complete key",
            "or {LENGTH_FOLLOWS} for more |",
            "| {TAG_UNKNOWN} | all values are the unknown NaN",
            "| {TAG_CONSTANT} | all values are the same |",
            "| {TAG_RAW} | raw |",
            "| {TAG_ORDERED} | ordered bit patterns |",
            "| {TAG_ORDERED_SHIFTED} | the same, shifted |",
            "| {TAG_RUNS} | runs of equal values |",
            "| {TAG_GAPS} | gaps |",
            "| {TAG_SPARSE} | gaps as a mask |",
            "| {TAG_SCALED}-{TAG_SCALED + 15} | fractions |",
        ],
        complete: &["TAG_"],
    },
    Page {
        document: "docs/format/journal.md",
        sources: &["/journal.rs"],
        lines: &[
            "| 0 | {OFFSET_VERSION} | magic | `{MAGIC}` |",
            "| {OFFSET_VERSION} | {OFFSET_SHARD - OFFSET_VERSION} | version | {VERSION} |",
            "| {OFFSET_SHARD} | {OFFSET_GENERATION - OFFSET_SHARD} | shard |",
            "| {OFFSET_GENERATION} | {OFFSET_ID - OFFSET_GENERATION} | generation |",
            "| {OFFSET_ID} | {OFFSET_RESERVED - OFFSET_ID} | id |",
            "| {OFFSET_RESERVED} | {OFFSET_CHECKSUM - OFFSET_RESERVED} | reserved |",
            "| {OFFSET_CHECKSUM} | {HEADER_BYTES - OFFSET_CHECKSUM} | CRC32C | Of bytes 0 to {OFFSET_CHECKSUM - 1}. |",
            "| 0 | 4 | body bytes | 1 to {FRAME_BYTES_MAX}. |",
            "| {FRAME_HEADER_BYTES} | n | body |",
            "| 0 | 1 | kind | {KIND_UPDATE} update, {KIND_WRITTEN} written, {KIND_FORGOTTEN} forgotten, {KIND_STREAM} stream.",
            "| {KIND_UPDATE} update |",
            "| {KIND_WRITTEN} written |",
            "| {KIND_FORGOTTEN} forgotten |",
            "| {KIND_STREAM} stream |",
        ],
        complete: &["KIND_", "OFFSET_"],
    },
    Page {
        document: "docs/format/replicated-log.md",
        sources: &["/cluster/src/message.rs"],
        lines: &[
            "| 0 | 3 | magic | `{MAGIC}` |",
            "| 3 | 1 | version | {VERSION}.",
            "| {CRC_AT} | 4 | CRC32C | Of all bytes from byte {COVERED_FROM} on. |",
            "| {COVERED_FROM} | 1 | kind |",
            "| {ENVELOPE_BYTES} | n | body | By kind, below. With the {ENVELOPE_BYTES} bytes before it",
        ],
        complete: &[],
    },
    Page {
        document: "docs/format/replicated-log.md",
        sources: &["/cluster/src/log.rs", "/log/directory/partition.rs", "/log/directory/about.rs"],
        lines: &[
            "before it at most {MESSAGE_BYTES_MAX} bytes",
            "one entry per line: `{FIRST_LINE}`",
            "| 0 | {OFFSET_VERSION} | magic | `{MAGIC}` |",
            "| {OFFSET_VERSION} | {OFFSET_PARTITION - OFFSET_VERSION} | version | {VERSION} |",
            "| {OFFSET_PARTITION} | {OFFSET_IDENTITY - OFFSET_PARTITION} | partition |",
            "| {OFFSET_IDENTITY} | {OFFSET_CHECKSUM - OFFSET_IDENTITY} | identity |",
            "| {OFFSET_CHECKSUM} | 4 | CRC32C | Of bytes 0 to {OFFSET_CHECKSUM - 1}. |",
            "| {OFFSET_MARK} | 8 | end |",
            "message, from byte {OFFSET_MARK + MARK_BYTES} on",
            "| {FRAME_HEAD_BYTES} | n | body | The message. |",
        ],
        complete: &["OFFSET_"],
    },
    Page {
        document: "docs/format/placeholder.md",
        sources: &["/src/placeholder.rs"],
        lines: &[
            "| 0 | {OFFSET_VERSION} | magic | `{MAGIC}`.",
            "| {OFFSET_VERSION} | {OFFSET_NAME_BYTES - OFFSET_VERSION} | version | {VERSION}.",
            "| {OFFSET_NAME_BYTES} | {OFFSET_IDENTITY - OFFSET_NAME_BYTES} | name bytes |",
            "| {OFFSET_IDENTITY} | {OFFSET_CHECKSUM - OFFSET_IDENTITY} | store identity |",
            "| {OFFSET_CHECKSUM} | {OFFSET_RESERVED - OFFSET_CHECKSUM} | CRC32C |",
            "| {OFFSET_RESERVED} | {HEADER_BYTES - OFFSET_RESERVED} | reserved |",
            "| {HEADER_BYTES} | n | name |",
        ],
        complete: &["OFFSET_"],
    },
    Page {
        document: "docs/format/rrd.md",
        sources: &["/codec/file.rs"],
        lines: &[
            "| stat_head | {STAT_HEAD_BYTES} | 1 |",
            "| ds_def | {DS_DEF_BYTES} | one per data source |",
            "| rra_def | {RRA_DEF_BYTES} | one per archive |",
            "| pdp_prep | {PDP_PREP_BYTES} | one per data source |",
            "| cdp_prep | {CDP_PREP_BYTES} | one per archive and data source",
            "| rra_ptr | {RRA_PTR_BYTES} | one per archive |",
            "the double {FLOAT_COOKIE};",
            "above 000{VERSION_MAX} is refused",
            "| 0 | {NAME_BYTES} | name |",
            "| {NAME_BYTES} | {NAME_BYTES} | type |",
            "| 0 | {NAME_BYTES} | CF |",
            "| {PARAMETERS_AT} | 8 | heartbeat |",
            "| {PARAMETERS_AT} | {RRA_DEF_BYTES - PARAMETERS_AT} | parameters | ten words",
            "in the {DS_DEF_BYTES - PARAMETERS_AT} bytes from offset {PARAMETERS_AT} on: up to {COMPUTE_NODES_MAX} nodes",
            "then the operator {COMPUTE_END}, which ends it",
            "window length, at most {FAILURES_WINDOW_MAX} |",
            "| 000{VERSION_MICROSECONDS} | microseconds;",
        ],
        complete: &["STAT_", "DS_", "RRA_", "PDP_", "CDP_", "COMPUTE_", "VERSION_"],
    },
    Page {
        document: "docs/protocol/frames.md",
        sources: &[
            "/protocol/src/frames.rs",
            "/protocol/src/frames/request.rs",
            "/protocol/src/frames/answer.rs",
        ],
        lines: &[
            "# Frames, versions 1 and {VERSION}",
            "sends the line `FRAMES {VERSION}`",
            "    0 Frames of version {VERSION} from here on\n",
            "| 0 | {OFFSET_KIND} | bytes of the body: up to {REQUEST_BYTES_MAX} of a request, {ANSWER_BYTES_MAX} of an answer |",
            "| {OFFSET_KIND} | {OFFSET_RESERVED - OFFSET_KIND} | kind |",
            "| {OFFSET_RESERVED} | {OFFSET_NUMBER - OFFSET_RESERVED} | zero |",
            "| {OFFSET_NUMBER} | {HEADER_BYTES - OFFSET_NUMBER} | a number",
            "| {HEADER_BYTES} | | the body |",
            "| {UPDATE} | client | updates | count (4; 1 to {UPDATES_MAX})",
            "| {FETCH} | client | rows |",
            "| {COMMAND} | client | a command |",
            "| {UPDATED:x} | daemon | answer to {UPDATE} |",
            "| {ROWS:x} | daemon | answer to {FETCH} |",
            "| {TEXT:x} | daemon | answer to {COMMAND} |",
            "| {REFUSED:x} | daemon | refusal",
            "| {ENDED:x} | daemon | the end |",
        ],
        complete: &["OFFSET_"],
    },
    Page {
        document: "docs/protocol/agents.md",
        sources: &[
            "/protocol/src/frames/agent.rs",
            "/protocol/src/frames/agent/session.rs",
            "/protocol/src/frames/agent/block.rs",
        ],
        lines: &[
            "# Agents: frames, version {VERSION}",
            "up to {BLOCK_PLAIN_BYTES_MAX + 65536} bytes from an agent, {STORE_BODY_BYTES_MAX} from the store",
            "| {HELLO:x} | agent | HELLO |",
            "1 to {NAME_BYTES_MAX} printable",
            "| {BLOCK:x} | agent | BLOCK |",
            "| {ALIVE:x} | agent | ALIVE |",
            "| {WELCOME:x} | store | WELCOME |",
            "| {APPLIED:x} | store | APPLIED |",
            "| {READINGS_REFUSED:x} | store | READINGS REFUSED |",
            "(2; up to {REFUSALS_LISTED_MAX})",
            "| {SESSION_ENDED:x} | store | the end |",
            "| {OFFSET_PLAIN_BYTES} | 4 | bytes of the content: up to {BLOCK_PLAIN_BYTES_MAX} |",
            "| {OFFSET_CHECKSUM} | 4 | CRC32C",
            "| {OFFSET_FLAGS} | 1 | flags: {FLAG_BEGINS} = a context begins |",
            "| {OFFSET_CONTENT} | | the content",
            "(1 to {VALUES_MAX})",
            "| {KIND_UNKNOWN} | unknown |",
            "| {KIND_UNSIGNED} | whole number",
            "| {KIND_SIGNED} | signed",
            "| {KIND_WHOLE} | float without",
            "| {KIND_FLOAT} | float |",
            "| {KIND_TEXT} | text |",
            "| {KIND_DROPPED} | unknown, in place",
            "up to {CONTEXT_RRDS_MAX} RRDs with {CONTEXT_VALUES_MAX} values, and {CONTEXT_BYTES_MAX}\nbytes of names",
        ],
        complete: &["OFFSET_", "KIND_", "FLAG_"],
    },
];

#[test]
fn pages_state_the_constants_of_the_code() {
    let sources = files(&["crates"], &[".rs"]);
    let mut wrong = Vec::new();
    for page in PAGES {
        let mut constants = Constants::new();
        for ending in page.sources {
            let found: Vec<_> = sources.iter().filter(|(name, _)| name.ends_with(ending)).collect();
            assert!(!found.is_empty(), "{} describes {ending}, which is not there", page.document);
            found.iter().for_each(|(_, text)| collect(text, &mut constants));
        }
        let document = read(page.document);
        for line in page.lines {
            let line = fill(line, &constants).unwrap_or_else(|name| {
                panic!("{}: {name} is no constant of {:?}", page.document, page.sources)
            });
            if !document.contains(&line) {
                wrong.push(format!("{} does not say: {line}", page.document));
            }
        }
        for name in constants.keys().filter(|name| page.complete.iter().any(|start| name.starts_with(start)))
        {
            if !page.lines.iter().any(|line| line.contains(name.as_str())) {
                wrong.push(format!("nothing checks that {} says {name}", page.document));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
