//! Sums that do not depend on the order of their terms.

/// Bits of a digit that are filled; the rest of its 64 take up carries.
const BITS: u32 = 32;
/// Digits from 2⁻¹⁰⁷⁴ to beyond the largest double.
const DIGITS: usize = 67;
/// Terms after which carries must move on.
const MOST: u32 = 1 << 29;

/// The exact sum of doubles, as one long number with a fixed point. Rounding comes once, at the end: so terms
/// may come in any order, sums of parts add up to the sum of all, and what is added and taken away again is
/// gone (Kulisch's accumulator, with carries kept back as in Neal 2015).
#[derive(Debug, Clone)]
pub struct ExactSum {
    digits: [i64; DIGITS],
    /// The digits that are in use: all others are 0.
    low: usize,
    high: usize,
    terms: u32,
    /// The sum of terms that are not finite; 0 if there are none.
    odd: f64,
}

impl Default for ExactSum {
    fn default() -> ExactSum {
        ExactSum { digits: [0; DIGITS], low: DIGITS, high: 0, terms: 0, odd: 0.0 }
    }
}

impl ExactSum {
    /// The sum of these, rounded once; NaN if one is, or if infinities of both signs are among them.
    pub fn of(mut terms: impl ExactSizeIterator<Item = f64>) -> f64 {
        // The processor rounds the sum of two as exactly, and −0 is as good as 0.
        if terms.len() <= 2 {
            return terms.next().unwrap_or(0.0) + terms.next().unwrap_or(0.0);
        }
        let mut sum = ExactSum::default();
        terms.for_each(|term| sum.add(term));
        sum.value()
    }

    /// The sum of these vectors of one length, number by number as [`of`](Self::of). So many numbers at a time that
    /// every part is read in the order in which it stands in memory: there may be thousands.
    pub fn of_each(parts: &[&[f64]]) -> Vec<f64> {
        const TOGETHER: usize = 64;
        let length = parts.first().map_or(0, |part| part.len());
        if parts.len() <= 2 {
            let one = |k: usize| ExactSum::of(parts.iter().map(|part| part[k]));
            return (0..length).map(one).collect();
        }
        let mut out = Vec::with_capacity(length);
        for from in (0..length).step_by(TOGETHER) {
            let range = from..length.min(from + TOGETHER);
            let mut sums = vec![ExactSum::default(); range.len()];
            for part in parts {
                sums.iter_mut().zip(&part[range.clone()]).for_each(|(sum, x)| sum.add(*x));
            }
            out.extend(sums.into_iter().map(ExactSum::value));
        }
        out
    }

    /// Adds a number.
    #[inline]
    pub fn add(&mut self, x: f64) {
        if !x.is_finite() {
            self.odd += x;
            return;
        }
        let bits = x.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as u32;
        let fraction = bits & ((1 << 52) - 1);
        // Below the least normal number there is no hidden bit, and the exponent does not fall further.
        let (mantissa, shift) =
            if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        let spread = u128::from(mantissa) << (shift % BITS);
        let first = (shift / BITS) as usize;
        let sign = if x < 0.0 { -1 } else { 1 };
        for (k, digit) in self.digits[first..first + 3].iter_mut().enumerate() {
            *digit += sign * i64::from((spread >> (BITS * k as u32)) as u32);
        }
        (self.low, self.high) = (self.low.min(first), self.high.max(first + 2));
        self.terms += 1;
        if self.terms == MOST {
            self.carry();
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &ExactSum) {
        let mut other = other.clone();
        self.carry();
        other.carry();
        self.digits.iter_mut().zip(other.digits).for_each(|(digit, more)| *digit += more);
        (self.low, self.high) = (self.low.min(other.low), self.high.max(other.high));
        self.odd += other.odd;
        self.terms += other.terms;
    }

    /// Moves carries on, so that every digit but the highest is in 0..2³², and that one has the sum's sign.
    fn carry(&mut self) {
        self.terms = 1;
        let mut over = 0;
        for k in self.low..=self.high {
            let all = self.digits[k] + over;
            if k == DIGITS - 1 {
                self.digits[k] = all;
                return;
            }
            over = all >> BITS;
            self.digits[k] = all & ((1 << BITS) - 1);
        }
        if over != 0 {
            self.high += 1;
            self.digits[self.high] = over;
        }
    }

    /// The sum, rounded to the nearest double, to even where two are as near.
    pub fn value(mut self) -> f64 {
        if self.odd != 0.0 {
            return self.odd;
        }
        if self.low == DIGITS {
            return 0.0;
        }
        self.carry();
        let negative = self.digits[self.high] < 0;
        if negative {
            self.digits[self.low..=self.high].iter_mut().for_each(|digit| *digit = -*digit);
            self.carry();
        }
        let used = &self.digits[..=self.high];
        let Some(top) = used.iter().rposition(|digit| *digit != 0) else { return 0.0 };
        // The 96 bits from the highest digit down hold 64 or more that count; what is below only says whether
        // a half is more than a half.
        let digit = |k: usize| top.checked_sub(k).map_or(0, |k| used[k] as u128);
        let mut head = digit(0) << (2 * BITS) | digit(1) << BITS | digit(2);
        let rest = top >= 3 && used[self.low.min(top - 2)..top - 2].iter().any(|digit| *digit != 0);
        let below = (top as i32 - 2) * BITS as i32 - 1074;
        // Doubles end at 2⁻¹⁰⁷⁴, however few bits are left there.
        let length = 128 - head.leading_zeros() as i32;
        let drop = (length - 53).max(-1074 - below).max(0) as u32;
        if drop > 0 {
            let (kept, cut) = (head >> drop, head & ((1 << drop) - 1));
            let half = 1_u128 << (drop - 1);
            let up = cut > half || cut == half && (rest || kept & 1 == 1);
            head = kept + u128::from(up);
        }
        let size = libm::ldexp(head as f64, below + drop as i32);
        if negative { -size } else { size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;
    use rand::RngExt;

    /// Doubles of every size and sign.
    fn any(rng: &mut crate::math::Stream) -> f64 {
        loop {
            let x = f64::from_bits(rng.random());
            if x.is_finite() && x.abs() < 1e300 {
                return x;
            }
        }
    }

    #[test]
    fn order_and_grouping_change_no_bit() {
        let mut rng = stream(1, 0, 0, "exact sums");
        for round in 0..2000 {
            let count = 1 + round % 50;
            let mut terms: Vec<f64> = (0..count).map(|_| any(&mut rng)).collect();
            if round % 3 == 0 {
                // Nearly all of it cancels.
                let back: Vec<f64> = terms.iter().map(|x| -x).collect();
                terms.extend(back);
                terms.push(1e-300);
            }
            let whole = ExactSum::of(terms.clone().into_iter());
            for i in (1..terms.len()).rev() {
                terms.swap(i, rng.random_range(0..=i));
            }
            assert_eq!(ExactSum::of(terms.clone().into_iter()).to_bits(), whole.to_bits());
            let (mut a, mut b) = (ExactSum::default(), ExactSum::default());
            let cut = rng.random_range(0..=terms.len());
            terms[..cut].iter().for_each(|x| a.add(*x));
            terms[cut..].iter().for_each(|x| b.add(*x));
            a.merge(&b);
            assert_eq!(a.value().to_bits(), whole.to_bits());
            let rows: Vec<Vec<f64>> = terms.iter().map(|x| vec![*x; 1 + round % 40]).collect();
            let each = ExactSum::of_each(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
            assert_eq!(each.len(), rows[0].len());
            assert!(each.iter().all(|sum| sum.to_bits() == whole.to_bits()));
            if round % 3 == 0 {
                assert_eq!(whole, 1e-300);
            }
        }
    }

    /// A double is its own sum, and a sum of two is the processor's, which rounds exactly.
    #[test]
    fn rounds_as_the_processor_does() {
        let mut rng = stream(2, 0, 0, "exact sums");
        for _ in 0..100_000 {
            let x = any(&mut rng);
            // Of sizes that meet, and at times below the normal numbers.
            let y = match rng.random_range(0..3) {
                0 => x * (rng.random::<f64>() - 0.5) * 1e-8,
                1 => any(&mut rng),
                _ => f64::from_bits(x.to_bits() ^ rng.random_range(0..8)),
            };
            let sum = ExactSum::of([x, y].into_iter());
            assert_eq!(sum, x + y, "{x:e} + {y:e}");
            let tiny = [x * 1e-300, y * 1e-300, -0.0];
            assert_eq!(ExactSum::of(tiny.into_iter()), tiny[0] + tiny[1]);
        }
        assert_eq!(ExactSum::of([f64::MAX, f64::MAX].into_iter()), f64::INFINITY);
        assert_eq!(ExactSum::of([1.0, f64::NEG_INFINITY].into_iter()), f64::NEG_INFINITY);
        assert!(ExactSum::of([f64::INFINITY, f64::NEG_INFINITY].into_iter()).is_nan());
        assert_eq!(ExactSum::of([].into_iter()), 0.0);
    }
}
