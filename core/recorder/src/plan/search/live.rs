//! Liveness: strongly connected components of the steps that need no new outside event.
//!
//! Every predicate is eventually true and eventually false, so a run ends in a component that no step leaves. Nothing
//! may be left to do in that component, and every cycle has to retry something that failed.

use super::explore::{CARD, Graph, RETRY};
use super::steps::Steps;
use super::{Config, check};
use crate::plan::Phase;
use std::string::String;
use std::vec::Vec;

const NEW: u32 = u32::MAX;
/// The component of this world is complete.
const DONE: u32 = u32::MAX - 1;

/// Checks all components. The error is the path to a violation.
pub(super) fn check<const N: usize>(config: &Config<N>, graph: &Graph<N>) -> Result<(), String> {
    check_with(config, graph, false)?;
    check_with(config, graph, true)
}

fn check_with<const N: usize>(
    config: &Config<N>,
    graph: &Graph<N>,
    is_card_gone: bool,
) -> Result<(), String> {
    let mut search = Search {
        is_card_gone,
        order: std::vec![NEW; graph.worlds.len()],
        low: std::vec![0; graph.worlds.len()],
        is_member: std::vec![false; graph.worlds.len()],
        stack: Vec::new(),
        count: 0,
    };
    for root in 0..graph.worlds.len() as u32 {
        if search.order[root as usize] == NEW {
            search.visit(config, graph, root)?;
        }
    }
    Ok(())
}

struct Search {
    /// A card that has to be acquired does not answer.
    is_card_gone: bool,
    /// Order in which each world was found.
    order: Vec<u32>,
    /// The earliest world known to be in the same component.
    low: Vec<u32>,
    /// Membership flags of the component being checked.
    is_member: Vec<bool>,
    stack: Vec<u32>,
    count: u32,
}

impl Search {
    /// Tarjan's algorithm with an explicit stack.
    fn visit<const N: usize>(
        &mut self,
        config: &Config<N>,
        graph: &Graph<N>,
        root: u32,
    ) -> Result<(), String> {
        let mut frames = std::vec![(root, graph.starts[root as usize])];
        self.enter(root);
        while let Some((world, edge)) = frames.last_mut() {
            let (at, end) = (*world as usize, graph.starts[*world as usize + 1]);
            if *edge < end {
                let edge_bits = graph.edges[*edge as usize];
                *edge += 1;
                if self.is_card_gone && edge_bits & CARD != 0 {
                    continue;
                }
                let target = edge_bits & !(RETRY | CARD);
                match self.order[target as usize] {
                    NEW => {
                        self.enter(target);
                        frames.push((target, graph.starts[target as usize]));
                    }
                    DONE => (),
                    order => self.low[at] = self.low[at].min(order),
                }
                continue;
            }
            frames.pop();
            if let Some((parent, _)) = frames.last() {
                let parent = *parent as usize;
                self.low[parent] = self.low[parent].min(self.low[at]);
            }
            if self.low[at] == self.order[at] {
                self.leave(config, graph, at as u32)?;
            }
        }
        Ok(())
    }

    fn enter(&mut self, world: u32) {
        self.order[world as usize] = self.count;
        self.low[world as usize] = self.count;
        self.count += 1;
        self.stack.push(world);
    }

    /// Takes a complete component from the stack and checks it.
    fn leave<const N: usize>(
        &mut self,
        config: &Config<N>,
        graph: &Graph<N>,
        first: u32,
    ) -> Result<(), String> {
        let start = self.stack.iter().rposition(|world| *world == first);
        let members = self.stack.split_off(start.unwrap_or(0));
        for member in &members {
            self.order[*member as usize] = DONE;
            self.is_member[*member as usize] = true;
        }
        let is_last = members.iter().all(|member| {
            let mut edges = self.edges_of(graph, *member);
            edges.all(|edge| self.is_member[(edge & !RETRY) as usize])
        });
        if is_last {
            let is_served = self.is_card_gone
                || members.iter().any(|member| {
                    let world = graph.worlds[*member as usize];
                    world.plan.phase == Phase::Ended || Steps::new(config, world).serves_read()
                });
            if config.has_reads && !is_served {
                return Err(report(config, graph, first, "a read waits forever"));
            }
            let worlds = members.iter().map(|member| &graph.worlds[*member as usize]);
            if !self.is_card_gone && !check::looks_for_room(config, worlds) {
                return Err(report(
                    config,
                    graph,
                    first,
                    "the planner never looks for room again",
                ));
            }
            for member in &members {
                check::settled(config, &graph.worlds[*member as usize], self.is_card_gone)
                    .map_err(|violation| report(config, graph, *member, violation))?;
            }
        }
        if members.len() > 1
            && let Some(member) = self.busy(graph, &members)
        {
            return Err(report(config, graph, member, "a cycle without progress"));
        }
        for member in &members {
            self.is_member[*member as usize] = false;
        }
        Ok(())
    }

    /// Returns a world on a cycle without retries: one that remains after repeatedly removing worlds without
    /// steps to the rest.
    fn busy<const N: usize>(&self, graph: &Graph<N>, members: &[u32]) -> Option<u32> {
        let mut left: Vec<u32> = members.to_vec();
        let mut is_left = self.is_member.clone();
        loop {
            let count = left.len();
            left.retain(|member| {
                let mut edges = self.edges_of(graph, *member);
                let goes_on = edges.any(|edge| edge & RETRY == 0 && is_left[edge as usize]);
                is_left[*member as usize] = goes_on;
                goes_on
            });
            if left.len() == count {
                return left.first().copied();
            }
        }
    }

    fn edges_of<const N: usize>(&self, graph: &Graph<N>, world: u32) -> impl Iterator<Item = u32> {
        let range = graph.starts[world as usize]..graph.starts[world as usize + 1];
        let edges = &graph.edges[range.start as usize..range.end as usize];
        let is_card_gone = self.is_card_gone;
        let edges = edges
            .iter()
            .filter(move |edge| !is_card_gone || **edge & CARD == 0);
        edges.map(|edge| edge & !CARD)
    }
}

fn report<const N: usize>(
    config: &Config<N>,
    graph: &Graph<N>,
    world: u32,
    violation: &str,
) -> String {
    let path = graph.path(config, world);
    let world = &graph.worlds[world as usize];
    std::format!("{path}=> {violation}\n{world:?}")
}
