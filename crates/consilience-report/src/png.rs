//! Pixels of a figure.

use crate::Error;
use crate::letters::outlined;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// No picture has more pixels to a side than this.
const MOST: f32 = 16_384.0;

/// A stand-alone figure as a PNG file, in its light colours; `scale` pixels for each of its own.
///
/// # Errors
/// If the text is no SVG, or the picture would be too large.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
    let tree = Tree::from_str(&outlined(svg)?, &Options::default())
        .map_err(|error| Error::Png(error.to_string()))?;
    let size = tree.size();
    let (width, height) = (size.width() * scale, size.height() * scale);
    let fits = |side: f32| side.is_finite() && (1.0..=MOST).contains(&side);
    if !fits(width) || !fits(height) {
        return Err(Error::Png(format!(
            "{width:.0} × {height:.0} pixels; at most {MOST} to a side"
        )));
    }
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| Error::Png("there is no memory for it".into()))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| Error::Png(error.to_string()))
}
