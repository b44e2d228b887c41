//! Garbage-collection debt: work whose results are needed already, and whose time later operations take.

use crate::nand::Work;

#[derive(Clone, Default)]
pub(super) struct Debt {
    /// Work that writes have to wait for.
    pub(super) due: Work,
    /// Number of flash blocks that running the remaining debt frees.
    pub(super) blocks: u64,
    /// Work begun while the host was idle; the host waits for it only if no block is left.
    pub(super) idle: Work,
}

impl Debt {
    /// Runs due work for at most `limit_ns`.
    pub(super) fn run(&mut self, limit_ns: u64) -> Work {
        run(&mut self.due, limit_ns)
    }

    /// Runs work begun while the host was idle for at most `limit_ns`.
    pub(super) fn run_idle(&mut self, limit_ns: u64) -> Work {
        run(&mut self.idle, limit_ns)
    }

    /// Runs the share of the work that frees the next block.
    pub(super) fn run_for_block(&mut self) -> Work {
        if self.blocks <= 1 {
            return self.run_all();
        }
        let share_ns = self.due.ns / self.blocks;
        self.blocks -= 1;
        run(&mut self.due, share_ns)
    }

    pub(super) fn run_all(&mut self) -> Work {
        self.blocks = 0;
        std::mem::take(&mut self.due) + std::mem::take(&mut self.idle)
    }

    pub(super) fn is_none(&self) -> bool {
        self.due == Work::default() && self.idle == Work::default()
    }
}

fn run(work: &mut Work, limit_ns: u64) -> Work {
    if work.ns <= limit_ns {
        return std::mem::take(work);
    }
    let share = limit_ns as f64 / work.ns as f64;
    let done = Work {
        ns: limit_ns,
        nj: (work.nj as f64 * share) as u64,
    };
    work.ns -= done.ns;
    work.nj -= done.nj;
    done
}
