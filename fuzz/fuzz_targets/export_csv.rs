//! Any bytes, as a binary recording: an error is fine, a panic is not, and rows have their columns.

#![no_main]

use cardiograph_record::{ExportError, export_csv};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut sealed = bytes.to_vec();
    // A checksum that is right lets more through.
    for block in sealed.as_chunks_mut::<512>().0 {
        let crc = crc::crc32(&block[..508]);
        block[508..].copy_from_slice(&crc.to_le_bytes());
    }
    for bytes in [bytes, &sealed] {
        let (mut text, mut told) = (Vec::new(), 0);
        match export_csv(bytes, &mut text, |range| told += range.count() as u64) {
            Ok(exported) => {
                assert_eq!(told, exported.damaged_blocks);
                assert!(exported.samples <= bytes.len() as u64);
                assert!(text.ends_with(b"\r\n"));
            }
            Err(error) => assert!(matches!(error, ExportError::NoHeader)),
        }
    }
});

mod crc {
    include!("../crc32.rs");
}
