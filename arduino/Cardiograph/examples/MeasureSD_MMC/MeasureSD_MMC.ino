// Measures the card behind SD_MMC. Open the serial monitor at 115200 baud, or capture the port, save the text, and run
// cardiograph analyze FILE.
#include <SD_MMC.h>
#include <Cardiograph.h>


void setup() {
  Serial.begin(115200);
  CardiographTrace trace(Serial);
  const CardiographTest test = {"esp32", "SD_MMC", "/CG.TMP", 4096};
  if (!SD_MMC.begin()) {
    trace.stop("no card");
    return;
  }
  cardiographStream(trace, SD_MMC, test);
}

void loop() {}
