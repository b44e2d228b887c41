// A load like that of the MagOD2 thesis: a fixed amount of arithmetic, on one core, on two cores at once, and twice on one
// core. The number of rounds is that of the thesis, which does not give the arithmetic.
#pragma once

#include "CardiographTrace.h"

static const uint32_t CARDIOGRAPH_LOAD_ROUNDS = 999000;

// Does one round of integer and floating-point arithmetic after another.
inline float cardiographLoad(uint32_t rounds) {
  uint32_t whole = 1;
  float fraction = 1;
  for (uint32_t round = 0; round < rounds; round++) {
    whole = whole * 1664525UL + round;
    fraction = (fraction + static_cast<float>(whole & 0xFF)) * 0.5F;
  }
  return fraction;
}

// Measures the load and prints a line with the times. `Cores` has start(core), which runs the load once more on a core, and
// wait(loads), which returns when as many loads are complete.
template <typename Cores> void cardiographCores(CardiographTrace &trace, Cores &cores, const char *board) {
  CardiographCoreTimes times = {};
  for (uint8_t core = 0; core < 2; core++) {
    uint32_t start_us = micros();
    cores.start(core);
    cores.wait(1);
    times.alone_us[core] = micros() - start_us;
    start_us = micros();
    cores.start(core);
    cores.start(core);
    cores.wait(2);
    times.twice_us[core] = micros() - start_us;
  }
  const uint32_t start_us = micros();
  cores.start(0);
  cores.start(1);
  cores.wait(2);
  times.both_us = micros() - start_us;
  trace.cores(board, times);
}

#if defined(ESP32)
#include <freertos/FreeRTOS.h>
#include <freertos/task.h>
#if __has_include(<freertos/idf_additions.h>)
#include <freertos/idf_additions.h>
#endif

#if CONFIG_FREERTOS_UNICORE
#error "this board has only one core"
#endif

// The two cores of an ESP32 or ESP32-S3. Each has two tasks, which wait for a notification, run the load once and notify
// the task that created them. They never end, so the object must be static. Create it once, in setup(), because tasks exist
// only then, and use it from the same task. It takes about 10 KB of RAM.
class CardiographEsp32Cores {
public:
  CardiographEsp32Cores() : caller(xTaskGetCurrentTaskHandle()) {
    for (uint8_t worker = 0; worker < WORKERS; worker++) {
      tasks[worker] = xTaskCreateStaticPinnedToCore(work, "load", STACK_BYTES, caller, uxTaskPriorityGet(nullptr),
                                                    stacks[worker], &memory[worker], worker % 2);
    }
  }

  void start(uint8_t core) {
    xTaskNotifyGive(tasks[2 * turns[core] + core]);
    turns[core] ^= 1;
  }

  void wait(uint8_t loads) {
    while (loads > 0) {
      ulTaskNotifyTake(pdFALSE, portMAX_DELAY);
      loads--;
    }
  }

private:
  static const uint8_t WORKERS = 4;
  static const uint32_t STACK_BYTES = 2048;

  static void work(void *caller) {
    for (;;) {
      ulTaskNotifyTake(pdFALSE, portMAX_DELAY);
      // The compiler must neither drop the load nor compute it in advance.
      volatile uint32_t rounds = CARDIOGRAPH_LOAD_ROUNDS;
      volatile float result = cardiographLoad(rounds);
      (void)result;
      xTaskNotifyGive(static_cast<TaskHandle_t>(caller));
    }
  }

  TaskHandle_t caller;
  TaskHandle_t tasks[WORKERS];
  StaticTask_t memory[WORKERS];
  StackType_t stacks[WORKERS][STACK_BYTES];
  // Which of a core's two tasks runs the next load.
  uint8_t turns[2] = {0, 0};
};
#endif
