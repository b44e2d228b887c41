//! Cards that receive pages while they program earlier ones: times, durability, and replays of their traces.

use cardiograph_sim_card::{Block, Card, Controller, Profile, Seed};

const PAGES: u64 = 12;
const BLOCK_NS: u64 = 40_000;

/// Returns an empty card whose pages take equal times, and its blocks per page.
fn profile(receive_pages: u32) -> (Profile, u64) {
    let mut profile = Profile::named("panasonic-1g").unwrap();
    profile.member.clear();
    profile.flash.spread_percent = 0;
    profile.flash.pages_per_block = 64;
    profile.controller.open_units = 1;
    profile.controller.fast_zone_units = 0;
    let ftl = profile.ftl.as_mut().unwrap();
    (ftl.fill_percent, ftl.log_percent) = ([0, 0], [0, 0]);
    (ftl.commit_us, ftl.receive_pages) = (0, receive_pages);
    let blocks = Controller::new(&profile, Seed::new(1)).blocks_per_page();
    (profile, blocks)
}

fn value(page: u64) -> Block {
    [page as u8 + 1; 512]
}

/// Sends pages in one command; returns the time after each page, and after the end of the command.
fn send(card: &mut Card, page_blocks: u64, block_ns: u64) -> (Vec<u64>, u64) {
    let mut now_ns = 0;
    let mut ends_ns = Vec::new();
    for page in 0..PAGES {
        for block in page * page_blocks..(page + 1) * page_blocks {
            now_ns += block_ns;
            now_ns += card.stream_write(now_ns, block, &value(page)).unwrap();
        }
        ends_ns.push(now_ns);
    }
    now_ns += card.stream_end(now_ns);
    (ends_ns, now_ns)
}

#[test]
fn the_slower_of_bus_and_flash_determines_the_time_of_a_stream() {
    for block_ns in [BLOCK_NS, BLOCK_NS / 8] {
        let (profile, page_blocks) = profile(0);
        let program_ns = u64::from(profile.flash.program_us[0]) * 1000;
        let command_ns = u64::from(profile.controller.command_us) * 1000;
        let bus_ns = block_ns * page_blocks;
        let serial_ns = command_ns + PAGES * (bus_ns + program_ns);
        let mut card = Card::new(&profile, Seed::new(1));
        assert_eq!(send(&mut card, page_blocks, block_ns).1, serial_ns);
        for receive_pages in [1, 2] {
            let (profile, _) = self::profile(receive_pages);
            let mut card = Card::new(&profile, Seed::new(1));
            let ahead_ns = match bus_ns > program_ns {
                true => command_ns + PAGES * bus_ns + program_ns,
                false => command_ns + bus_ns + PAGES * program_ns,
            };
            assert_eq!(send(&mut card, page_blocks, block_ns).1, ahead_ns);
        }
    }
}

#[test]
fn a_power_cut_leaves_the_pages_that_were_in_flash() {
    for receive_pages in [0, 1, 3] {
        let (profile, page_blocks) = profile(receive_pages);
        let program_ns = u64::from(profile.flash.program_us[0]) * 1000;
        let mut card = Card::new(&profile, Seed::new(1));
        let block_ns = BLOCK_NS / 8;
        let (ends_ns, end_ns) = send(&mut card, page_blocks, block_ns);
        let mut most_waiting = 0;
        for page in 1..PAGES {
            // The moment at which the page has been accepted.
            let cut_ns = ends_ns[page as usize];
            let mut card = Card::new(&profile, Seed::new(1));
            let mut now_ns = 0;
            for block in 0..(page + 1) * page_blocks {
                now_ns += block_ns;
                now_ns += card
                    .stream_write(now_ns, block, &value(block / page_blocks))
                    .unwrap();
            }
            assert_eq!(now_ns, cut_ns);
            card.power_cut(cut_ns);
            let in_flash = |page: u64| {
                let mut data = [[0; 512]];
                card.load(page * page_blocks, &mut data);
                data[0] == value(page)
            };
            let count = (0..PAGES).filter(|&page| in_flash(page)).count() as u64;
            assert!((0..count).all(in_flash));
            let expected = match receive_pages {
                0 => page + 1,
                // Programming is the bottleneck, and began when the first page had arrived.
                _ => (cut_ns - ends_ns[0]) / program_ns,
            };
            assert_eq!(count, expected, "after page {page}");
            most_waiting = most_waiting.max(page + 1 - count);
        }
        assert_eq!(most_waiting, u64::from(receive_pages));
        card.power_cut(end_ns);
        for page in 0..PAGES {
            let mut data = [[0; 512]];
            card.load(page * page_blocks, &mut data);
            assert_eq!(data[0], value(page));
        }
    }
}

#[test]
fn a_replayed_trace_takes_the_same_time_and_a_single_block_is_in_flash_after_busy() {
    let (profile, page_blocks) = profile(2);
    let mut card = Card::new(&profile, Seed::new(1));
    card.controller_mut().start_trace();
    let (_, end_ns) = send(&mut card, page_blocks, BLOCK_NS / 8);
    let busy_ns = card.write(end_ns, 3, &value(50)).unwrap();
    let trace = card.controller_mut().take_trace();
    let mut replay = Controller::new(&profile, Seed::new(1));
    for call in trace {
        assert_eq!(
            replay.run_operation(call.start_ns, call.operation),
            call.busy_ns
        );
    }
    assert_eq!(replay.ready_ns(), end_ns + busy_ns);
    card.power_cut(end_ns + busy_ns);
    let mut data = [[0; 512]];
    card.load(3, &mut data);
    assert_eq!(data[0], value(50));
}
