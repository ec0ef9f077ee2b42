//! The program's clock, which the library asks for.

use consilience::engine::Clock;
use std::sync::Arc;

/// CPU time of the calling thread, where the operating system tells it.
pub fn of_threads() -> Option<Arc<dyn Clock>> {
    #[cfg(unix)]
    return Some(Arc::new(ThreadTime));
    #[cfg(not(unix))]
    None
}

#[cfg(unix)]
struct ThreadTime;

#[cfg(unix)]
impl Clock for ThreadTime {
    fn seconds(&self) -> f64 {
        use rustix::time::{ClockId, clock_gettime};
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as f64 + 1e-9 * now.tv_nsec as f64
    }
}
