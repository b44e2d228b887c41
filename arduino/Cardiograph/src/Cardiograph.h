// Measures how long an SD card takes for each write. Works with the file systems of SD.h, SdFat and SD_MMC, or any other
// whose class has open, remove and files with write, flush and close. Needs C++11 and no heap.
#pragma once

#include "CardiographTrace.h"

// Bytes that are passed to the library in one call.
#ifndef CARDIOGRAPH_BUFFER
#if defined(RAMEND) && RAMEND < 0x1000
#define CARDIOGRAPH_BUFFER 64
#else
#define CARDIOGRAPH_BUFFER 512
#endif
#endif

// Opens a file for appending.
#if defined(FILE_APPEND)
#define CARDIOGRAPH_APPEND FILE_APPEND
#else
#define CARDIOGRAPH_APPEND FILE_WRITE
#endif

// What a test needs to know.
struct CardiographTest {
  const char *board;
  const char *library;
  // Path of the file, which is removed before and after the test.
  const char *path;
  uint32_t writes;
};

enum CardiographFiles {
  // The file stays open, and each line is flushed.
  CARDIOGRAPH_KEEP_OPEN,
  // The file is opened and closed for each line.
  CARDIOGRAPH_OPEN_EACH,
};

static_assert(512 % CARDIOGRAPH_BUFFER == 0, "a block is written in whole buffers");

// Writes `bytes` zeros.
template <typename F> bool cardiographWrite(F &file, uint16_t bytes) {
  static uint8_t buffer[CARDIOGRAPH_BUFFER];
  while (bytes > 0) {
    const uint16_t part = bytes < CARDIOGRAPH_BUFFER ? bytes : CARDIOGRAPH_BUFFER;
    if (file.write(buffer, part) != part) {
      return false;
    }
    bytes -= part;
  }
  return true;
}

// Writes blocks of 512 B to one file without a pause, the test of the study of industrial cards. Returns true if all
// writes succeeded.
template <typename FS> bool cardiographStream(CardiographTrace &trace, FS &fs, const CardiographTest &test) {
  trace.begin(test.board, test.library, "stream-512", 512);
  fs.remove(test.path);
  auto file = fs.open(test.path, FILE_WRITE);
  if (!file) {
    trace.stop("the file cannot be created");
    return false;
  }
  for (uint32_t i = 0; i < test.writes; i++) {
    const uint32_t start_us = micros();
    const bool is_written = cardiographWrite(file, 512);
    const uint32_t end_us = micros();
    if (!is_written) {
      trace.stop("a write failed");
      return false;
    }
    trace.add(0, start_us, end_us);
  }
  file.close();
  fs.remove(test.path);
  trace.end();
  return true;
}

// Writes lines of 100 B, the test of the MagOD2 thesis. Returns true if all writes succeeded.
template <typename FS>
bool cardiographLines(CardiographTrace &trace, FS &fs, const CardiographTest &test, CardiographFiles files) {
  const bool keeps_open = files == CARDIOGRAPH_KEEP_OPEN;
  trace.begin(test.board, test.library, keeps_open ? "lines-kept-open" : "lines-open-each", 100);
  fs.remove(test.path);
  auto file = fs.open(test.path, FILE_WRITE);
  if (!file) {
    trace.stop("the file cannot be created");
    return false;
  }
  if (!keeps_open) {
    file.close();
  }
  for (uint32_t i = 0; i < test.writes; i++) {
    const uint32_t start_us = micros();
    if (!keeps_open) {
      file = fs.open(test.path, CARDIOGRAPH_APPEND);
    }
    const bool is_written = file && cardiographWrite(file, 100);
    if (keeps_open) {
      file.flush();
    } else {
      file.close();
    }
    const uint32_t end_us = micros();
    if (!is_written) {
      trace.stop("a write failed");
      return false;
    }
    trace.add(0, start_us, end_us);
  }
  if (keeps_open) {
    file.close();
  }
  fs.remove(test.path);
  trace.end();
  return true;
}
