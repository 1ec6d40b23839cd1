//! A compact encoding of definitions: 65 bytes for one source and three archives.
//!
//! Two definitions have equal bytes exactly when they are equal bit for bit. Kinds are numbered from 1 by the
//! tables here; a new kind takes the next number, and an old number is never reused.

use rrd::definition::{
    ComputeNode, ComputeProgram, Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra,
};

use crate::codec::{Cursor, DecodeError, put_counted, put_double, put_signed};
use rrd::codec::varint;

/// First byte of a definition: the version of this encoding.
pub const DEFINITION_FORMAT: u8 = 1;

/// Numbers of the source types that clients send values for.
const DS_TYPES: [(u8, DsType); 6] = [
    (1, DsType::Gauge),
    (2, DsType::Counter),
    (3, DsType::Derive),
    (4, DsType::Absolute),
    (5, DsType::Dcounter),
    (6, DsType::Dderive),
];
/// Number of COMPUTE.
const COMPUTE: u8 = 7;

/// Numbers of the plain consolidation functions.
const PLAIN: [(u8, PlainCf); 4] =
    [(1, PlainCf::Average), (2, PlainCf::Min), (3, PlainCf::Max), (4, PlainCf::Last)];
/// Numbers of the other functions; the multiplicative or deviation form has the next one.
const PREDICT: u8 = 5;
const SEASONAL: u8 = 7;
const DEV_PREDICT: u8 = 9;
const FAILURES: u8 = 10;

/// Encodes a definition; the bytes also serve as its key.
pub fn encode_definition(definition: &Definition) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + 32 * definition.ds.len() + 16 * definition.rra.len());
    put_definition(&mut out, definition);
    out
}

/// Decodes what [`encode_definition`] wrote.
///
/// # Errors
/// When the bytes are malformed.
pub fn decode_definition(bytes: &[u8]) -> Result<Definition, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let definition = take_definition(&mut cursor)?;
    cursor.end()?;
    Ok(definition)
}

/// Appends a definition.
pub fn put_definition(out: &mut Vec<u8>, definition: &Definition) {
    out.extend_from_slice(&[DEFINITION_FORMAT, definition.version]);
    varint::put(out, u64::from(definition.units_per_second));
    varint::put(out, definition.step);
    varint::put(out, definition.ds.len() as u64);
    for ds in &definition.ds {
        put_ds(out, ds);
    }
    varint::put(out, definition.rra.len() as u64);
    for rra in &definition.rra {
        put_rra(out, rra);
    }
}

/// Decodes a definition at the cursor.
///
/// # Errors
/// When the bytes are malformed.
pub fn take_definition(cursor: &mut Cursor<'_>) -> Result<Definition, DecodeError> {
    let format_at = cursor.bad("definition format 1");
    if cursor.byte(format_at.expected)? != DEFINITION_FORMAT {
        return Err(format_at);
    }
    let version = cursor.byte("the .rrd version")?;
    let units_per_second = nonzero(cursor, "units per second, not 0")?;
    let units_per_second = u32::try_from(units_per_second).map_err(|_| format_at)?;
    let step = nonzero(cursor, "a step that is not 0")?;
    let ds = take_list(cursor, "the number of sources, not 0", take_ds)?;
    let rra = take_list(cursor, "the number of archives, not 0", take_rra)?;
    Ok(Definition { version, units_per_second, step, ds, rra })
}

fn take_list<T>(
    cursor: &mut Cursor<'_>,
    expected: &'static str,
    take: fn(&mut Cursor<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count_at = cursor.bad(expected);
    // A source or an archive takes at least three bytes.
    let count = cursor.count(3, expected)?;
    if count == 0 {
        return Err(count_at);
    }
    (0..count).map(|_| take(cursor)).collect()
}

fn nonzero(cursor: &mut Cursor<'_>, expected: &'static str) -> Result<u64, DecodeError> {
    let error = cursor.bad(expected);
    cursor.varint(expected).and_then(|value| if value == 0 { Err(error) } else { Ok(value) })
}

fn put_ds(out: &mut Vec<u8>, ds: &Ds) {
    put_counted(out, ds.name.as_bytes());
    match &ds.kind {
        DsKind::Fed { ds_type, heartbeat, min, max } => {
            let number = DS_TYPES.iter().find(|(_, known)| known == ds_type).map_or(0, |(number, _)| *number);
            out.push(number);
            varint::put(out, *heartbeat);
            put_double(out, *min);
            put_double(out, *max);
        }
        DsKind::Compute(program) => {
            out.push(COMPUTE);
            varint::put(out, program.nodes.len() as u64);
            for node in &program.nodes {
                out.push(node.op);
                put_signed(out, i64::from(node.operand));
            }
        }
    }
}

fn take_ds(cursor: &mut Cursor<'_>) -> Result<Ds, DecodeError> {
    let name = cursor.text("the name of a source")?.to_owned();
    let kind_at = cursor.bad("the type of a source");
    let kind = match cursor.byte(kind_at.expected)? {
        COMPUTE => DsKind::Compute(take_program(cursor)?),
        number => {
            let ds_type = DS_TYPES.iter().find(|(known, _)| *known == number).ok_or(kind_at)?.1;
            DsKind::Fed {
                ds_type,
                heartbeat: cursor.varint("a heartbeat")?,
                min: cursor.double("a minimum")?,
                max: cursor.double("a maximum")?,
            }
        }
    };
    Ok(Ds { name, kind })
}

fn take_program(cursor: &mut Cursor<'_>) -> Result<ComputeProgram, DecodeError> {
    let count = cursor.count(2, "the number of nodes")?;
    let nodes = (0..count)
        .map(|_| {
            let op = cursor.byte("an operator")?;
            let operand_at = cursor.bad("an operand of 16 bits");
            let operand = i16::try_from(cursor.signed(operand_at.expected)?).map_err(|_| operand_at)?;
            Ok(ComputeNode { op, operand })
        })
        .collect::<Result<_, _>>()?;
    Ok(ComputeProgram { nodes })
}

fn put_rra(out: &mut Vec<u8>, rra: &Rra) {
    match &rra.cf {
        Consolidation::Plain { cf, xff } => {
            out.push(PLAIN.iter().find(|(_, known)| known == cf).map_or(0, |(number, _)| *number));
            put_double(out, *xff);
        }
        Consolidation::Predict { multiplicative, alpha, beta, seasonal, period } => {
            out.push(PREDICT + u8::from(*multiplicative));
            put_double(out, *alpha);
            put_double(out, *beta);
            varint::put(out, *seasonal as u64);
            put_double(out, *period);
        }
        Consolidation::Seasonal { deviation, gamma, smoothing_window, predict, smooth_index } => {
            out.push(SEASONAL + u8::from(*deviation));
            put_double(out, *gamma);
            put_double(out, *smoothing_window);
            varint::put(out, *predict as u64);
            varint::put(out, *smooth_index);
        }
        Consolidation::DevPredict { devseasonal } => {
            out.push(DEV_PREDICT);
            varint::put(out, *devseasonal as u64);
        }
        Consolidation::Failures { delta_pos, delta_neg, devseasonal, window_length, threshold } => {
            out.push(FAILURES);
            put_double(out, *delta_pos);
            put_double(out, *delta_neg);
            varint::put(out, *devseasonal as u64);
            varint::put(out, *window_length);
            varint::put(out, *threshold);
        }
    }
    varint::put(out, rra.pdp_per_row);
    varint::put(out, rra.row_count);
}

fn take_rra(cursor: &mut Cursor<'_>) -> Result<Rra, DecodeError> {
    const ARCHIVE: &str = "the index of an archive";
    let cf_at = cursor.bad("a consolidation function");
    let cf = match cursor.byte(cf_at.expected)? {
        number @ (PREDICT | 6) => Consolidation::Predict {
            multiplicative: number != PREDICT,
            alpha: cursor.double("alpha")?,
            beta: cursor.double("beta")?,
            seasonal: cursor.number(ARCHIVE)?,
            period: cursor.double("a period")?,
        },
        number @ (SEASONAL | 8) => Consolidation::Seasonal {
            deviation: number != SEASONAL,
            gamma: cursor.double("gamma")?,
            smoothing_window: cursor.double("a smoothing window")?,
            predict: cursor.number(ARCHIVE)?,
            smooth_index: cursor.varint("a smoothing row")?,
        },
        DEV_PREDICT => Consolidation::DevPredict { devseasonal: cursor.number(ARCHIVE)? },
        FAILURES => Consolidation::Failures {
            delta_pos: cursor.double("an upper bound")?,
            delta_neg: cursor.double("a lower bound")?,
            devseasonal: cursor.number(ARCHIVE)?,
            window_length: cursor.varint("a window")?,
            threshold: cursor.varint("a threshold")?,
        },
        number => Consolidation::Plain {
            cf: PLAIN.iter().find(|(known, _)| *known == number).ok_or(cf_at)?.1,
            xff: cursor.double("xff")?,
        },
    };
    let pdp_per_row = nonzero(cursor, "PDPs per row, not 0")?;
    let row_count = nonzero(cursor, "a number of rows, not 0")?;
    Ok(Rra { cf, pdp_per_row, row_count })
}
