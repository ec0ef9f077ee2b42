//! Eight doubles side by side, and what every kind of CPU does with them.
//!
//! The families' code is written once, over [`Cpu`]; each kind of CPU is one implementation.

use std::ops::{Add, Div, Mul, Sub};

/// Rows that are worked on side by side.
pub const LANES: usize = 8;

/// One value per lane.
pub type Lanes = [f64; LANES];

/// One value per lane in a cache line of its own.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Line(pub Lanes);

impl Line {
    /// Zeros.
    pub const ZERO: Line = Line([0.0; LANES]);
}

/// A kind of CPU. A value of it proves that the machine is one, so that making vectors is safe.
pub trait Cpu: Copy {
    /// Eight doubles.
    type V: Vector;
    /// Points whose linear predictors are built side by side, so that x is loaded once for all of
    /// them: as many as registers allow. One of 1, 2, 4 and 8.
    const POINTS: usize;
    /// Columns by columns of a Hessian that are summed side by side: 1, 2 or 4.
    const TILE: usize;
    /// One value in all lanes.
    fn splat(self, x: f64) -> Self::V;
    /// A panel's values.
    fn load(self, x: &Lanes) -> Self::V;
    /// 2ˣ for x from −1021 to 1023, to 10⁻¹⁴ of it.
    #[inline(always)]
    fn power_of_two(self, x: Self::V) -> Self::V {
        let k = x.round();
        let f = x - k;
        polynomial(self, &EXP2, f).fma(f, self.splat(1.0)).scale(k)
    }
}

/// (2ᶠ − 1)/f for |f| ≤ ½, to 6·10⁻¹⁶.
const EXP2: [f64; 10] = [
    0.6931471805599462,
    0.24022650695910075,
    0.05550410866465167,
    0.009618129107618665,
    0.0013333558200794592,
    0.00015403530424776529,
    1.5252672924850737e-05,
    1.3215451633221434e-06,
    1.0205905413765595e-07,
    7.070977866508138e-09,
];

/// A polynomial with its coefficients from the constant up.
#[inline(always)]
pub fn polynomial<C: Cpu, const N: usize>(cpu: C, coefficients: &[f64; N], x: C::V) -> C::V {
    let mut sum = cpu.splat(coefficients[N - 1]);
    for k in (0..N - 1).rev() {
        sum = sum.fma(x, cpu.splat(coefficients[k]));
    }
    sum
}

/// Eight doubles. Each operation is that of IEEE 754 in every lane.
pub trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The values.
    fn store(self, out: &mut Lanes);
    /// self·b + c: rounded once where the CPU can, else twice.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The smaller; `other` where either is not a number.
    fn min(self, other: Self) -> Self;
    /// The larger; `other` where either is not a number.
    fn max(self, other: Self) -> Self;
    /// −|x|.
    fn neg_abs(self) -> Self;
    /// `yes` in lanes where self ≥ 0, `no` in the others.
    fn pick(self, yes: Self, no: Self) -> Self;
    /// The nearest whole number, for |x| < 2⁵¹.
    fn round(self) -> Self;
    /// self·2ᵏ for whole k from −1022 to 1023.
    fn scale(self, k: Self) -> Self;
    /// k and m with x = 2ᵏ·m and √½ ≤ m < √2, for positive x that are not subnormal.
    fn split(self) -> (Self, Self);

    /// The values.
    #[inline(always)]
    fn lanes(self) -> Lanes {
        let mut lanes = [0.0; LANES];
        self.store(&mut lanes);
        lanes
    }

    /// Their sum, in a fixed order.
    #[inline(always)]
    fn sum(self) -> f64 {
        let [a, b, c, d, e, f, g, h] = self.lanes();
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }
}

/// 1.5·2⁵²: adding it rounds to a whole number, which then stands in the lowest bits.
pub const ROUND: f64 = 6_755_399_441_055_744.0;
/// The bits of √½.
pub const ROOT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
/// The bits of 2⁵², in whose lowest bits a small whole number can be written.
pub const TWO_52_BITS: u64 = 0x4330_0000_0000_0000;
/// 2⁵² + 1023.
pub const TWO_52_BIASED: f64 = 4_503_599_627_371_519.0;

#[cfg(target_arch = "x86_64")]
pub use super::x86::Sse2 as Portable;
/// Any CPU: the same bits everywhere.
#[cfg(not(target_arch = "x86_64"))]
pub use plain::Plain as Portable;
#[cfg(all(test, target_arch = "x86_64"))]
pub use plain::Plain;

/// Vectors that any compiler knows.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain;
