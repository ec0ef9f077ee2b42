//! Eight doubles in plain Rust.

use super::{Cpu, LANES, Lanes, ROOT_HALF_BITS, ROUND, TWO_52_BIASED, TWO_52_BITS, Vector};
use std::ops::{Add, Div, Mul, Sub};

/// Any CPU, in plain Rust: the same bits everywhere.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

/// Eight doubles in plain Rust.
#[derive(Debug, Clone, Copy)]
pub struct PlainLanes(Lanes);

impl PlainLanes {
    #[inline(always)]
    fn each(self, other: PlainLanes, f: impl Fn(f64, f64) -> f64) -> PlainLanes {
        let mut out = [0.0; LANES];
        for lane in 0..LANES {
            out[lane] = f(self.0[lane], other.0[lane]);
        }
        PlainLanes(out)
    }
}

impl Cpu for Plain {
    type V = PlainLanes;
    const POINTS: usize = 2;
    const TILE: usize = 2;

    #[inline(always)]
    fn splat(self, x: f64) -> PlainLanes {
        PlainLanes([x; LANES])
    }

    #[inline(always)]
    fn load(self, x: &Lanes) -> PlainLanes {
        PlainLanes(*x)
    }
}

impl Add for PlainLanes {
    type Output = PlainLanes;
    #[inline(always)]
    fn add(self, other: PlainLanes) -> PlainLanes {
        self.each(other, |a, b| a + b)
    }
}

impl Sub for PlainLanes {
    type Output = PlainLanes;
    #[inline(always)]
    fn sub(self, other: PlainLanes) -> PlainLanes {
        self.each(other, |a, b| a - b)
    }
}

impl Mul for PlainLanes {
    type Output = PlainLanes;
    #[inline(always)]
    fn mul(self, other: PlainLanes) -> PlainLanes {
        self.each(other, |a, b| a * b)
    }
}

impl Div for PlainLanes {
    type Output = PlainLanes;
    #[inline(always)]
    fn div(self, other: PlainLanes) -> PlainLanes {
        self.each(other, |a, b| a / b)
    }
}

impl Vector for PlainLanes {
    #[inline(always)]
    fn store(self, out: &mut Lanes) {
        *out = self.0;
    }

    #[inline(always)]
    fn fma(self, b: PlainLanes, c: PlainLanes) -> PlainLanes {
        self * b + c
    }

    #[inline(always)]
    fn min(self, other: PlainLanes) -> PlainLanes {
        self.each(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn max(self, other: PlainLanes) -> PlainLanes {
        self.each(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn neg_abs(self) -> PlainLanes {
        self.each(self, |a, _| -a.abs())
    }

    #[inline(always)]
    fn pick(self, yes: PlainLanes, no: PlainLanes) -> PlainLanes {
        let mut out = no.0;
        for lane in 0..LANES {
            out[lane] = if self.0[lane] >= 0.0 { yes.0[lane] } else { no.0[lane] };
        }
        PlainLanes(out)
    }

    #[inline(always)]
    fn round(self) -> PlainLanes {
        self.each(self, |a, _| (a + ROUND) - ROUND)
    }

    #[inline(always)]
    fn scale(self, k: PlainLanes) -> PlainLanes {
        self.each(k, |a, k| a * f64::from_bits((k + (ROUND + 1023.0)).to_bits() << 52))
    }

    #[inline(always)]
    fn split(self) -> (PlainLanes, PlainLanes) {
        const ONE: u64 = 1023 << 52;
        let (mut k, mut m) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let bits = self.0[lane].to_bits();
            let biased = bits.wrapping_sub(ROOT_HALF_BITS).wrapping_add(ONE) >> 52;
            k[lane] = f64::from_bits(biased | TWO_52_BITS) - TWO_52_BIASED;
            m[lane] = f64::from_bits(bits.wrapping_sub(biased << 52).wrapping_add(ONE));
        }
        (PlainLanes(k), PlainLanes(m))
    }
}
