// Measures a stand-in of a card on an ATmega: a busy wait for each write. It is not a card and not a card library.

#define FILE_WRITE 1
#include <Cardiograph.h>

#if RAMEND < 0x1000
static_assert(sizeof(CardiographTrace) + CARDIOGRAPH_BUFFER <= 512, "at most 512 B on an Uno");
#else
static_assert(sizeof(CardiographTrace) + CARDIOGRAPH_BUFFER <= 2048, "at most 2 KB on a Mega");
#endif

// Each block takes 2 ms, and each fiftieth one 40 ms.
const uint16_t BLOCK_US = 2000;
const uint8_t STALL_MS = 40;
const uint8_t STALL_BLOCKS = 50;
const uint32_t BLOCKS = 200;

static uint16_t buffered = 0;
static uint16_t blocks = 0;

struct File {
  explicit operator bool() const { return true; }
  size_t write(const uint8_t *, size_t bytes) {
    buffered += bytes;
    if (buffered >= 512) {
      buffered -= 512;
      blocks++;
      if (blocks % STALL_BLOCKS == 0) {
        delay(STALL_MS);
      } else {
        delayMicroseconds(BLOCK_US);
      }
    }
    return bytes;
  }
  void flush() {}
  void close() {}
};

struct FileSystem {
  File open(const char *, int) { return File(); }
  bool remove(const char *) { return true; }
};

void setup() {
  Serial.begin(115200);
  CardiographTrace trace(Serial);
  FileSystem fs;
  const CardiographTest test = {"mega2560", "stand-in", "CG.TMP", BLOCKS};
  cardiographStream(trace, fs, test);
}

void loop() {}
