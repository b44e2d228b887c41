// The parts of Arduino that CardiographFile uses, on a computer with a simulated card.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { LOW = 0, HIGH = 1, OUTPUT = 1 };

void pinMode(uint8_t pin, uint8_t mode);
void digitalWrite(uint8_t pin, uint8_t level);
uint32_t micros();

class Print {
public:
  virtual ~Print() {}
  virtual size_t write(uint8_t letter) = 0;
  size_t write(const char *text);
  size_t println(const char *text);
  int getWriteError() { return error_; }

protected:
  void setWriteError() { error_ = 1; }

private:
  int error_ = 0;
};
