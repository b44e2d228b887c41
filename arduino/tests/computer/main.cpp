// Runs the library's tests on a stand-in of a card whose latencies are known, and prints their traces. The first argument
// is the test: stream, open-each, kept-open, fails, cores, or none.

#define FILE_WRITE 1
#define ESP32
#include <Cardiograph.h>
#include <CardiographCores.h>

#include <stdio.h>
#include <string.h>

// The clock wraps during each test.
static uint32_t now_us = UINT32_MAX - 1000000;

uint32_t micros() { return now_us; }

void advance(uint32_t us) { now_us += us; }

class Output : public Print {
public:
  size_t write(uint8_t letter) override {
    now_us += 87; // 115200 baud
    return fwrite(&letter, 1, 1, stdout);
  }
};

// Each write takes 1 ms, each hundredth one 85 ms; opening, closing and flushing take 2 ms each.
class File {
public:
  explicit File(bool is_open = false) : is_open(is_open) {}
  explicit operator bool() const { return is_open; }
  size_t write(const uint8_t *, size_t bytes) {
    written += bytes;
    total += bytes;
    const bool fails = fails_at > 0 && total >= fails_at;
    if (written >= 512 || bytes == 100) {
      written = 0;
      blocks++;
      now_us += blocks % 100 == 0 ? 85000 : 1000;
    }
    return fails ? 0 : bytes;
  }
  void flush() { now_us += 2000; }
  void close() {
    now_us += 2000;
    is_open = false;
  }
  static size_t total, fails_at;

private:
  bool is_open;
  static size_t written, blocks;
};
size_t File::written = 0, File::blocks = 0, File::total = 0, File::fails_at = 0;

class FileSystem {
public:
  bool has_card = true;
  File open(const char *, int) {
    now_us += 2000;
    return File(has_card);
  }
  bool remove(const char *) { return true; }
};

int main(int count, char **arguments) {
  const char *name = count > 1 ? arguments[1] : "";
  Output output;
  CardiographTrace trace(output);
  FileSystem fs;
  const CardiographTest test = {"computer", "stand-in", "CG.TMP", 1000};
  if (strcmp(name, "stream") == 0) {
    return !cardiographStream(trace, fs, test);
  } else if (strcmp(name, "kept-open") == 0) {
    return !cardiographLines(trace, fs, test, CARDIOGRAPH_KEEP_OPEN);
  } else if (strcmp(name, "open-each") == 0) {
    return !cardiographLines(trace, fs, test, CARDIOGRAPH_OPEN_EACH);
  } else if (strcmp(name, "fails") == 0) {
    File::fails_at = 700 * 512;
    return cardiographStream(trace, fs, test);
  } else if (strcmp(name, "cores") == 0) {
    static CardiographEsp32Cores cores;
    cardiographCores(trace, cores, "computer");
    return !cardiographStream(trace, fs, test);
  } else if (strcmp(name, "none") == 0) {
    fs.has_card = false;
    return cardiographStream(trace, fs, test);
  }
  fprintf(stderr, "unknown test\n");
  return 2;
}
