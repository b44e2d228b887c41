/* A file of lines on a FAT card, for Arduino sketches: takes the place of File, SD.open, println and close.
 *
 *     CardiographFile<16384> file;                            // instead of File file;
 *     file.open(SPI, SELECT_PIN, "time_us,value");            // instead of file = SD.open("log.csv", FILE_WRITE);
 *     file.println(value);                                    // as before
 *     file.close();                                           // as before
 *
 * println returns while the card stalls; the lines wait in the ring. Call poll() wherever the sketch waits. All calls
 * belong to loop(), none to an interrupt. */
#ifndef CARDIOGRAPH_FILE_H
#define CARDIOGRAPH_FILE_H

#include <Arduino.h>
#include <SPI.h>
#include <string.h>

#include "cardiograph.h"

template <size_t RING_BYTES, size_t LINE_BYTES_MAX = 128>
class CardiographFile : public Print {
 public:
  /* Mounts the card, recovers interrupted files, and opens the first file of this recording. Takes up to a few seconds;
   * statusText() states why it returned false. `header` is the first line of each file and must stay valid. */
  bool open(SPIClass &spi, uint8_t select_pin, const char *header, uint32_t bus_hz = 0) {
    spi_ = &spi;
    select_pin_ = select_pin;
    pinMode(select_pin, OUTPUT);
    digitalWrite(select_pin, HIGH);
    spi.begin();
    memset(&recorder_, 0, sizeof recorder_);
    cardiograph_options options;
    memset(&options, 0, sizeof options);
    options.options_bytes = sizeof options;
    options.hardware.context = this;
    options.hardware.spi_transfer = transfer;
    options.hardware.select = select;
    options.hardware.set_clock_hz = setClock;
    options.hardware.now_us = now;
    options.hardware.panic = panic;
    options.ring = ring_;
    options.ring_bytes = RING_BYTES;
    memcpy(options.prefix, "LOG", 4);
    options.header = header;
    options.line_bytes_max = LINE_BYTES_MAX;
    options.bus_hz = bus_hz;
    options.entropy = micros();
    length_ = 0;
    status_ = cardiograph_begin(&recorder_, &options);
    while (status_ == CARDIOGRAPH_OK && !cardiograph_is_ready(&recorder_)) {
      poll();
    }
    return status_ == CARDIOGRAPH_OK;
  }

  size_t write(uint8_t letter) override {
    /* println ends lines with CR LF. */
    if (letter == '\r') {
      return 1;
    }
    /* A line that is too long is refused as a whole. */
    if (length_ < sizeof line_) {
      line_[length_++] = letter;
    }
    if (letter != '\n') {
      return 1;
    }
    const size_t length = length_;
    length_ = 0;
    const cardiograph_status pushed = cardiograph_push(&recorder_, line_, length);
    poll();
    if (pushed != CARDIOGRAPH_OK) {
      setWriteError();
      return 0;
    }
    return 1;
  }

  using Print::write;

  /* Lets the recorder work until it waits for the card. */
  void poll() {
    if (status_ == CARDIOGRAPH_OK) {
      status_ = cardiograph_poll(&recorder_);
    }
  }

  /* Writes the remaining lines and closes the file. Returns false if any line was lost. */
  bool close() {
    if (status_ == CARDIOGRAPH_OK) {
      status_ = cardiograph_end(&recorder_);
    }
    cardiograph_statistics statistics;
    return status_ == CARDIOGRAPH_OK && cardiograph_get_statistics(&recorder_, &statistics) == CARDIOGRAPH_OK &&
           statistics.lost == 0;
  }

  const char *statusText() const { return cardiograph_status_text(status_); }

 private:
  static int transfer(void *context, const uint8_t *send, uint8_t *receive, size_t bytes) {
    CardiographFile &self = *static_cast<CardiographFile *>(context);
    self.spi_->beginTransaction(SPISettings(self.hz_, MSBFIRST, SPI_MODE0));
    while (bytes > 0) {
      /* transfer() replaces the bytes that it sends. */
      uint8_t piece[64];
      const size_t count = bytes < sizeof piece ? bytes : sizeof piece;
      uint8_t *at = receive ? receive : piece;
      if (!send) {
        memset(at, 0xFF, count);
      } else {
        memmove(at, send, count);
        send += count;
      }
      self.spi_->transfer(at, count);
      if (receive) {
        receive += count;
      }
      bytes -= count;
    }
    self.spi_->endTransaction();
    return 0;
  }

  static void select(void *context, bool is_selected) {
    digitalWrite(static_cast<CardiographFile *>(context)->select_pin_, is_selected ? LOW : HIGH);
  }

  static void setClock(void *context, uint32_t hz) { static_cast<CardiographFile *>(context)->hz_ = hz; }

  /* micros() wraps after 71 minutes; the recorder reads the clock at least every few milliseconds. */
  static uint64_t now(void *context) {
    CardiographFile &self = *static_cast<CardiographFile *>(context);
    const uint32_t us = micros();
    self.now_us_ += static_cast<uint32_t>(us - static_cast<uint32_t>(self.now_us_));
    return self.now_us_;
  }

  static void panic() {
    for (;;) {
    }
  }

  SPIClass *spi_ = nullptr;
  uint8_t select_pin_ = 0;
  uint32_t hz_ = 400000;
  uint64_t now_us_ = 0;
  cardiograph_status status_ = CARDIOGRAPH_NOT_BEGUN;
  size_t length_ = 0;
  uint8_t line_[LINE_BYTES_MAX + 1];
  uint8_t ring_[RING_BYTES];
  cardiograph_recorder recorder_;
};

#endif
