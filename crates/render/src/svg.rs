//! Writes SVG that is small, reproducible, and keeps texts as texts.
//!
//! Neighbouring elements with the same attributes share a group, and numbers have no more digits than can be seen. Ids of
//! gradients and clips are hashes of their definitions, so that two pictures in one page cannot disturb each other.
//! Every text has its position and length, so that columns stay aligned in another font.
//!
//! Compat: `width` and `height` are in points, one per pixel, and `viewBox` has RRDtool's size, zoom included.

mod markup;
mod path;
mod text;

use graph::picture::scene::{Cap, Colour, Item, Join, Paint, Path, Point, Scene, Stroke};

use crate::digits::Places;
use crate::steps::{dashes, is_nothing};
use markup::{attribute, content, name_of, paint_attributes};

/// Bytes of a picture besides its items: guessed, for the first allocation.
const HEAD_BYTES: usize = 512;

/// Renders a scene as an SVG document.
pub fn svg(scene: &Scene) -> Vec<u8> {
    let mut writer = Writer {
        places: Places::of_zoom(scene.zoom),
        out: String::with_capacity(HEAD_BYTES + scene.items.len() * 64),
        group: Group::default(),
        clipped: false,
    };
    writer.head(scene);
    for item in &scene.items {
        writer.item(item);
    }
    writer.unclip();
    if scene.zoom != 1.0 {
        writer.out.push_str("</g>\n");
    }
    writer.out.push_str("</svg>\n");
    writer.out.into_bytes()
}

/// The document written so far.
struct Writer {
    places: Places,
    out: String,
    group: Group,
    clipped: bool,
}

/// Elements with the same attributes that are not yet written.
#[derive(Default)]
struct Group {
    /// Their common attributes, ` name="value"` each.
    attributes: String,
    /// The elements without these attributes.
    elements: String,
    /// How many.
    count: usize,
    /// Length of `<tag` of the first element in bytes.
    tag_bytes: usize,
    /// Whether the last element is a path that may take more subpaths.
    open_path: bool,
}

impl Writer {
    fn head(&mut self, scene: &Scene) {
        let Writer { out, places, .. } = self;
        let (width, height) = (scene.width * scene.zoom, scene.height * scene.zoom);
        out.push_str(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"",
        );
        places.push(out, width);
        out.push_str("pt\" height=\"");
        places.push(out, height);
        out.push_str("pt\" viewBox=\"0 0 ");
        places.push(out, width);
        out.push(' ');
        places.push(out, height);
        // Cairo's mitre limit, for all elements.
        out.push_str("\" stroke-miterlimit=\"10\"");
        if !scene.smooth_lines {
            out.push_str(" shape-rendering=\"crispEdges\"");
        }
        if !scene.title.is_empty() {
            out.push_str(" role=\"img\"");
        }
        out.push_str(">\n");
        for (tag, text) in [("title", &scene.title), ("desc", &scene.description)] {
            if !text.is_empty() {
                out.push('<');
                out.push_str(tag);
                out.push('>');
                content(out, text);
                out.push_str("</");
                out.push_str(tag);
                out.push_str(">\n");
            }
        }
        if scene.zoom != 1.0 {
            out.push_str("<g transform=\"scale(");
            Places::new(6).push(out, scene.zoom);
            out.push_str(")\">\n");
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Fill { path, paint } => self.fill(path, paint),
            Item::Stroke { path, colour, stroke } => self.stroke(path, *colour, stroke),
            Item::Text { at, turned, layout, colour } => self.text(*at, *turned, layout, *colour),
            Item::Clip { from, to } => self.clip(*from, *to),
            Item::Unclip => self.unclip(),
        }
    }

    fn fill(&mut self, path: &Path, paint: &Paint) {
        let data = path::data(self.places, path, true);
        let mut attributes = String::new();
        match *paint {
            _ if data.is_empty() => return,
            Paint::Solid(colour) if colour.alpha <= 0.0 => return,
            Paint::Solid(colour) => {
                paint_attributes(&mut attributes, "fill", colour);
            }
            Paint::Vertical { from_y, from, to_y, to } => {
                let name = self.gradient((from_y, from), (to_y, to));
                attribute(&mut attributes, "fill", &format!("url(#{name})"));
            }
        }
        self.path(attributes, &data, false);
    }

    fn stroke(&mut self, path: &Path, colour: Colour, stroke: &Stroke) {
        let data = path::data(self.places, path, path.closed);
        if data.is_empty() || colour.alpha <= 0.0 || is_nothing(stroke.width) {
            return;
        }
        let mut attributes = String::new();
        attribute(&mut attributes, "fill", "none");
        paint_attributes(&mut attributes, "stroke", colour);
        let mut number = |name: &str, value: f64, default: f64| {
            if value != default {
                let mut text = String::new();
                self.places.push(&mut text, value);
                attribute(&mut attributes, name, &text);
            }
        };
        number("stroke-width", stroke.width, 1.0);
        let dashes = dashes(stroke);
        number("stroke-dashoffset", if dashes.is_empty() { 0.0 } else { stroke.dash_offset }, 0.0);
        if !dashes.is_empty() {
            let mut text = String::new();
            for &length in dashes {
                if !text.is_empty() {
                    text.push(' ');
                }
                self.places.push(&mut text, length.max(0.0));
            }
            attribute(&mut attributes, "stroke-dasharray", &text);
        }
        match stroke.cap {
            Cap::Butt => {}
            Cap::Round => attribute(&mut attributes, "stroke-linecap", "round"),
            Cap::Square => attribute(&mut attributes, "stroke-linecap", "square"),
        }
        if stroke.join == Join::Round {
            attribute(&mut attributes, "stroke-linejoin", "round");
        }
        // Where lines of one path cross, the colour shows once, so translucent lines are not joined.
        self.path(attributes, &data, colour.alpha >= 1.0);
    }

    /// Adds a path; with `more`, the next path with the same attributes may be joined to it.
    fn path(&mut self, attributes: String, data: &str, more: bool) {
        self.join(attributes);
        if more && self.group.open_path {
            let end = self.group.elements.len() - "\"/>\n".len();
            self.group.elements.truncate(end);
        } else {
            self.begin("path");
            self.group.elements.push_str(" d=\"");
        }
        self.group.elements.push_str(data);
        self.group.elements.push_str("\"/>\n");
        self.group.open_path = more;
    }

    /// Starts a group with `attributes`, unless the current one has them.
    fn join(&mut self, attributes: String) {
        if self.group.attributes != attributes {
            self.flush();
            self.group.attributes = attributes;
        }
    }

    /// Begins an element of the group.
    fn begin(&mut self, tag: &str) {
        if self.group.count == 0 {
            self.group.tag_bytes = 1 + tag.len();
        }
        self.group.count += 1;
        self.group.open_path = false;
        self.group.elements.push('<');
        self.group.elements.push_str(tag);
    }

    /// Writes the group.
    fn flush(&mut self) {
        let group = std::mem::take(&mut self.group);
        match group.count {
            0 => {}
            1 => {
                let (tag, rest) = group.elements.split_at(group.tag_bytes);
                self.out.extend([tag, &group.attributes, rest]);
            }
            _ => self.out.extend(["<g", &group.attributes, ">\n", &group.elements, "</g>\n"]),
        }
    }

    /// Defines a gradient and returns its id.
    fn gradient(&mut self, from: (f64, Colour), to: (f64, Colour)) -> String {
        let mut definition = String::from(" gradientUnits=\"userSpaceOnUse\" x1=\"0\" x2=\"0\"");
        for (name, y) in [("y1", from.0), ("y2", to.0)] {
            let mut text = String::new();
            self.places.push(&mut text, y);
            attribute(&mut definition, name, &text);
        }
        definition.push('>');
        for (offset, colour) in [("0", from.1), ("1", to.1)] {
            definition.push_str("<stop");
            attribute(&mut definition, "offset", offset);
            markup::stop_attributes(&mut definition, colour);
            definition.push_str("/>");
        }
        let name = name_of(&definition);
        self.flush();
        self.out.extend(["<linearGradient id=\"", &name, "\"", &definition, "</linearGradient>\n"]);
        name
    }

    fn clip(&mut self, from: Point, to: Point) {
        self.unclip();
        let definition =
            format!("<path d=\"{}\"/>", path::data(self.places, &Path::rectangle(from, to), true));
        let name = name_of(&definition);
        self.out.extend(["<clipPath id=\"", &name, "\">", &definition, "</clipPath>\n"]);
        self.out.extend(["<g clip-path=\"url(#", &name, ")\">\n"]);
        self.clipped = true;
    }

    fn unclip(&mut self) {
        self.flush();
        if std::mem::take(&mut self.clipped) {
            self.out.push_str("</g>\n");
        }
    }
}
