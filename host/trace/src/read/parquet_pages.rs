//! Pages of a Parquet column, validated before the decoder sees them.
//!
//! The decoder trusts page headers: it reserves memory for as many values as a dictionary claims, and panics if
//! the dictionary is missing. Such pages are rejected here.

use super::error::{Fault, Problem};
use super::thrift::{is_sound, page_bytes};
use bytes::{Buf, Bytes};
use parquet::basic::{Compression, Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;
use std::sync::Arc;

/// Maximum length of a page header, in bytes; headers of numeric columns are far shorter.
const HEADER_BYTES_MAX: u64 = 4096;

/// Maximum bytes of a decompressed page for each row of its group: a value, its definition level and its index in
/// a dictionary.
const ROW_BYTES_MAX: u64 = 16;

/// As [`ROW_BYTES_MAX`], for a column of texts.
const TEXT_ROW_BYTES_MAX: u64 = 256;

/// Bytes of a decompressed page beyond its rows.
const PAGE_BYTES: u64 = 4096;

/// Checks that a column's compression is supported and that the column lies within the file.
pub(super) fn check_chunk(column: &ColumnChunkMetaData, length_bytes: u64) -> Result<(), Fault> {
    match column.compression() {
        Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_) => {}
        other => {
            let name = format!("{other:?}").to_lowercase();
            let name = name.split('(').next().unwrap_or_default().to_owned();
            return Err(Problem::ParquetCompressed { name }.in_file());
        }
    }
    if column
        .encodings()
        .any(|encoding| encoding == Encoding::BYTE_STREAM_SPLIT)
    {
        let name = "BYTE_STREAM_SPLIT".to_owned();
        return Err(Problem::ParquetEncoded { name }.in_file());
    }
    let start = column
        .dictionary_page_offset()
        .unwrap_or(column.data_page_offset());
    let end = start.checked_add(column.compressed_size());
    let lies_in_file = start >= 0
        && column.compressed_size() >= 0
        && end.is_some_and(|end| end as u64 <= length_bytes);
    if lies_in_file {
        Ok(())
    } else {
        Err(Problem::ParquetDamaged("a column lies outside the file".to_owned()).in_file())
    }
}

/// A file whose page headers are validated as they are read.
struct CheckedHeaders<C> {
    file: Arc<C>,
    /// Limit on the length in a header, because the decoder reserves this much memory.
    page_bytes_max: u64,
}

impl<C: ChunkReader> Length for CheckedHeaders<C> {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl<C: ChunkReader> ChunkReader for CheckedHeaders<C> {
    type T = bytes::buf::Reader<Bytes>;

    /// Validates a header. The decoder reads headers this way, and pages with `get_bytes`.
    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let left = self.len().saturating_sub(start);
        let header = self
            .file
            .get_bytes(start, left.min(HEADER_BYTES_MAX) as usize)?;
        let is_short = page_bytes(&header).is_some_and(|bytes| bytes <= self.page_bytes_max);
        if is_short && is_sound(&header) {
            Ok(header.reader())
        } else {
            Err(ParquetError::General(
                "a page header is malformed".to_owned(),
            ))
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.file.get_bytes(start, length)
    }
}

/// The pages of one column.
pub(super) struct CheckedPages {
    pages: Box<dyn PageReader>,
    column: ColumnDescPtr,
    value_bytes: usize,
    has_dictionary: bool,
}

impl CheckedPages {
    /// Opens the pages of a column that [`check_chunk`] accepted.
    pub(super) fn open<C: ChunkReader + 'static>(
        file: &Arc<C>,
        group: &RowGroupMetaData,
        index: usize,
        rows: usize,
    ) -> Result<CheckedPages, Fault> {
        let column = group.column(index);
        let pages = SerializedPageReader::new(
            Arc::new(CheckedHeaders {
                file: Arc::clone(file),
                page_bytes_max: (rows as u64)
                    .saturating_mul(match column.column_type() {
                        Physical::BYTE_ARRAY => TEXT_ROW_BYTES_MAX,
                        _ => ROW_BYTES_MAX,
                    })
                    .saturating_add(PAGE_BYTES),
            }),
            column,
            rows,
            None,
        )
        .map_err(|error| Problem::ParquetDamaged(error.to_string()).in_file())?;
        Ok(CheckedPages {
            pages: Box::new(pages),
            column: column.column_descr_ptr(),
            value_bytes: match column.column_type() {
                // A text begins with its length, in four bytes.
                Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
                _ => 8,
            },
            has_dictionary: false,
        })
    }

    pub(super) fn column(&self) -> ColumnDescPtr {
        Arc::clone(&self.column)
    }

    fn check(&mut self, page: &Page) -> Result<(), ParquetError> {
        let refuse = |why: &str| Err(ParquetError::General(why.to_owned()));
        match page {
            Page::DictionaryPage {
                buf, num_values, ..
            } => {
                if *num_values as usize > buf.len() / self.value_bytes {
                    return refuse("a dictionary is shorter than its header claims");
                }
                self.has_dictionary = true;
            }
            Page::DataPage { .. } | Page::DataPageV2 { .. } => match page.encoding() {
                Encoding::PLAIN | Encoding::DELTA_BINARY_PACKED => {}
                Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                    if !self.has_dictionary {
                        return refuse("a dictionary is missing");
                    }
                    // The first byte of the page is the bit width of a dictionary index.
                    if page.buffer().is_empty() {
                        return refuse("a page is empty");
                    }
                }
                _ => return refuse("a page has an encoding that traces do not use"),
            },
        }
        Ok(())
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}
