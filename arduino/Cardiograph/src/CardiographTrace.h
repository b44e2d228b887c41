// A trace of writes over a serial port. docs/formats.md of Cardiograph specifies the lines.
#pragma once

#include <Arduino.h>

// Number of writes between two pauses for printing, each 8 bytes of RAM. Boards with 2 KB of RAM get a shorter line.
#ifndef CARDIOGRAPH_GROUP
#if defined(RAMEND) && RAMEND < 0x1000
#define CARDIOGRAPH_GROUP 8
#else
#define CARDIOGRAPH_GROUP 64
#endif
#endif

// Times of the load in CardiographCores.h.
struct CardiographCoreTimes {
  // One load on core 0, and on core 1.
  uint32_t alone_us[2];
  // Two loads at once on core 0, and on core 1.
  uint32_t twice_us[2];
  // One load on each core at once.
  uint32_t both_us;
};

class CardiographTrace {
public:
  explicit CardiographTrace(Print &out) : out(out) {}

  // Begins a run of writes of `bytes` each. The words must not contain spaces.
  void begin(const char *board, const char *library, const char *workload, uint32_t bytes);

  // Adds a write. Prints a line, and waits until it is sent, after every CARDIOGRAPH_GROUP writes and when the file
  // changes, so that printing never runs during a write.
  void add(uint32_t file, uint32_t start_us, uint32_t end_us);

  // Ends the run.
  void end();

  // Ends the run because of an error.
  void stop(const char *reason);

  // Prints the times of the load, before a run.
  void cores(const char *board, const CardiographCoreTimes &times);

private:
  struct Span {
    uint32_t pause_us;
    uint32_t latency_us;
  };

  void print_group();
  void put(char letter);
  void text(const char *letters);
  void number(uint32_t value);
  void begin_line(char kind);
  void end_line();

  Print &out;
  uint32_t writes = 0;
  uint32_t file = 0;
  uint32_t group_start_us = 0;
  uint32_t last_end_us = 0;
  uint8_t count = 0;
  uint16_t crc = 0;
  Span spans[CARDIOGRAPH_GROUP];
};

static_assert(CARDIOGRAPH_GROUP >= 1 && CARDIOGRAPH_GROUP <= 255, "the count of a group is a byte");
