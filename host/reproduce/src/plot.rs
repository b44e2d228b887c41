//! Plots as SVG. Dots are reduced to pixels, so the size is bounded for any number of points.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 34.0;
/// Height of the legend above the plot, in pixels.
const TOP: f64 = 20.0;
const RIGHT: f64 = 10.0;
/// Width reserved for a name in the legend, in pixels.
const LEGEND: f64 = 130.0;

/// A linear or logarithmic axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// True for a logarithmic axis.
    pub is_log: bool,
    /// First value of a linear axis, unless a data value is lower.
    pub from: f64,
}

impl Axis {
    /// Creates a linear axis that starts at zero.
    pub fn linear(label: &str) -> Axis {
        Axis {
            label: label.to_string(),
            is_log: false,
            from: 0.0,
        }
    }

    /// Creates a linear axis that starts at `from`.
    pub fn from(label: &str, from: f64) -> Axis {
        Axis {
            from,
            ..Axis::linear(label)
        }
    }

    /// Creates a logarithmic axis.
    pub fn log(label: &str) -> Axis {
        Axis {
            label: label.to_string(),
            is_log: true,
            from: 0.0,
        }
    }
}

/// Style of the points of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Separate dots.
    Dot,
    /// A line through the points in the given order.
    Line,
    /// Bars from the axis.
    Bar,
}

/// A series of points.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend; empty for none.
    pub name: String,
    /// Style of the points.
    pub mark: Mark,
    /// Coordinates of the points.
    pub points: Vec<(f64, f64)>,
}

/// Mapping from values to pixels.
struct Scale {
    from: f64,
    to: f64,
    is_log: bool,
    start_px: f64,
    end_px: f64,
}

impl Scale {
    fn over(axis: &Axis, values: impl Iterator<Item = f64> + Clone, px: [f64; 2]) -> Scale {
        let values = values.filter(|value| value.is_finite() && (!axis.is_log || *value > 0.0));
        let most = values.clone().fold(f64::MIN, f64::max);
        let least = values.fold(f64::MAX, f64::min);
        let (from, to) = match axis.is_log {
            _ if most < least => (1.0, 10.0),
            true => (least * 0.8, most * 1.25),
            false => {
                let from = axis.from.min(least);
                let room = (most - from) * 0.05;
                (from, if room > 0.0 { most + room } else { from + 1.0 })
            }
        };
        Scale {
            from,
            to,
            is_log: axis.is_log,
            start_px: px[0],
            end_px: px[1],
        }
    }

    fn px(&self, value: f64) -> f64 {
        let share = match self.is_log {
            true => (value / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        self.start_px + share.clamp(0.0, 1.0) * (self.end_px - self.start_px)
    }

    /// Returns the axis values that get a grid line and a number.
    fn ticks(&self) -> Vec<f64> {
        if self.is_log {
            let first = self.from.log10().floor() as i32;
            let decades = (first..first + 12).map(|exponent| 10f64.powi(exponent));
            let many = self.to / self.from > 1e3;
            let steps: &[f64] = if many { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let ticks = decades.flat_map(|decade| steps.iter().map(move |step| decade * step));
            return ticks
                .filter(|tick| (self.from..=self.to).contains(tick))
                .collect();
        }
        let rough = (self.to - self.from) / 5.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
        let step = step
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (self.from / step).ceil();
        (0..)
            .map(|n| (first + f64::from(n)) * step)
            .take_while(|tick| *tick <= self.to)
            .collect()
    }
}

/// Draws a plot of the given series.
pub fn svg(x: &Axis, y: &Axis, series: &[Series]) -> String {
    let points = series.iter().flat_map(|series| &series.points);
    let right = WIDTH - RIGHT;
    let x_scale = Scale::over(x, points.clone().map(|point| point.0), [LEFT, right]);
    let y_scale = Scale::over(y, points.map(|point| point.1), [HEIGHT - BOTTOM, TOP]);
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
    draw_axes(&mut out, (x, &x_scale), (y, &y_scale));
    for (number, one) in series.iter().enumerate() {
        let class = format!("s{}", number % 4);
        match one.mark {
            Mark::Dot => draw_dots(&mut out, &class, &one.points, &x_scale, &y_scale),
            Mark::Line => draw_line(&mut out, &class, &one.points, &x_scale, &y_scale),
            Mark::Bar => draw_bars(&mut out, &class, &one.points, &x_scale, &y_scale),
        }
        if !one.name.is_empty() {
            let at = LEFT + 8.0 + LEGEND * number as f64;
            let _ = write!(
                out,
                "<text class=\"{class} name\" x=\"{at}\" y=\"13\">{}</text>",
                escaped(&one.name)
            );
        }
    }
    out + "</svg>"
}

fn draw_axes(out: &mut String, (x, x_scale): (&Axis, &Scale), (y, y_scale): (&Axis, &Scale)) {
    let (floor, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for tick in y_scale.ticks() {
        let at = y_scale.px(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/><text class=\"y\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 5.0,
            at + 4.0,
            number(tick)
        );
    }
    for tick in x_scale.ticks() {
        let at = x_scale.px(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {floor}v4\"/><text class=\"x\" x=\"{at:.1}\" y=\"{}\">{}</text>",
            floor + 16.0,
            number(tick)
        );
    }
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{LEFT} {TOP}V{floor}H{right}\"/>\
         <text class=\"x\" x=\"{}\" y=\"{}\">{}</text>\
         <text class=\"x\" transform=\"translate(12 {}) rotate(-90)\">{}</text>",
        f64::midpoint(LEFT, right),
        HEIGHT - 4.0,
        escaped(&x.label),
        f64::midpoint(TOP, floor),
        escaped(&y.label)
    );
}

/// Draws dots on a grid of pixels, each pixel once.
fn draw_dots(out: &mut String, class: &str, points: &[(f64, f64)], x: &Scale, y: &Scale) {
    let pixels = points.iter().map(|point| {
        let (x, y) = (x.px(point.0).round(), y.px(point.1).round());
        (x as i64, y as i64)
    });
    let mut pixels: Vec<_> = pixels.collect();
    pixels.sort_unstable();
    pixels.dedup();
    let _ = write!(out, "<path class=\"{class} dots\" d=\"");
    for (x, y) in pixels {
        let _ = write!(out, "M{x} {y}h0");
    }
    out.push_str("\"/>");
}

fn draw_line(out: &mut String, class: &str, points: &[(f64, f64)], x: &Scale, y: &Scale) {
    let _ = write!(out, "<path class=\"{class} line\" d=\"");
    for (number, point) in points.iter().enumerate() {
        let verb = if number == 0 { 'M' } else { 'L' };
        let _ = write!(out, "{verb}{:.1} {:.1}", x.px(point.0), y.px(point.1));
    }
    out.push_str("\"/>");
}

/// Draws bars as wide as their distance allows.
fn draw_bars(out: &mut String, class: &str, points: &[(f64, f64)], x: &Scale, y: &Scale) {
    let pixels: Vec<f64> = points.iter().map(|point| x.px(point.0)).collect();
    let gaps = pixels.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let width = gaps.fold(40.0, f64::min).max(1.5) * 0.8;
    let floor = HEIGHT - BOTTOM;
    let _ = write!(out, "<path class=\"{class} bars\" d=\"");
    for (pixel, point) in pixels.iter().zip(points) {
        let (left, top) = (pixel - width / 2.0, y.px(point.1));
        let _ = write!(out, "M{left:.1} {floor}V{top:.1}h{width:.1}V{floor}z");
    }
    out.push_str("\"/>");
}

/// Formats a tick value in the shortest form.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        large if large >= 1e6 => format!("{}M", value / 1e6),
        large if large >= 1e4 => format!("{}k", value / 1e3),
        _ => format!("{}", (value * 1e6).round() / 1e6),
    }
}

/// Escapes text for HTML and SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(points: Vec<(f64, f64)>, mark: Mark) -> String {
        let series = Series {
            name: "a < b".to_string(),
            mark,
            points,
        };
        svg(&Axis::linear("kB"), &Axis::log("ms"), &[series])
    }

    #[test]
    fn a_million_points_give_a_small_picture() {
        let points = (0..1_000_000).map(|n| (f64::from(n), f64::from(n % 977 + 1)));
        let picture = of(points.collect(), Mark::Dot);
        assert!(picture.len() < 1_500_000, "{} bytes", picture.len());
        assert!(picture.contains("a &lt; b"));
    }

    #[test]
    fn empty_series_zeros_and_nan_do_not_panic() {
        for points in [vec![], vec![(0.0, 0.0)], vec![(1.0, f64::NAN), (2.0, 3.0)]] {
            for mark in [Mark::Dot, Mark::Line, Mark::Bar] {
                let picture = of(points.clone(), mark);
                assert!(!picture.contains("NaN") || points.len() == 2, "{picture}");
            }
        }
    }

    #[test]
    fn points_are_at_the_pixels_of_their_values() {
        let picture = of(vec![(0.0, 1.0), (100.0, 100.0)], Mark::Line);
        // The point is at 100/105 of the way from left to right.
        assert!(picture.contains("M56.0 "), "{picture}");
        assert!(picture.contains("L602.7 "), "{picture}");
    }
}
