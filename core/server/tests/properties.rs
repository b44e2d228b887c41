//! Properties, with random input.

use crate::memory;

use cardiograph_server::{Selection, decode_path, select};
use memory::Memory;
use memory::client::{CONFIG, raw};
use memory::socket::End;
use proptest::prelude::*;

fn memory() -> Memory {
    let memory = Memory::default();
    memory.directory("/d");
    memory.file("/a.csv", &[b'a'; 3000]);
    memory.file("/d/b.csv", b"b");
    memory
}

/// Requests whose responses do not depend on each other.
const REQUESTS: [&str; 9] = [
    "GET /a.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nRange: bytes=5-900\r\n\r\n",
    "GET /list?dir=/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
    "HEAD /a.csv HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
    "GET /d?tar=1 HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
    "PUT /d/b.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 9\r\n\r\nGET / HTT",
    "PUT /d/b.csv HTTP/1.1\r\nHost: 10.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n6\r\ndefghi\r\n0\r\n\r\n",
    "POST /edit HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 92\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"/d/b.csv\"\r\n\r\nGET / HTT\r\n--b--\r\n\r\n\r\n",
    "\r\nGET /none HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
    "GET /d HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// The responses do not depend on how the bytes of requests arrive.
    #[test]
    fn any_split_gives_the_same_answers(
        which in prop::collection::vec(0..REQUESTS.len(), 1..6),
        mut cuts in prop::collection::vec(0_usize..2000, 0..20),
    ) {
        // The first upload creates a state that the others leave unchanged.
        let whole: Vec<u8> = which.iter().flat_map(|at| REQUESTS[*at].bytes()).collect();
        let expected = raw(&memory(), CONFIG, vec![whole.clone()], End::Close);
        cuts.iter_mut().for_each(|cut| *cut %= whole.len());
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        let segments = cuts.windows(2).map(|pair| whole[pair[0]..pair[1]].to_vec());
        let segments = segments.filter(|segment| !segment.is_empty()).collect();
        let sent = raw(&memory(), CONFIG, segments, End::Close);
        prop_assert!(sent == expected);
    }

    /// Arbitrary bytes: the connection ends, and nothing changes.
    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        let memory = memory();
        let before = memory.paths();
        let sent = raw(&memory, CONFIG, vec![bytes], End::Close);
        prop_assert!(sent.is_empty() || sent.starts_with(b"HTTP/1.1 4"));
        prop_assert_eq!(memory.paths(), before);
    }

    /// Ranges select the same bytes as a search that follows their definition.
    #[test]
    fn ranges_match_their_definition(
        first in prop::option::of(0_u64..40),
        last in prop::option::of(0_u64..40),
        bytes in 0_u64..30,
    ) {
        let text = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        let range = format!("bytes={}-{}", text(first), text(last));
        let wanted: Option<Vec<u64>> = match (first, last) {
            (Some(first), Some(last)) if last < first => None,
            (Some(first), last) => Some((0..bytes).filter(|at| *at >= first && last.is_none_or(|last| *at <= last)).collect()),
            (None, Some(count)) => Some((0..bytes).filter(|at| at + count >= bytes).collect()),
            (None, None) => None,
        };
        let selected = match select(&range, bytes) {
            Selection::Whole => None,
            Selection::Nothing => Some(vec![]),
            Selection::Part(start, end) => {
                prop_assert!(start < end && end <= bytes);
                Some((start..end).collect())
            }
        };
        prop_assert_eq!(selected, wanted);
    }

    /// A decoded path is plain, whatever the client sends.
    #[test]
    fn decoded_paths_are_plain(path in "(/|%2[fF]|\\.|%2[eE]|%25|\\\\|%5c|%00| |a|B|%C3%A9|\\.part|CARDIOGR\\.){0,12}") {
        if let Ok(path) = decode_path(&path) {
            prop_assert!(path.starts_with('/'));
            prop_assert!(!path.contains(['%', '\\', '\0']));
            if path != "/" {
                for name in path[1..].split('/') {
                    prop_assert!(!name.is_empty() && !name.starts_with('.'));
                    prop_assert!(!name.ends_with(['.', ' ']));
                    prop_assert!(!name.to_lowercase().ends_with(".part"));
                    prop_assert!(!name.to_lowercase().starts_with("cardiogr."));
                }
            }
        }
    }
}
