//! Collisions that look like those of the HIGGS data set (Baldi, Sadowski & Whiteson 2014): one lepton,
//! missing energy and four jets, and the seven masses that physicists derive from them.
//!
//! ```text
//! momenta      p = exp(m + s·(common + own)), mean 1         a hard collision has all of them large
//! directions   η normal, cut at ±2.5;  φ uniform, missing energy opposite to the lepton,
//!              jets 2 and 4 opposite to 1 and 3, each within a spread
//! b-tags       three values, likelier large for jets that stem from a b quark
//! masses       of sums of four-momenta, each measured with an error of 10%, mean about 1
//! label        Bernoulli, logit = α + γ'·masses
//! ```
//!
//! So the model of the seven masses is the true one, and the model of the 21 measurements can only
//! approach it: masses are no linear functions of momenta and angles.

use super::BLOCK;
use crate::math::ziggurat::normal;
use crate::math::{Stream, stream};
use libm::{cos, cosh, exp, sin, sinh};
use rand::RngExt;
use std::f64::consts::PI;

/// The columns, in the order of the HIGGS data set: the label, 21 measurements, seven masses.
pub const COLUMNS: [&str; 29] = [
    "label",
    "lepton_pT",
    "lepton_eta",
    "lepton_phi",
    "missing_energy_magnitude",
    "missing_energy_phi",
    "jet_1_pt",
    "jet_1_eta",
    "jet_1_phi",
    "jet_1_b-tag",
    "jet_2_pt",
    "jet_2_eta",
    "jet_2_phi",
    "jet_2_b-tag",
    "jet_3_pt",
    "jet_3_eta",
    "jet_3_phi",
    "jet_3_b-tag",
    "jet_4_pt",
    "jet_4_eta",
    "jet_4_phi",
    "jet_4_b-tag",
    "m_jj",
    "m_jjj",
    "m_lv",
    "m_jlv",
    "m_bb",
    "m_wbb",
    "m_wwbb",
];

/// The intercept and the coefficients of the seven masses that the labels are drawn with.
pub const TRUTH: [f64; 8] = [0.45, -0.06, 0.12, -0.1, -0.3, -0.5, 0.25, 0.2];

/// The values of each jet's b-tag.
pub const TAGS: [[f64; 3]; 4] = [
    [0.0, 1.086_538, 2.173_076],
    [0.0, 1.107_436, 2.214_872],
    [0.0, 1.274_112, 2.548_224],
    [0.0, 1.550_981, 3.101_961],
];

/// Angles are given in units in which they go from −this to this.
pub const WIDEST: f64 = 1.743;

/// Directions along the beam end here.
pub const STEEPEST: f64 = 2.5;

/// The common and the own part of the standard deviation of a log momentum.
const COMMON: f64 = 0.3;
const OWN: f64 = 0.4;

/// The error of a measured mass, on the log scale.
const BLUR: f64 = 0.1;

/// What makes the masses' means about 1.
const MASS_UNITS: [f64; 7] = [2.27, 3.72, 1.66, 3.31, 2.27, 5.07, 8.28];

/// The columns of one block of rows of the data with this seed: block b holds the rows from
/// b·[`BLOCK`] on, and the number of rows asked for only cuts it short.
pub fn block(seed: u64, block: u64, rows: usize) -> Vec<Vec<f32>> {
    let mut rng = stream(seed, 0, block, "higgs");
    let mut columns: Vec<Vec<f32>> = COLUMNS.iter().map(|_| Vec::with_capacity(rows)).collect();
    for _ in 0..rows.min(BLOCK) {
        for (column, value) in columns.iter_mut().zip(event(&mut rng)) {
            column.push(value);
        }
    }
    columns
}

/// One collision.
fn event(rng: &mut Stream) -> [f32; 29] {
    let hardness = COMMON * normal(rng);
    let centre = -0.5 * (COMMON * COMMON + OWN * OWN);
    let momentum = |rng: &mut Stream| exp(centre + hardness + OWN * normal(rng));
    // Jets 1 and 2 stem from a Higgs boson's b quarks more often than not.
    let heavy = rng.random::<f64>() < 0.6;

    let mut out = [0.0; 29];
    let mut next = 1;
    let mut give = |value: f64| {
        // As it is stored: what follows from a value follows from the stored one.
        out[next] = value as f32;
        next += 1;
        f64::from(value as f32)
    };
    let angle = WIDEST / PI;
    let lepton_phi = around(rng);
    let (pt, eta) = (give(momentum(rng)), give(direction(rng, 1.0)));
    let lepton = Momentum::new(pt, eta, give(lepton_phi * angle) / angle);
    let magnitude = give(momentum(rng));
    let phi = give(opposite(lepton_phi, 1.1, rng) * angle) / angle;
    // Nobody sees how much is missing along the beam; the lepton's direction is a guess.
    let neutrino = Momentum::new(magnitude, eta, phi);
    let mut jets = [Momentum::default(); 4];
    let mut before = 0.0;
    for (number, jet) in jets.iter_mut().enumerate() {
        let pt = give(momentum(rng));
        let eta = give(direction(rng, 1.0));
        let phi = if number % 2 == 0 { around(rng) } else { opposite(before, 0.9, rng) };
        before = phi;
        *jet = Momentum::new(pt, eta, give(phi * angle) / angle);
        give(TAGS[number][tag(rng, heavy && number < 2)]);
    }

    let [b, b2, j, j2] = jets;
    let w = lepton + neutrino;
    let masses = [j + j2, j + j2 + b2, w, w + b, b + b2, w + b + b2, w + b + b2 + j + j2];
    let mut logit = TRUTH[0];
    for ((momenta, unit), gamma) in masses.into_iter().zip(MASS_UNITS).zip(&TRUTH[1..]) {
        logit += gamma * give(momenta.mass() / unit * exp(BLUR * normal(rng)));
    }
    out[0] = f32::from(u8::from(rng.random::<f64>() * (1.0 + exp(-logit)) < 1.0));
    out
}

/// A uniform angle, −π to π.
fn around(rng: &mut Stream) -> f64 {
    (2.0 * rng.random::<f64>() - 1.0) * PI
}

/// An angle opposite to another, give or take the spread.
fn opposite(phi: f64, spread: f64, rng: &mut Stream) -> f64 {
    let turned = phi + PI + spread * normal(rng);
    turned - 2.0 * PI * libm::floor((turned + PI) / (2.0 * PI))
}

/// A direction along the beam: normal, within ±[`STEEPEST`].
fn direction(rng: &mut Stream, sd: f64) -> f64 {
    loop {
        let eta = sd * normal(rng);
        if eta.abs() < STEEPEST {
            return eta;
        }
    }
}

/// Which of the three values a b-tag has.
fn tag(rng: &mut Stream, heavy: bool) -> usize {
    let (low, middle) = if heavy { (0.3, 0.55) } else { (0.65, 0.85) };
    let u = rng.random::<f64>();
    usize::from(u >= low) + usize::from(u >= middle)
}

/// A four-momentum.
#[derive(Clone, Copy, Default)]
struct Momentum {
    energy: f64,
    x: f64,
    y: f64,
    z: f64,
}

impl Momentum {
    /// Of something without mass, by its momentum across the beam and its direction.
    fn new(pt: f64, eta: f64, phi: f64) -> Momentum {
        Momentum { energy: pt * cosh(eta), x: pt * cos(phi), y: pt * sin(phi), z: pt * sinh(eta) }
    }

    /// The invariant mass, which is above 0 unless all fly in one direction.
    fn mass(self) -> f64 {
        let square =
            self.energy * self.energy - self.x * self.x - self.y * self.y - self.z * self.z;
        // Rounding may leave less than nothing, but a mass is positive.
        square.max(1e-6).sqrt()
    }
}

impl std::ops::Add for Momentum {
    type Output = Momentum;
    fn add(self, o: Momentum) -> Momentum {
        Momentum {
            energy: self.energy + o.energy,
            x: self.x + o.x,
            y: self.y + o.y,
            z: self.z + o.z,
        }
    }
}
