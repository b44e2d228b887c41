// A sketch that logs lines with CardiographFile, on a simulated card.
//
// Arguments: image of a FAT file system, profile of the card. The clock wraps two seconds after power-up.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CardiographFile.h"

extern "C" {
uint8_t *buffer(size_t bytes);
int32_t card_new(uint64_t seed, uint64_t capacity_bytes);
uint8_t card_exchange_at(size_t card, double start_ns, double end_ns, uint8_t byte);
void card_select(size_t card, uint32_t is_selected);
void card_power(size_t card, double now_ns, uint32_t is_on);
void card_store(size_t card, uint32_t start);
void card_read(size_t card, uint32_t start);
}

enum { SAMPLES = 20000, SAMPLE_US = 250, IMAGE_BYTES = 64 << 20, SELECT_PIN = 10, BYTE_NS = 320, LOOK_NS = 5000 };

static size_t card;
SPIClass SPI;
static uint64_t now_ns = (UINT64_C(1) << 32) * 1000 - UINT64_C(2000000000);

void pinMode(uint8_t, uint8_t) {}

void digitalWrite(uint8_t pin, uint8_t level) {
  if (pin == SELECT_PIN) {
    card_select(card, level == LOW);
  }
}

uint32_t micros() {
  now_ns += LOOK_NS;
  return static_cast<uint32_t>(now_ns / 1000);
}

void SPIClass::transfer(void *bytes, size_t count) {
  uint8_t *at = static_cast<uint8_t *>(bytes);
  for (; count > 0; count--, at++) {
    *at = card_exchange_at(card, static_cast<double>(now_ns), static_cast<double>(now_ns + BYTE_NS), *at);
    now_ns += BYTE_NS;
  }
}

size_t Print::write(const char *text) {
  size_t written = 0;
  while (*text) {
    written += write(static_cast<uint8_t>(*text++));
  }
  return written;
}

size_t Print::println(const char *text) { return write(text) + write("\r\n"); }

static void fail(const char *what) {
  fprintf(stderr, "sketch: %s\n", what);
  exit(1);
}

// The sketch.
static CardiographFile<65536, 32> file;

static void setup() {
  if (!file.open(SPI, SELECT_PIN, "index,value")) {
    fail(file.statusText());
  }
}

static void loop(uint32_t index) {
  static uint32_t next_us = micros();
  while (static_cast<int32_t>(micros() - next_us) < 0) {
    file.poll();
  }
  next_us += SAMPLE_US;
  char line[32];
  snprintf(line, sizeof line, "%u,%u", static_cast<unsigned>(index), static_cast<unsigned>(index * 2654435769u));
  file.println(line);
}

static void move_image(const char *path, bool is_load) {
  FILE *image = fopen(path, is_load ? "rb" : "wb");
  uint8_t *bytes = buffer(IMAGE_BYTES);
  if (!is_load) {
    card_read(card, 0);
  }
  if (!image || (is_load ? fread(bytes, 1, IMAGE_BYTES, image) : fwrite(bytes, 1, IMAGE_BYTES, image)) != IMAGE_BYTES) {
    fail("the image cannot be read or written; it must have 64 MiB");
  }
  fclose(image);
  if (is_load) {
    card_store(card, 0);
  }
}

int main(int count, char **args) {
  if (count != 3) {
    fail("usage: sketch IMAGE PROFILE");
  }
  memcpy(buffer(strlen(args[2])), args[2], strlen(args[2]));
  const int32_t handle = card_new(1, IMAGE_BYTES);
  if (handle < 0) {
    fail("no such profile");
  }
  card = static_cast<size_t>(handle);
  // The card is not formatted yet.
  if (file.open(SPI, SELECT_PIN, "index,value")) {
    fail("a recording began on a card without a file system");
  }
  if (strstr(file.statusText(), "file system") == nullptr) {
    fail(file.statusText());
  }
  move_image(args[1], true);
  card_power(card, static_cast<double>(now_ns), 1);
  setup();
  for (uint32_t index = 0; index < SAMPLES; index++) {
    loop(index);
  }
  char longer[64];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  if (file.getWriteError() || (file.println(longer), !file.getWriteError())) {
    fail("a line was lost, or one that is too long was accepted");
  }
  // The line that is too long counts as lost.
  if (file.close()) {
    fail("close did not report the lost line");
  }
  move_image(args[1], false);
  return 0;
}
