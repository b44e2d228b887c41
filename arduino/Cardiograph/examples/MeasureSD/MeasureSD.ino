// Measures the card behind SD. Open the serial monitor at 115200 baud, or capture the port, save the text, and run
// cardiograph analyze FILE.
#include <SD.h>
#include <SPI.h>
#include <Cardiograph.h>

// Chip select of the card.
const uint8_t SELECT_PIN = 10;

void setup() {
  Serial.begin(115200);
  CardiographTrace trace(Serial);
  const CardiographTest test = {"uno", "SD", "CG.TMP", 4096};
  if (!SD.begin(SELECT_PIN)) {
    trace.stop("no card");
    return;
  }
  cardiographStream(trace, SD, test);
}

void loop() {}
