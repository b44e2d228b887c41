//! Commands over a board's serial port.

use cardiograph_server::{Order, OrderLine, Payload, WriteTest};

/// Remainder of the polynomial division, bit by bit.
fn crc(text: &[u8]) -> u32 {
    let bits = text
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let mut rest = 0_u32;
    for bit in bits.chain([0; 16]) {
        rest = rest << 1 | u32::from(bit);
        if rest > 0xFFFF {
            rest ^= 0x1_1021;
        }
    }
    rest
}

fn line(body: &str) -> Vec<u8> {
    let text = format!("CG1 {body}");
    format!("{text} *{:04X}\n", crc(text.as_bytes())).into_bytes()
}

fn orders(bytes: &[u8]) -> Vec<Order> {
    let mut line = OrderLine::new();
    bytes.iter().filter_map(|byte| line.add(*byte)).collect()
}

fn test(bytes: u64, writes: u64, files: u64, delay_ms: u64) -> Order {
    Order::Test(Ok(WriteTest::new(bytes, writes, files, delay_ms).unwrap()))
}

#[test]
fn commands_begin_and_end_tests() {
    for (text, expected) in [
        (
            "T bytes=4096&writes=7&files=3&delay=20",
            test(4096, 7, 3, 20),
        ),
        ("T writes=9", test(512, 9, 1, 0)),
        ("T ", test(512, 2048, 1, 0)),
        ("Q", Order::StopTest),
    ] {
        assert_eq!(orders(&line(text)), [expected], "{text}");
    }
    let lines = WriteTest::new(100, 10, 1, 0).unwrap().with(Payload::Lines);
    let order = Order::Test(Ok(lines.unwrap()));
    assert_eq!(orders(&line("T bytes=100&writes=10&lines=1")), [order]);
    assert_eq!(orders(b"stop\r\nstatus\n"), [Order::Stop, Order::Status]);
}

#[test]
fn a_test_that_is_impossible_is_refused() {
    for text in [
        "T bytes=0",
        "T bytes=65537",
        "T writes=x",
        "T delay=60001",
        "T bytes=512&lines=1",
        "T bytes=65536&writes=65536",
    ] {
        let found = orders(&line(text));
        assert!(
            matches!(found[..], [Order::Test(Err(_))]),
            "{text}: {found:?}"
        );
    }
}

/// A changed, missing or additional byte never makes another command.
#[test]
fn damaged_lines_are_ignored_and_the_next_one_counts() {
    let whole = line("T bytes=512&writes=100");
    let expected = orders(&whole);
    for at in 0..whole.len() - 1 {
        let mut lines = vec![[&whole[..at], &whole[at + 1..]].concat()];
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            lines.push(flipped);
        }
        for mut damaged in lines {
            // A flipped bit may only change the case of the checksum.
            let found = orders(&damaged);
            assert!(
                found.iter().all(|order| *order == expected[0]),
                "{damaged:?}"
            );
            damaged.push(b'\n');
            damaged.extend(&whole);
            assert_eq!(orders(&damaged).last(), expected.last());
        }
    }
    let mut noise: Vec<u8> = (0..=255).cycle().take(5000).collect();
    noise.push(b'\n');
    assert!(orders(&noise).is_empty());
    noise.extend(&whole);
    assert_eq!(orders(&noise), expected);
    // The end of a command that began before the line was read.
    assert!(orders(&whole[9..]).is_empty());
    assert!(orders(b"stopp\nstop it\n stop\nCG1 Q *0000\nCG1 *\nCG1 Q *\n").is_empty());
}
