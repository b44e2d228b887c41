//! The task of a host: waits for packets, timers and the application, and polls the stack.

use crate::stack::Stack;
use cardiograph_sim_world::link::Receiver;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

/// Runs until no host handle, listener or socket is left and the last connection has ended.
pub(crate) async fn run(stack: Rc<Stack>, mut receiver: Receiver) {
    loop {
        let next_ns = stack.poll();
        if Rc::strong_count(&stack) == 1 && stack.is_empty() {
            return;
        }
        if let Some(packet) = next_packet(&stack, &mut receiver, next_ns).await {
            stack.receive_packet(packet);
        }
    }
}

/// Returns the next packet, or `None` if the stack has to be polled before one arrives.
async fn next_packet(
    stack: &Stack,
    receiver: &mut Receiver,
    next_ns: Option<u64>,
) -> Option<Vec<u8>> {
    let mut packet = pin!(receiver.recv());
    let mut timer = next_ns.map(|ns| stack.handle().sleep_until_ns(ns));
    poll_fn(|context| {
        if stack.doorbell().take(context.waker()) {
            return Poll::Ready(None);
        }
        if let Poll::Ready(packet) = packet.as_mut().poll(context) {
            return Poll::Ready(Some(packet));
        }
        match &mut timer {
            Some(timer) => Pin::new(timer).poll(context).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}
