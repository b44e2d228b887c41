#include "CardiographTrace.h"

// Resolution of micros(), in us.
#if defined(__AVR__)
static const uint32_t CLOCK_US = 64000000UL / F_CPU;
#else
static const uint32_t CLOCK_US = 1;
#endif

void CardiographTrace::begin(const char *board, const char *library, const char *workload, uint32_t bytes) {
  writes = 0;
  count = 0;
  begin_line('B');
  text("board=");
  text(board);
  text(" library=");
  text(library);
  text(" workload=");
  text(workload);
  text(" bytes=");
  number(bytes);
  text(" clock_us=");
  number(CLOCK_US);
  end_line();
}

void CardiographTrace::add(uint32_t new_file, uint32_t start_us, uint32_t end_us) {
  if (count == CARDIOGRAPH_GROUP || (count > 0 && new_file != file)) {
    print_group();
  }
  if (count == 0) {
    file = new_file;
    group_start_us = start_us;
    last_end_us = start_us;
  }
  spans[count].pause_us = start_us - last_end_us;
  spans[count].latency_us = end_us - start_us;
  last_end_us = end_us;
  count++;
}

void CardiographTrace::end() {
  print_group();
  begin_line('E');
  number(writes);
  end_line();
}

void CardiographTrace::stop(const char *reason) {
  print_group();
  begin_line('X');
  number(writes);
  put(' ');
  text(reason);
  end_line();
}

void CardiographTrace::cores(const char *board, const CardiographCoreTimes &times) {
  begin_line('C');
  text("board=");
  text(board);
  text(" alone_us=");
  number(times.alone_us[0]);
  put(',');
  number(times.alone_us[1]);
  text(" twice_us=");
  number(times.twice_us[0]);
  put(',');
  number(times.twice_us[1]);
  text(" both_us=");
  number(times.both_us);
  end_line();
}

void CardiographTrace::print_group() {
  if (count == 0) {
    return;
  }
  begin_line('W');
  number(writes);
  put(' ');
  number(file);
  put(' ');
  number(group_start_us);
  for (uint8_t i = 0; i < count; i++) {
    put(' ');
    if (i > 0) {
      number(spans[i].pause_us);
      put(',');
    }
    number(spans[i].latency_us);
  }
  end_line();
  writes += count;
  count = 0;
}

void CardiographTrace::put(char letter) {
  out.write(static_cast<uint8_t>(letter));
  crc ^= static_cast<uint16_t>(static_cast<uint8_t>(letter)) << 8;
  for (uint8_t bit = 0; bit < 8; bit++) {
    crc = crc & 0x8000 ? static_cast<uint16_t>(crc << 1) ^ 0x1021 : static_cast<uint16_t>(crc << 1);
  }
}

void CardiographTrace::text(const char *letters) {
  while (*letters) {
    put(*letters++);
  }
}

void CardiographTrace::number(uint32_t value) {
  char digits[10];
  uint8_t length = 0;
  do {
    digits[length++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value > 0);
  while (length > 0) {
    put(digits[--length]);
  }
}

void CardiographTrace::begin_line(char kind) {
  crc = 0;
  text("CG1 ");
  put(kind);
  put(' ');
}

void CardiographTrace::end_line() {
  static const char HEX_DIGITS[] = "0123456789ABCDEF";
  const uint16_t checksum = crc;
  text(" *");
  for (int8_t shift = 12; shift >= 0; shift -= 4) {
    put(HEX_DIGITS[checksum >> shift & 15]);
  }
  text("\r\n");
  out.flush();
}
