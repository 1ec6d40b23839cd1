//! A graph as a picture.

use graph::language::drawn::Drawn;
use graph::language::{Element, Script};
use graph::picture::compose::{self, Input};
use graph::picture::options::Options;

use super::{Computed, Made, failure, lazy};
use crate::Tool;
use crate::failure::{Done, Failure};

/// Most values of all that is drawn, a gigabyte of them: RRDtool's limit is where its memory ends.
const VALUES_MAX: u64 = 1 << 27;

/// What pictures are drawn with; kept between the commands of a session. Empty until the first picture.
#[derive(Default)]
pub struct Studio {
    fonts: paint::Fonts,
    kit: paint::Kit,
}

/// Refuses what no memory holds.
///
/// # Errors
/// RRDtool's text.
pub(super) fn check_size(script: &Script, options: &Options) -> Done {
    let shapes = script
        .elements
        .iter()
        .filter(|element| matches!(element, Element::Drawn(Drawn::Shape(_) | Drawn::Tick(_))));
    match u64::from(options.width).saturating_mul(shapes.count() as u64) > VALUES_MAX {
        true => Err(Failure::new("malloc data_proc")),
        false => Ok(()),
    }
}

/// Draws it, unless what is there is new enough.
///
/// # Errors
/// RRDtool's text.
pub(super) fn make(tool: &mut Tool, computed: &Computed<'_>) -> Done<Made> {
    let Computed { asked, script, frame, data, dates, calendar, now } = *computed;
    let options = &asked.options;
    let span = (asked.start, asked.end);
    let fresh = options.lazy
        && asked.file != b"-"
        && lazy::is_fresh(tool.surroundings.path(asked.file)?, options, span, now);
    let input = Input {
        script,
        frame,
        data,
        options,
        typesetter: &tool.studio.fonts,
        times: dates,
        calendar,
        first_weekday: tool.surroundings.first_weekday,
        painted: !fresh,
    };
    let picture = compose::draw(&input).map_err(failure)?;
    let painted = picture.scene.as_ref().map(|scene| {
        // Compat: whatever the reason, it is said to be unsaved.
        paint::image(scene, options.format, &mut tool.studio.kit).ok()
    });
    let unsaved = matches!(painted, Some(None));
    let bytes = painted.flatten();
    let sized = picture.size != (0, 0);
    Ok(Made { bytes, unsaved, sized, size: picture.size, printed: picture.printed, report: picture.report })
}
