//! A card with a sequence of power cuts, each judged.

use crate::disk::DirectBlocks;
use crate::judge::{fsck, is_full};
use crate::outcome::Outcome;
use crate::scene::{Scene, rerun};
use crate::session::{Session, Setup};
use cardiograph_recorder::{DosTime, Event, FatVolume, StartError, recover};
use cardiograph_sim_card::Card;
use cardiograph_sim_card::wire::{Fault, InterruptedCard};
use cardiograph_sim_world::{Clock, Random};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A card with a sequence of power cuts.
#[derive(Clone)]
pub struct Chain<'a> {
    scene: &'a Scene,
    sessions: Vec<Session>,
    /// Reference runs by session number: for each interrupted session, the same session without the power
    /// cut.
    reference: BTreeMap<usize, Arc<Session>>,
    card: Card,
    clock: Clock,
    random: Random,
    cuts: u64,
}

impl<'a> Chain<'a> {
    /// Judges the card after a power cut, before and after a recovery, without another recording.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn first(
        scene: &'a Scene,
        reference: &Arc<Session>,
        copied: &InterruptedCard,
    ) -> Result<Chain<'a>, String> {
        let mut chain = Chain {
            scene,
            sessions: scene.earlier.clone(),
            reference: BTreeMap::new(),
            card: copied.card.clone(),
            clock: Clock::default(),
            random: scene.seed.stream("after the cut"),
            cuts: 0,
        };
        chain.cut(reference, copied)?;
        Ok(chain)
    }

    /// Adds a power cut to the history, and judges the resulting card.
    fn cut(&mut self, reference: &Arc<Session>, copied: &InterruptedCard) -> Result<(), String> {
        self.card = copied.card.clone();
        self.clock = Clock::default();
        self.clock.advance_to_ns(copied.at_ns);
        self.reference
            .insert(self.sessions.len(), Arc::clone(reference));
        self.sessions
            .push(reference.until(copied.byte, copied.at_ns));
        self.cuts += 1;
        let scene = self.scene;
        let history = scene.history(&self.sessions, &self.reference);
        history.judge_before(&self.card, &scene.original, &scene.listing)?;
        self.judge_recovered()
    }

    /// Judges the card after a recovery alone, before a later recording can remove files.
    fn judge_recovered(&self) -> Result<(), String> {
        let mut card = self.card.clone();
        let mut volume = FatVolume::new(|| DosTime::NO_CLOCK, 7);
        let mut events = Vec::new();
        {
            let mut blocks = DirectBlocks(&mut card);
            let recovering = pin!(recover(&mut volume, &mut blocks, |_, event| events.push(event)));
            match recovering.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) => (),
                Poll::Ready(Err(StartError::Volume(why))) if self.may_refuse(&why.to_string()) => {
                    return Ok(());
                }
                Poll::Ready(Err(why)) => return Err(format!("recovery alone: {why}")),
                Poll::Pending => {
                    return Err(
                        "the recovery waits although every block operation is immediate".into(),
                    );
                }
            }
        }
        let sessions = [&self.sessions[..], &[Session::of_recovery(events)]].concat();
        let history = self.scene.history(&sessions, &self.reference);
        let judged = history.judge_recovered(&mut card);
        judged
            .map(|_| ())
            .map_err(|why| format!("recovery alone: {why}"))
    }

    /// Returns true if `why` is a valid reason for a device to refuse the card.
    fn may_refuse(&self, why: &str) -> bool {
        let history = self.scene.history(&self.sessions, &self.reference);
        history.may_be_full() && is_full(why)
    }

    fn next_setup(&mut self) -> Setup {
        rerun(&self.scene.setup, 0.03, &mut self.random)
    }

    /// Lets a device record until its power is cut at a byte, or until the recording ends earlier.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn cut_again(&mut self, byte: u64) -> Result<(), String> {
        let mut setup = self.next_setup();
        setup.faults.add(byte, Fault::Copy);
        let (card, session, copies) = setup.run_with_copies(self.card.clone(), &self.clock);
        match copies.first() {
            Some(copied) => self.cut(&Arc::new(session), copied),
            None => {
                self.card = card;
                self.sessions.push(session);
                Ok(())
            }
        }
    }

    /// Cuts the next recording at every point that leaves different contents on the card, and judges each
    /// result. Passes `each` the chain with the additional cut, or the first broken promise.
    pub fn cut_each(&self, mut each: impl FnMut(Result<Self, String>)) {
        let mut before = self.clone();
        let mut setup = before.next_setup();
        setup.copies_each = true;
        let clock = Clock::default();
        clock.advance_to_ns(self.clock.now_ns());
        let (_, session, copies) = setup.run_with_copies(self.card.clone(), &clock);
        let session = Arc::new(session);
        for copied in &copies {
            let mut chain = before.clone();
            each(chain.cut(&session, copied).map(|()| chain));
        }
    }

    /// Lets a device record to its end, and judges the card.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn end(mut self, runs_fsck: bool) -> Result<Outcome, String> {
        let setup = self.next_setup();
        let (mut card, session) = setup.run(self.card, &self.clock);
        self.sessions.push(session);
        let events = self.sessions.iter().flat_map(|session| &session.events);
        let is_recovered = |event| matches!(event, Event::Recovered { .. });
        let recovered = events.filter(|timed| is_recovered(timed.event)).count() as u64;
        let scene = self.scene;
        let mut outcome = Outcome {
            cuts: self.cuts,
            recovered,
            ..Outcome::default()
        };
        let judged = scene
            .history(&self.sessions, &self.reference)
            .judge(&mut card);
        if judged.is_err() || runs_fsck {
            let name = format!("{:?}", std::thread::current().id());
            let fsck_result = fsck(&card, &scene.volume, &name);
            outcome.fsck_runs = 1;
            outcome.found = match (judged, fsck_result) {
                (Ok(found), Ok(())) => found,
                (Err(why), Ok(())) => return Err(format!("{why} (fsck.fat reports no error)")),
                (Ok(_), Err(output)) => return Err(format!("fsck.fat: {output}")),
                (Err(why), Err(output)) => return Err(format!("{why}\nfsck.fat: {output}")),
            };
            return Ok(outcome);
        }
        outcome.found = judged?;
        Ok(outcome)
    }
}
