// The bus of the simulated card.
#pragma once

#include "Arduino.h"

enum { MSBFIRST = 1, SPI_MODE0 = 0 };

struct SPISettings {
  SPISettings(uint32_t, uint8_t, uint8_t) {}
};

class SPIClass {
public:
  void begin() {}
  void beginTransaction(SPISettings) {}
  void endTransaction() {}
  void transfer(void *bytes, size_t count);
};

extern SPIClass SPI;
