//! The program's clocks: the library takes no time.

use consilience::engine::Clock;
use rustix::time::{ClockId, clock_gettime};

/// CPU seconds of the calling thread.
#[derive(Debug)]
pub struct CpuClock;

impl Clock for CpuClock {
    fn seconds(&self) -> f64 {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as f64 + 1e-9 * now.tv_nsec as f64
    }
}
