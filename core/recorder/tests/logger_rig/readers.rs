//! Readers during a recording, and their executor.

use cardiograph_card::Block;
use cardiograph_recorder::{ReadDesk, ReadError};
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Readers that share one desk.
#[derive(Clone, Copy, Default)]
pub struct Readers {
    pub count: usize,
    /// Number of times that each reads the card's first blocks.
    pub reads: usize,
    /// Number of blocks of the desk's memory.
    pub memory_blocks: usize,
}

impl Readers {
    pub(super) fn tasks<'a>(
        self,
        desk: &'a ReadDesk<'a>,
        results: &'a RefCell<Vec<Result<Block, ReadError>>>,
    ) -> Vec<Task<'a>> {
        (0..self.count)
            .map(|_| Box::pin(self.read(desk, results)) as Task)
            .collect()
    }

    async fn read(self, desk: &ReadDesk<'_>, results: &RefCell<Vec<Result<Block, ReadError>>>) {
        for _ in 0..self.reads {
            let mut blocks = [[0; 512]; 4];
            let read = desk.read(0, &mut blocks).await;
            results.borrow_mut().push(read.map(|()| blocks[0]));
        }
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls tasks that were woken, as an executor does.
pub(super) struct Executor<'a>(Vec<(Arc<Flag>, Task<'a>)>);

impl<'a> Executor<'a> {
    pub(super) fn new(tasks: Vec<Task<'a>>) -> Self {
        let woken = || Arc::new(Flag(AtomicBool::new(true)));
        Executor(tasks.into_iter().map(|task| (woken(), task)).collect())
    }

    pub(super) fn poll(&mut self) {
        self.0.retain_mut(|(flag, task)| {
            let is_woken = flag.0.swap(false, Ordering::Relaxed);
            let waker = Waker::from(flag.clone());
            !is_woken
                || task
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
        });
    }
}
