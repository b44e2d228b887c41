//! Garbage-collection debt: work whose results are needed already, and whose time later operations take. A write waits for at
//! most the stall limit of the specification at once; what it leaves is overdue, and the next writes run it first.

use crate::nand::Work;

#[derive(Clone)]
pub(super) struct Debt {
    /// Work that writes have to wait for.
    pub(super) due: Work,
    /// Number of flash blocks that running the remaining debt frees.
    pub(super) blocks: u64,
    /// Work begun while the host was idle; the host waits for it only if no block is left.
    pub(super) idle: Work,
    /// Part of the due work that later blocks depend on, in ns: writes run it before anything else.
    pub(super) overdue_ns: u64,
    /// Longest time for which a write waits for work at once, in ns.
    limit_ns: u64,
    /// Part of this time that the present write has waited for room, in ns.
    waited_ns: u64,
}

impl Debt {
    pub(super) fn new(limit_ns: u64) -> Debt {
        Debt {
            due: Work::default(),
            blocks: 0,
            idle: Work::default(),
            overdue_ns: 0,
            limit_ns,
            waited_ns: 0,
        }
    }

    /// Begins a write, for which the limit holds as a whole: it may need room several times.
    pub(super) fn begin_write(&mut self) {
        self.waited_ns = 0;
    }

    /// Runs due work after a write: for at most `step_ns`, or up to the limit if work is overdue.
    pub(super) fn run_for_write(&mut self, step_ns: u64) -> Work {
        let limit_ns = step_ns.max(self.overdue_ns.min(self.limit_ns));
        self.run(limit_ns)
    }

    /// Runs due work for at most `limit_ns`.
    pub(super) fn run(&mut self, limit_ns: u64) -> Work {
        let done = run(&mut self.due, limit_ns);
        self.overdue_ns = self.overdue_ns.saturating_sub(done.ns);
        done
    }

    /// Runs work begun while the host was idle for at most `limit_ns`.
    pub(super) fn run_idle(&mut self, limit_ns: u64) -> Work {
        run(&mut self.idle, limit_ns)
    }

    /// Runs the share of the work that frees the next block, up to the limit. The rest is overdue, and the block is one
    /// of the spares.
    pub(super) fn run_for_block(&mut self) -> Work {
        if self.blocks <= 1 {
            return self.run_all();
        }
        let share_ns = self.due.ns / self.blocks;
        self.blocks -= 1;
        self.overdue_ns = self.overdue_ns.max(share_ns);
        self.wait(share_ns)
    }

    /// Runs all work, up to the limit; the rest is overdue.
    pub(super) fn run_all(&mut self) -> Work {
        self.blocks = 0;
        self.due += std::mem::take(&mut self.idle);
        self.overdue_ns = self.due.ns;
        self.wait(u64::MAX)
    }

    /// Runs due work for at most `most_ns` and what is left of the limit.
    fn wait(&mut self, most_ns: u64) -> Work {
        let left_ns = self.limit_ns.saturating_sub(self.waited_ns);
        let done = self.run(most_ns.min(left_ns));
        self.waited_ns += done.ns;
        done
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
