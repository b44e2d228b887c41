//! Visits every reachable world, and prints the path to a violation.

use super::Config;
use super::steps::{Step, Steps};
use super::world::World;
use crate::plan::Action;
use core::mem::{Discriminant, discriminant};
use std::hash::{Hash, Hasher};
use std::string::String;
use std::vec::Vec;

/// Marks an edge whose step retries something that failed: acquiring the card, or finding room for a file.
pub(super) const RETRY: u32 = 1 << 31;

/// Marks an edge whose step needs a card that answers: not taken while the card is gone.
pub(super) const CARD: u32 = 1 << 30;

/// All reachable worlds, and the steps between them that need no new outside event.
pub(super) struct Graph<const N: usize> {
    pub(super) worlds: Vec<World<N>>,
    parents: Vec<u32>,
    /// Indices of worlds by hash; `u32::MAX` is free.
    table: Vec<u32>,
    /// Targets of the internal steps, in the order of their sources.
    pub(super) edges: Vec<u32>,
    /// Index of the first edge of each world.
    pub(super) starts: Vec<u32>,
    /// Kinds of actions that were carried out.
    actions: Vec<Discriminant<Action>>,
}

impl<const N: usize> Graph<N> {
    /// Visits all worlds. The error is the path to a violation.
    pub(super) fn explore(config: &Config<N>) -> Result<Graph<N>, String> {
        let mut graph = Graph {
            worlds: Vec::new(),
            parents: Vec::new(),
            table: std::vec![u32::MAX; 1 << 16],
            edges: Vec::new(),
            starts: Vec::new(),
            actions: Vec::new(),
        };
        graph.insert(World::new(config).canonical(config), 0);
        let mut at = 0;
        while at < graph.worlds.len() {
            graph.starts.push(graph.edges.len() as u32);
            let world = graph.worlds[at];
            let steps = match Steps::of(config, world) {
                Ok(steps) => steps.found,
                Err((step, violation)) => {
                    let path = graph.path(config, at as u32);
                    return Err(std::format!("{path}  {step}\n=> {violation}\n{world:?}"));
                }
            };
            for (step, next) in steps {
                let target = graph.insert(next, at as u32);
                graph.note(step);
                if step.is_internal() {
                    let retry = if step.is_retry(&world) { RETRY } else { 0 };
                    let card = if step.needs_card() { CARD } else { 0 };
                    graph.edges.push(target | retry | card);
                }
            }
            at += 1;
            assert!(at <= config.states_max, "more states than expected");
        }
        graph.starts.push(graph.edges.len() as u32);
        Ok(graph)
    }

    fn note(&mut self, step: Step) {
        if let Step::Act { action, .. } = step {
            let kind = discriminant(&action);
            if !self.actions.contains(&kind) {
                self.actions.push(kind);
            }
        }
    }

    /// Returns true if an action of this kind was carried out.
    pub(super) fn has_seen(&self, action: Action) -> bool {
        self.actions.contains(&discriminant(&action))
    }

    /// Returns the index of a world, adding it if it is new.
    fn insert(&mut self, world: World<N>, parent: u32) -> u32 {
        if self.worlds.len() * 2 >= self.table.len() {
            self.grow();
        }
        let mut slot = self.slot(&world);
        while self.table[slot] != u32::MAX {
            if self.worlds[self.table[slot] as usize] == world {
                return self.table[slot];
            }
            slot = (slot + 1) & (self.table.len() - 1);
        }
        let index = self.worlds.len() as u32;
        self.table[slot] = index;
        self.worlds.push(world);
        self.parents.push(parent);
        index
    }

    fn grow(&mut self) {
        let len = self.table.len() * 2;
        self.table = std::vec![u32::MAX; len];
        for index in 0..self.worlds.len() {
            let mut slot = self.slot(&self.worlds[index]);
            while self.table[slot] != u32::MAX {
                slot = (slot + 1) & (len - 1);
            }
            self.table[slot] = index as u32;
        }
    }

    fn slot(&self, world: &World<N>) -> usize {
        let mut hasher = Mix(0);
        world.hash(&mut hasher);
        hasher.finish() as usize & (self.table.len() - 1)
    }

    /// Returns the steps from the first world to this one, one per line.
    pub(super) fn path(&self, config: &Config<N>, at: u32) -> String {
        let mut chain = std::vec![at];
        while let Some(last) = chain.last().filter(|last| **last != 0) {
            chain.push(self.parents[*last as usize]);
        }
        let mut text = String::new();
        for pair in chain.windows(2).rev() {
            let (to, from) = (self.worlds[pair[0] as usize], self.worlds[pair[1] as usize]);
            let steps = Steps::of(config, from).map_or(Vec::new(), |steps| steps.found);
            let step = steps.iter().find(|(_, next)| *next == to);
            let step: Option<Step> = step.map(|(step, _)| *step);
            match step {
                Some(step) => text += &std::format!("  {step}\n"),
                None => text += "  ?\n",
            }
        }
        text
    }
}

/// A hash function that is fast for small numbers.
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}
