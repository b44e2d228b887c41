//! Arbitrary bytes as a binary recording: errors are fine, panics are not, and rows must be complete.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_record::{ExportError, export_csv, export_ulog};
use std::cell::RefCell;
use std::io::{Cursor, Write};

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let mut sealed = bytes.to_vec();
    // With corrected checksums, more inputs get past the first check.
    for block in sealed.as_chunks_mut::<512>().0 {
        let crc = crc::crc32(&block[..508]);
        block[508..].copy_from_slice(&crc.to_le_bytes());
    }
    for bytes in [bytes, &sealed] {
        let (text, mut told) = (RefCell::new(Vec::new()), 0);
        let open = |_, _| Ok(Shared(&text));
        match export_csv(bytes, open, |range| told += range.count() as u64) {
            Ok(exported) => {
                assert_eq!(told, exported.damaged_blocks);
                assert!(exported.samples <= bytes.len() as u64);
                assert!(text.borrow().ends_with(b"\r\n"));
            }
            Err(error) => assert!(matches!(error, ExportError::NoHeader)),
        }
        let _ = export_ulog(Cursor::new(bytes), std::io::sink(), |_| ());
    }
});

struct Shared<'a>(&'a RefCell<Vec<u8>>);

impl Write for Shared<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

mod crc {
    include!("../crc32.rs");
}
