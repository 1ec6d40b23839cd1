//! The request as protobuf: read in place. Fields may come in any order, so a message is gone through once for what its parts need,
//! and again for the parts.

use super::protobuf::{Message, Wire};
use super::{
    ATTRIBUTES_MAX, Attribute, Giver, Metric, MetricKind, OtlpAnswer, OtlpError, Point, Temporality,
};
use crate::number::Number;
use crate::refusal::Sink;

/// Reads a request.
///
/// # Errors
/// When its form is broken; what came before has been given then.
pub fn read_protobuf(body: &[u8], sink: &mut dyn Sink) -> Result<OtlpAnswer, OtlpError> {
    let mut giver = Giver::new(sink);
    let mut fields = Message::new(body).fields();
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            resource(value.message(), &mut giver)?;
        }
    }
    Ok(giver.answer)
}

fn resource(message: Message<'_>, giver: &mut Giver<'_>) -> Result<(), OtlpError> {
    let mut shared = Vec::new();
    let mut fields = message.fields();
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            attributes(value.message(), 1, &mut shared)?;
        }
    }
    let mut fields = message.fields();
    while let Some((number, value)) = fields.next()? {
        if number == 2 {
            let mut scope = value.message().fields();
            while let Some((number, value)) = scope.next()? {
                if number == 2 {
                    metric(value.message(), &shared, giver)?;
                }
            }
        }
    }
    Ok(())
}

fn metric(message: Message<'_>, shared: &[Attribute<'_>], giver: &mut Giver<'_>) -> Result<(), OtlpError> {
    let mut metric = Metric::default();
    let mut fields = message.fields();
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            metric.name = value.text()?;
        }
    }
    let mut fields = message.fields();
    while let Some((number, value)) = fields.next()? {
        let kind = match number {
            5 => MetricKind::Gauge,
            7 => MetricKind::Sum,
            9 => MetricKind::Histogram,
            10 => MetricKind::ExponentialHistogram,
            11 => MetricKind::Summary,
            _ => continue,
        };
        points(metric, kind, value.message(), shared, giver)?;
    }
    Ok(())
}

fn points(
    mut metric: Metric<'_>,
    kind: MetricKind,
    data: Message<'_>,
    shared: &[Attribute<'_>],
    giver: &mut Giver<'_>,
) -> Result<(), OtlpError> {
    let mut fields = data.fields();
    while let Some((number, value)) = fields.next()? {
        match number {
            2 => metric.temporality = Temporality::of_number(value.number()),
            3 => metric.is_monotonic = value.number() != 0,
            _ => {}
        }
    }
    let attribute_field = match kind {
        MetricKind::Histogram => 9,
        MetricKind::ExponentialHistogram => 1,
        MetricKind::Gauge | MetricKind::Sum | MetricKind::Summary => 7,
    };
    let (mut own, mut quantiles) = (Vec::new(), Vec::new());
    let mut fields = data.fields();
    while let Some((number, value)) = fields.next()? {
        if number != 1 {
            continue;
        }
        giver.begin_point()?;
        own.clear();
        quantiles.clear();
        attributes(value.message(), attribute_field, &mut own)?;
        let point = point(kind, value.message(), &mut quantiles)?;
        giver.give(&metric, kind, &point, [&own, shared], &quantiles);
    }
    Ok(())
}

fn point(
    kind: MetricKind,
    message: Message<'_>,
    quantiles: &mut Vec<(f64, f64)>,
) -> Result<Point, OtlpError> {
    use MetricKind::{ExponentialHistogram, Gauge, Histogram, Sum, Summary};
    let mut point = Point::default();
    let mut fields = message.fields();
    while let Some((number, value)) = fields.next()? {
        match (kind, number) {
            (_, 3) => point.time = value.number(),
            (Gauge | Sum, 4) => point.value = Some(Number::Float(value.double())),
            (Gauge | Sum, 6) => point.value = Some(Number::from(value.number().cast_signed())),
            (Histogram | ExponentialHistogram | Summary, 4) => point.count = value.number(),
            (Histogram | ExponentialHistogram | Summary, 5) => point.sum = Some(value.double()),
            (Histogram, 6) | (ExponentialHistogram, 8 | 9) => {
                point.has_buckets |= !value.message().is_empty();
            }
            (Summary, 6) => quantiles.push(quantile(value.message())?),
            (Histogram | ExponentialHistogram, 10) | (Gauge | Sum | Summary, 8) => {
                point.flags = value.number() as u32;
            }
            _ => {}
        }
    }
    Ok(point)
}

fn quantile(message: Message<'_>) -> Result<(f64, f64), OtlpError> {
    let mut pair = (0.0, 0.0);
    let mut fields = message.fields();
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => pair.0 = value.double(),
            2 => pair.1 = value.double(),
            _ => {}
        }
    }
    Ok(pair)
}

/// Adds the attributes in a field of a message, up to one more than may be.
fn attributes<'a>(message: Message<'a>, field: u64, found: &mut Vec<Attribute<'a>>) -> Result<(), OtlpError> {
    let mut fields = message.fields();
    while let Some((number, value)) = fields.next()? {
        let Wire::Bytes(pair) = value else { continue };
        if number != field || found.len() > ATTRIBUTES_MAX {
            continue;
        }
        let (mut key, mut text) = ("", None);
        let mut parts = pair.fields();
        while let Some((number, value)) = parts.next()? {
            match number {
                1 => key = value.text()?,
                2 => text = any_value(value.message())?,
                _ => {}
            }
        }
        if let Some(text) = text {
            found.push((key.into(), text));
        }
    }
    Ok(())
}

/// A text, truth value or number; lists, maps and bytes are no labels.
fn any_value(message: Message<'_>) -> Result<Option<std::borrow::Cow<'_, str>>, OtlpError> {
    let mut found = None;
    let mut fields = message.fields();
    while let Some((number, value)) = fields.next()? {
        found = match number {
            1 => Some(value.text()?.into()),
            2 => Some(if value.number() == 0 { "false" } else { "true" }.into()),
            3 => Some(value.number().cast_signed().to_string().into()),
            4 => Some(value.double().to_string().into()),
            _ => None,
        };
    }
    Ok(found)
}
