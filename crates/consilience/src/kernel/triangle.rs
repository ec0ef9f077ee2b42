//! Triangular factors of tall matrices, gathered a block of rows at a time.
//!
//! Householder's reflections, eight columns at a time: I − V·T·V' is the product of eight of them, so that the
//! columns to the right see two matrix products and not sixteen of vectors (Schreiber & Van Loan 1989), and two such groups
//! while they are in the nearest cache. Sums run in an
//! order that depends on neither CPU nor threads. Products and sums are rounded one by one, so that factors have the
//! same bits everywhere, whichever instructions make them; but where rows are many ([`Triangle::of_rows`]) and the kernel
//! need not be portable, together, which takes half the time.

use super::dispatch::{Kernel, Pass, Path};
use super::simd::{Cpu, LANES, Line, Vector};
use crate::math::Matrix;
use std::ops::Range;

/// Rows that are folded in together: their columns stay in cache while every mirror visits them.
const ROWS: usize = 256;

/// Mirrors that are worked with together.
const MIRRORS: usize = 8;

/// R, upper triangular, with R'R = A'A for all rows A that were added. It holds what A'A holds, but
/// with the accuracy of A: nothing is squared, so little cancels.
#[derive(Debug, Clone)]
pub struct Triangle {
    root: Matrix,
    /// The rows at hand, column after column.
    block: Vec<Line>,
    path: Path,
    /// Whether products and sums are rounded together.
    fused: bool,
}

impl Triangle {
    /// The factor of no rows.
    pub fn new(columns: usize) -> Triangle {
        Triangle {
            root: Matrix::zeros(columns, columns),
            block: Vec::new(),
            path: Path::of(Kernel::Auto),
            fused: false,
        }
    }

    /// The factor of no rows, to which many will be added with these instructions.
    pub fn of_rows(columns: usize, kernel: Kernel) -> Triangle {
        Triangle { fused: kernel == Kernel::Auto, ..Triangle::new(columns) }
    }

    /// The factor of a matrix that is given by columns.
    pub fn of_columns(columns: &[&[f64]]) -> Triangle {
        let mut triangle = Triangle::new(columns.len());
        let rows = columns.first().map_or(0, |column| column.len());
        triangle.add(rows, |j, rows, out| out.copy_from_slice(&columns[j][rows]));
        triangle
    }

    /// The factor of the rows of several upper triangular matrices together.
    pub fn of_triangles<'a>(
        matrices: impl IntoIterator<Item = &'a Matrix>,
        columns: usize,
    ) -> Triangle {
        let mut triangle = Triangle::new(columns);
        for matrix in matrices {
            let fill = |j: usize, rows: Range<usize>, out: &mut [f64]| {
                out.iter_mut().zip(rows).for_each(|(out, i)| *out = matrix[(i, j)]);
            };
            triangle.fold(0..matrix.rows(), true, fill);
        }
        triangle
    }

    /// Adds so many rows. `fill` writes some rows of a column.
    pub fn add(&mut self, rows: usize, fill: impl Fn(usize, Range<usize>, &mut [f64])) {
        for first in (0..rows).step_by(ROWS) {
            self.fold(first..rows.min(first + ROWS), false, &fill);
        }
    }

    /// The same, worked out in another way: for tests.
    #[cfg(test)]
    fn with_path(mut self, path: Path) -> Triangle {
        self.path = path;
        self
    }

    /// R.
    pub fn into_root(self) -> Matrix {
        self.root
    }

    fn fold(
        &mut self,
        rows: Range<usize>,
        triangular: bool,
        fill: impl Fn(usize, Range<usize>, &mut [f64]),
    ) {
        let (columns, lines) = (self.root.cols(), rows.len().div_ceil(LANES));
        if columns * lines == 0 {
            return;
        }
        self.block.resize(columns * lines, Line::ZERO);
        let mut values = vec![0.0; lines * LANES];
        for (j, column) in self.block.chunks_exact_mut(lines).enumerate() {
            fill(j, rows.clone(), &mut values[..rows.len()]);
            for (line, values) in column.iter_mut().zip(values.as_chunks().0) {
                line.0 = *values;
            }
        }
        let Triangle { root, block, path, fused } = self;
        if *fused {
            path.run(Fold::<true> { root, block, lines, triangular });
        } else {
            path.run(Fold::<false> { root, block, lines, triangular });
        }
    }
}

/// Makes R the factor of [R; block], with products and sums rounded together or not.
struct Fold<'a, const FUSED: bool> {
    root: &'a mut Matrix,
    /// Column after column, each of so many lines.
    block: &'a mut [Line],
    lines: usize,
    /// Whether the block is upper triangular.
    triangular: bool,
}

/// T of eight mirrors.
type Join = [[f64; MIRRORS]; MIRRORS];

impl<const FUSED: bool> Pass for Fold<'_, FUSED> {
    type Out = ();

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) {
        // As many products side by side as registers allow.
        match C::TILE {
            4 => self.tiled::<C, 4>(cpu),
            _ => self.tiled::<C, 2>(cpu),
        }
    }
}

impl<const FUSED: bool> Fold<'_, FUSED> {
    /// Two groups of mirrors at a time: the columns after them are fetched once for both.
    #[inline(always)]
    fn tiled<C: Cpu, const T: usize>(self, cpu: C) {
        let Fold { root, block, lines, triangular } = self;
        let columns = root.cols();
        // Below this the columns of the mirrors are 0.
        let used = |end: usize| if triangular { lines.min(end.div_ceil(LANES)) } else { lines };
        for first in (0..columns).step_by(2 * MIRRORS) {
            let (mirrors, rest) = cut(&mut block[first * lines..], lines);
            let here = used((first + MIRRORS).min(columns));
            let one = Mirrors::new::<C, FUSED, T>(cpu, root, first, mirrors, lines, here);
            let Some(one) = one else { return };
            let (mirrors, rest) = cut(rest, lines);
            one.reflect::<C, FUSED, T>(cpu, root, first + MIRRORS, mirrors);
            let (second, third) = (first + MIRRORS, first + 2 * MIRRORS);
            let here = used(third.min(columns));
            let two = Mirrors::new::<C, FUSED, T>(cpu, root, second, mirrors, lines, here);
            let Some(two) = two else { return };
            let mut column = third;
            for tile in rest.chunks_mut(T * lines) {
                one.reflect::<C, FUSED, T>(cpu, root, column, tile);
                two.reflect::<C, FUSED, T>(cpu, root, column, tile);
                column += T;
            }
        }
    }
}

/// The columns of a group of mirrors, and those after them.
fn cut(columns: &mut [Line], lines: usize) -> (&mut [Line], &mut [Line]) {
    let end = columns.len().min(MIRRORS * lines);
    columns.split_at_mut(end)
}

/// Eight columns, or what is left of them, become mirrors v = (1, what stands in their place then); returns
/// their 2/v'v, 0 for one that changes nothing.
#[inline(always)]
fn reflect<C: Cpu, const FUSED: bool>(
    cpu: C,
    root: &mut Matrix,
    first: usize,
    columns: &mut [Line],
    lines: usize,
    used: usize,
) -> [f64; MIRRORS] {
    let width = columns.len() / lines;
    let mut taus = [0.0; MIRRORS];
    for j in 0..width {
        let mut products = [0.0; MIRRORS];
        for from in (j..width).step_by(4) {
            // Beyond the last column that one stands in, for nothing.
            let beside: [usize; 4] = std::array::from_fn(|c| (from + c).min(width - 1));
            let found = dots::<C, FUSED, 1, 4>(cpu, columns, [j], columns, beside, lines, used);
            for (product, c) in found[0].iter().zip(beside) {
                products[c] = *product;
            }
        }
        let below = products[j];
        if below == 0.0 {
            continue;
        }
        // R is 0 below its diagonal, so a mirror is one entry of it and the new rows.
        let corner = root[(first + j, first + j)];
        let norm = (corner * corner + below).sqrt();
        let pivot = if corner > 0.0 { -norm } else { norm };
        let tip = corner - pivot;
        let (inverse, tau) = (1.0 / tip, 2.0 * tip * tip / (tip * tip + below));
        root[(first + j, first + j)] = pivot;
        taus[j] = tau;
        let (mirror, others) = columns[j * lines..].split_at_mut(lines);
        let mirror = &mut mirror[..used];
        for line in &mut *mirror {
            (cpu.load(&line.0) * cpu.splat(inverse)).store(&mut line.0);
        }
        for (c, other) in (j + 1..width).zip(others.chunks_exact_mut(lines)) {
            let top = &mut root[(first + j, first + c)];
            let by = tau * (*top + products[c] * inverse);
            *top -= by;
            let by = cpu.splat(-by);
            for (line, v) in other.iter_mut().zip(&*mirror) {
                sum::<C, FUSED>(cpu.load(&v.0), by, cpu.load(&line.0)).store(&mut line.0);
            }
        }
    }
    taus
}

/// T with H₁·…·H₈ = I − V·T·V'.
#[inline(always)]
fn joined<C: Cpu, const FUSED: bool, const T: usize>(
    cpu: C,
    taus: &[f64; MIRRORS],
    mirrors: &[Line],
    lines: usize,
    used: usize,
) -> Join {
    let mut gram = [[0.0; MIRRORS]; MIRRORS];
    for i in (0..MIRRORS).step_by(T) {
        for j in (i..MIRRORS).step_by(T) {
            let (at, beside) = (std::array::from_fn(|a| i + a), std::array::from_fn(|b| j + b));
            let found = dots::<C, FUSED, T, T>(cpu, mirrors, at, mirrors, beside, lines, used);
            for (a, found) in found.iter().enumerate() {
                gram[i + a][j..j + T].copy_from_slice(found);
            }
        }
    }
    let mut join = [[0.0; MIRRORS]; MIRRORS];
    for j in 0..MIRRORS {
        join[j][j] = taus[j];
        for i in 0..j {
            let along: f64 = (i..j).map(|k| join[i][k] * gram[k][j]).sum();
            join[i][j] = -taus[j] * along;
        }
    }
    join
}

/// ab + c, rounded once or twice.
#[inline(always)]
fn sum<C: Cpu, const FUSED: bool>(a: C::V, b: C::V, c: C::V) -> C::V {
    if FUSED { a.fma(b, c) } else { c + a * b }
}

/// Products of A columns of one block with B of another.
#[inline(always)]
fn dots<C: Cpu, const FUSED: bool, const A: usize, const B: usize>(
    cpu: C,
    left: &[Line],
    at: [usize; A],
    right: &[Line],
    beside: [usize; B],
    lines: usize,
    used: usize,
) -> [[f64; B]; A] {
    let mut sums = [[cpu.splat(0.0); B]; A];
    let mut left_columns = [&left[..0]; A];
    for a in 0..A {
        left_columns[a] = &left[at[a] * lines..][..used];
    }
    let mut right_columns = [&right[..0]; B];
    for b in 0..B {
        right_columns[b] = &right[beside[b] * lines..][..used];
    }
    for k in 0..used {
        let mut right = [cpu.splat(0.0); B];
        for b in 0..B {
            right[b] = cpu.load(&right_columns[b][k].0);
        }
        for a in 0..A {
            let left = cpu.load(&left_columns[a][k].0);
            for b in 0..B {
                sums[a][b] = sum::<C, FUSED>(left, right[b], sums[a][b]);
            }
        }
    }
    let mut out = [[0.0; B]; A];
    for a in 0..A {
        for b in 0..B {
            out[a][b] = sums[a][b].sum();
        }
    }
    out
}

/// Eight mirrors, and what they do to the columns after them.
struct Mirrors<'a> {
    first: usize,
    mirrors: &'a [Line],
    join: Join,
    lines: usize,
    used: usize,
}

impl<'a> Mirrors<'a> {
    /// Eight columns become mirrors. None if there are fewer: then no columns are left after them.
    #[inline(always)]
    fn new<C: Cpu, const FUSED: bool, const T: usize>(
        cpu: C,
        root: &mut Matrix,
        first: usize,
        columns: &'a mut [Line],
        lines: usize,
        used: usize,
    ) -> Option<Mirrors<'a>> {
        if columns.is_empty() {
            return None;
        }
        let taus = reflect::<C, FUSED>(cpu, root, first, columns, lines, used);
        if columns.len() < MIRRORS * lines {
            return None;
        }
        let join = joined::<C, FUSED, T>(cpu, &taus, columns, lines, used);
        Some(Mirrors { first, mirrors: columns, join, lines, used })
    }

    /// T columns at a time, and T mirrors or lines.
    #[inline(always)]
    fn reflect<C: Cpu, const FUSED: bool, const T: usize>(
        &self,
        cpu: C,
        root: &mut Matrix,
        mut column: usize,
        rest: &mut [Line],
    ) {
        let mut tiles = rest.chunks_exact_mut(T * self.lines);
        for tile in &mut tiles {
            self.tile::<C, FUSED, T, T>(cpu, root, column, tile);
            column += T;
        }
        for single in tiles.into_remainder().chunks_exact_mut(self.lines) {
            self.tile::<C, FUSED, T, 1>(cpu, root, column, single);
            column += 1;
        }
    }

    #[inline(always)]
    fn tile<C: Cpu, const FUSED: bool, const A: usize, const T: usize>(
        &self,
        cpu: C,
        root: &mut Matrix,
        column: usize,
        tile: &mut [Line],
    ) {
        let Mirrors { first, mirrors, ref join, lines, used } = *self;
        // R + V'B, then T' times that.
        let beside = std::array::from_fn(|c| c);
        let mut along = [[0.0; T]; MIRRORS];
        for i in (0..MIRRORS).step_by(A) {
            let at = std::array::from_fn(|a| i + a);
            let found = dots::<C, FUSED, A, T>(cpu, mirrors, at, tile, beside, lines, used);
            for a in 0..A {
                let top = &root.row(first + i + a)[column..][..T];
                for c in 0..T {
                    along[i + a][c] = found[a][c] + top[c];
                }
            }
        }
        let mut by = [[0.0; T]; MIRRORS];
        for j in 0..MIRRORS {
            for i in 0..=j {
                for c in 0..T {
                    by[j][c] += join[i][j] * along[i][c];
                }
            }
            let top = &mut root.row_mut(first + j)[column..][..T];
            for c in 0..T {
                top[c] -= by[j][c];
            }
        }
        // Several lines at a time, so that a load serves several products.
        let whole = used / A * A;
        for k in (0..whole).step_by(A) {
            subtract::<C, FUSED, T, A>(cpu, mirrors, &by, tile, lines, k);
        }
        for k in whole..used {
            subtract::<C, FUSED, T, 1>(cpu, mirrors, &by, tile, lines, k);
        }
    }
}

/// Takes the mirrors times these numbers off some lines of T columns.
#[inline(always)]
fn subtract<C: Cpu, const FUSED: bool, const T: usize, const LINES: usize>(
    cpu: C,
    mirrors: &[Line],
    by: &[[f64; T]; MIRRORS],
    tile: &mut [Line],
    lines: usize,
    k: usize,
) {
    let mut values = [[cpu.splat(0.0); LINES]; T];
    for c in 0..T {
        let column = &tile[c * lines + k..][..LINES];
        for l in 0..LINES {
            values[c][l] = cpu.load(&column[l].0);
        }
    }
    for (i, by) in by.iter().enumerate() {
        let mirror = &mirrors[i * lines + k..][..LINES];
        let mut v = [cpu.splat(0.0); LINES];
        for l in 0..LINES {
            v[l] = cpu.load(&mirror[l].0);
        }
        for c in 0..T {
            let by = cpu.splat(-by[c]);
            for l in 0..LINES {
                values[c][l] = sum::<C, FUSED>(v[l], by, values[c][l]);
            }
        }
    }
    for c in 0..T {
        let column = &mut tile[c * lines + k..][..LINES];
        for l in 0..LINES {
            values[c][l].store(&mut column[l].0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{dot, stream};
    use rand::RngExt;

    fn columns(rows: usize, p: usize) -> Vec<Vec<f64>> {
        let mut rng = stream(1, 0, 0, "triangle");
        (0..p).map(|_| (0..rows).map(|_| rng.random::<f64>() - 0.5).collect()).collect()
    }

    fn gram(columns: &[Vec<f64>]) -> Matrix {
        let p = columns.len();
        let entry = |(i, j): (usize, usize)| dot(&columns[i], &columns[j]);
        let pairs = (0..p).flat_map(|i| (0..p).map(move |j| (i, j)));
        Matrix::from_rows(p, p, pairs.map(entry).collect())
    }

    #[test]
    fn the_factor_squared_is_the_gram_matrix() {
        for rows in [0, 1, 3, 255, 256, 1000] {
            let columns = columns(rows, 5);
            let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            let root = Triangle::of_columns(&slices).into_root();
            let square = root.transpose().product(&root);
            for (a, b) in square.data().iter().zip(gram(&columns).data()) {
                assert!((a - b).abs() < 1e-12 * (1.0 + rows as f64), "{rows} rows: {a} {b}");
            }
            for i in 0..5 {
                assert!((0..i).all(|j| root[(i, j)] == 0.0), "upper triangular");
            }
        }
    }

    #[test]
    fn parts_can_be_put_together() {
        let columns = columns(900, 4);
        let part = |range: std::ops::Range<usize>| {
            let slices: Vec<&[f64]> = columns.iter().map(|c| &c[range.clone()]).collect();
            Triangle::of_columns(&slices).into_root()
        };
        let parts = [part(0..2), part(2..400), part(400..900)];
        let together = Triangle::of_triangles(&parts, 4).into_root();
        let square = together.transpose().product(&together);
        for (a, b) in square.data().iter().zip(gram(&columns).data()) {
            assert!((a - b).abs() < 1e-10);
        }
    }

    // Two columns that differ by 1e-9 of their size: X'X cannot tell them apart, its factor can.
    #[test]
    fn nearly_equal_columns_stay_apart() {
        let base = &columns(500, 2);
        let near: Vec<f64> = base[0].iter().zip(&base[1]).map(|(a, b)| a + 1e-9 * b).collect();
        let root = Triangle::of_columns(&[&base[0], &near]).into_root();
        let along = dot(&base[1], &base[0]) / dot(&base[0], &base[0]);
        let rest: f64 =
            base[1].iter().zip(&base[0]).map(|(b, a)| (b - along * a).powi(2)).sum::<f64>();
        assert!((root[(1, 1)].abs() / (1e-9 * rest.sqrt()) - 1.0).abs() < 1e-5);
    }

    // The same as if every column were reflected by itself, for any number of columns and rows, and the same
    // bits whichever instructions did it.
    #[test]
    fn every_way_leads_to_the_same_bits() {
        for (rows, p) in [(7, 3), (40, 8), (300, 9), (601, 21), (513, 34)] {
            let columns = columns(rows, p);
            let fill = |j: usize, rows: Range<usize>, out: &mut [f64]| {
                out.copy_from_slice(&columns[j][rows]);
            };
            let mut roots = Path::all().into_iter().map(|path| {
                let mut triangle = Triangle::new(p).with_path(path);
                triangle.add(rows, fill);
                triangle.into_root()
            });
            let first = roots.next().unwrap();
            assert!(roots.all(|root| root == first), "{rows} rows, {p} columns");
            let square = first.transpose().product(&first);
            for (a, b) in square.data().iter().zip(gram(&columns).data()) {
                assert!((a - b).abs() < 1e-14 * rows as f64, "{rows} rows, {p} columns: {a} {b}");
            }
        }
    }

    // Rounded together, products and sums are not less accurate; portable kernels do not do so.
    #[test]
    fn many_rows_are_factored_with_the_instructions_of_the_kernel() {
        for (rows, p) in [(40, 8), (601, 21), (513, 34)] {
            let columns = columns(rows, p);
            let factor = |mut triangle: Triangle| {
                triangle.add(rows, |j, rows, out| out.copy_from_slice(&columns[j][rows]));
                triangle.into_root()
            };
            let plain = factor(Triangle::new(p));
            assert!(factor(Triangle::of_rows(p, Kernel::Portable)) == plain);
            let auto = factor(Triangle::of_rows(p, Kernel::Auto));
            for (a, b) in auto.data().iter().zip(plain.data()) {
                assert!((a - b).abs() < 1e-13 * rows as f64, "{rows} rows, {p} columns: {a} {b}");
            }
        }
    }

    #[test]
    fn triangles_are_folded_in_like_any_rows() {
        let parts = [columns(300, 21), columns(50, 21)].map(|columns| {
            let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            Triangle::of_columns(&slices).into_root()
        });
        let together = Triangle::of_triangles(&parts, 21).into_root();
        let column = |j: usize| (0..42).map(|i| parts[i / 21][(i % 21, j)]).collect();
        let stacked: Vec<Vec<f64>> = (0..21).map(column).collect();
        let square = together.transpose().product(&together);
        for (a, b) in square.data().iter().zip(gram(&stacked).data()) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }

    // A column that is 0, or that others determine, leaves nothing but rounding.
    #[test]
    fn columns_without_anything_of_their_own_leave_nothing() {
        let mut all = columns(400, 12);
        all[3] = vec![0.0; 400];
        all[10] = all[0].iter().zip(&all[9]).map(|(a, b)| a - 2.0 * b).collect();
        let slices: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
        let root = Triangle::of_columns(&slices).into_root();
        assert!((0..4).all(|i| root[(i, 3)] == 0.0));
        assert!(root[(10, 10)].abs() < 1e-13);
        assert!([4, 9, 11].iter().all(|j| root[(*j, *j)].abs() > 1.0));
    }
}
