//! Readers during a recording, and their executor.

use cardiograph_card::Block;
use cardiograph_recorder::{Change, FileError, ReadDesk, ReadError};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Readers that share one desk.
#[derive(Clone, Copy, Default)]
pub struct Readers {
    pub count: usize,
    /// Number of times that each reads the card's first blocks.
    pub reads: usize,
    /// Number of blocks of the desk's memory.
    pub memory_blocks: usize,
    /// File that another task removes as soon as the time in us has come and a card is mounted.
    pub removes: Option<(u64, &'static str)>,
}

impl Readers {
    pub(super) fn tasks<'a>(
        self,
        desk: &'a ReadDesk<'a>,
        now_us: &'a Cell<u64>,
        results: &'a RefCell<Vec<Result<Block, ReadError>>>,
    ) -> Vec<Task<'a>> {
        let readers = (0..self.count).map(|_| Box::pin(self.read(desk, results)) as Task);
        let removal = self.removes.into_iter();
        let removal =
            removal.map(|(at_us, path)| Box::pin(remove(desk, now_us, at_us, path)) as Task);
        readers.chain(removal).collect()
    }

    async fn read(self, desk: &ReadDesk<'_>, results: &RefCell<Vec<Result<Block, ReadError>>>) {
        for _ in 0..self.reads {
            let mut blocks = [[0; 512]; 4];
            let read = desk.read(0, &mut blocks).await;
            results.borrow_mut().push(read.map(|()| blocks[0]));
        }
    }
}

/// Removes a file once the time has come; tries again while no card is mounted.
async fn remove(desk: &ReadDesk<'_>, now_us: &Cell<u64>, at_us: u64, path: &str) {
    poll_fn(|context| {
        context.waker().wake_by_ref();
        match now_us.get() >= at_us {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    while let Err(error) = desk.change(Change::Remove { path }, None).await {
        assert_eq!(error, FileError::Read(ReadError::NoCard));
        let mut is_second = false;
        poll_fn(|context| {
            context.waker().wake_by_ref();
            match std::mem::replace(&mut is_second, true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
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
