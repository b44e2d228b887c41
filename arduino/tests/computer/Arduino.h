// The parts of Arduino that the library uses, on a computer.
#pragma once

#include <stddef.h>
#include <stdint.h>

class Print {
public:
  virtual ~Print() {}
  virtual size_t write(uint8_t letter) = 0;
  virtual void flush() {}
};

uint32_t micros();
