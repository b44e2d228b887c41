// Measures how much the two cores of an ESP32 or ESP32-S3 slow each other, and then the card behind SD. Open the serial
// monitor at 115200 baud, or capture the port, save the text, and run cardiograph analyze FILE.
#include <SD.h>
#include <SPI.h>
#include <Cardiograph.h>
#include <CardiographCores.h>

// Chip select of the card.
const uint8_t SELECT_PIN = 5;

void setup() {
  Serial.begin(115200);
  // A native USB port prints nothing before a computer has opened it.
  while (!Serial) {
    delay(10);
  }
  CardiographTrace trace(Serial);
  static CardiographEsp32Cores cores;
  cardiographCores(trace, cores, "esp32");
  const CardiographTest test = {"esp32", "SD", "/CG.TMP", 4096};
  if (!SD.begin(SELECT_PIN)) {
    trace.stop("no card");
    return;
  }
  cardiographStream(trace, SD, test);
}

void loop() {}
