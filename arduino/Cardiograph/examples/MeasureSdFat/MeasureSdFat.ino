// Measures the card behind SdFat. Open the serial monitor at 115200 baud, or capture the port, save the text, and run
// cardiograph analyze FILE.
#include <SPI.h>
#include <SdFat.h>
#include <Cardiograph.h>

// Chip select of the card.
const uint8_t SELECT_PIN = 10;

SdFat sd;

void setup() {
  Serial.begin(115200);
  CardiographTrace trace(Serial);
  const CardiographTest test = {"mega2560", "SdFat", "CG.TMP", 4096};
  if (!sd.begin(SELECT_PIN, SD_SCK_MHZ(25))) {
    trace.stop("no card");
    return;
  }
  cardiographStream(trace, sd, test);
}

void loop() {}
