//! Which code runs: chosen once per set of rows, by what the CPU has.
#![allow(unsafe_code)]

use super::simd::{Cpu, Portable};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};
use serde::{Deserialize, Serialize};

/// Whose instructions the hot loops use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kernel {
    /// The best that the CPU has. One kind of CPU always gives the same bits; another may
    /// differ from it in the last ones.
    #[default]
    Auto,
    /// Plain ones: slower, and the same bits on every machine.
    Portable,
}

/// A way through the hot loops.
#[derive(Debug, Clone, Copy)]
pub enum Path {
    /// Plain Rust.
    Portable,
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512F, VL and DQ.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

/// A loop over rows, written for any CPU. `run` has to be inlined, so that it is compiled with the
/// instructions that its CPU has.
pub trait Pass: Sized {
    /// What it computes.
    type Out;
    /// Computes it.
    fn run<C: Cpu>(self, cpu: C) -> Self::Out;

    // The compiler keeps the code of a trait's own methods beside the type that they are for. As functions of this module they
    // would all be in one piece, for which everybody waits.

    /// Computes it with plain instructions.
    #[inline(never)]
    fn run_portable(self) -> Self::Out {
        self.run(Portable)
    }

    /// Computes it with those of AVX2 and FMA.
    ///
    /// # Safety
    /// The CPU must have them, as the token proves.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn run_avx2(self, cpu: Avx2) -> Self::Out {
        self.run(cpu)
    }

    /// Computes it with those of AVX-512F, VL and DQ.
    ///
    /// # Safety
    /// The CPU must have them, as the token proves.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
    unsafe fn run_avx512(self, cpu: Avx512) -> Self::Out {
        self.run(cpu)
    }
}

impl Path {
    /// The way that a choice leads to on this machine.
    pub fn of(kernel: Kernel) -> Path {
        match kernel {
            Kernel::Auto => Path::all().pop().unwrap_or(Path::Portable),
            Kernel::Portable => Path::Portable,
        }
    }

    /// The ways that this machine has, the best one last.
    pub fn all() -> Vec<Path> {
        #[allow(unused_mut)]
        let mut paths = vec![Path::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            paths.extend(Avx2::detect().map(Path::Avx2));
            paths.extend(Avx512::detect().map(Path::Avx512));
        }
        paths
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Path::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(_) => "avx512",
        }
    }

    /// Runs a loop this way.
    pub fn run<W: Pass>(self, work: W) -> W::Out {
        match self {
            Path::Portable => work.run_portable(),
            // SAFETY: the token proves that the CPU has the instructions.
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(cpu) => unsafe { work.run_avx2(cpu) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(cpu) => unsafe { work.run_avx512(cpu) },
        }
    }
}
