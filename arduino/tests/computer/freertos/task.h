// Tasks as threads. Loads take time by a schedule: 820 ms on core 0 and 823 ms on core 1, in turns on the same core, and a
// sixth longer while both cores work.
#pragma once

#include "FreeRTOS.h"

#include <condition_variable>
#include <mutex>
#include <thread>

// Moves the clock.
void advance(uint32_t us);

struct Task {
  bool is_worker;
  BaseType_t core;
  uint32_t notifications;
};
typedef Task *TaskHandle_t;

// Threads that never end use this until the program has ended.
struct Schedule {
  std::mutex mutex;
  std::condition_variable changed;
  uint32_t loads[2];
};
inline Schedule &schedule() {
  static Schedule *const only = new Schedule();
  return *only;
}

inline TaskHandle_t &present_task() {
  static thread_local TaskHandle_t task = new Task();
  return task;
}

inline TaskHandle_t xTaskGetCurrentTaskHandle() { return present_task(); }
inline UBaseType_t uxTaskPriorityGet(TaskHandle_t) { return 1; }

inline TaskHandle_t xTaskCreateStaticPinnedToCore(void (*code)(void *), const char *, uint32_t, void *argument, UBaseType_t,
                                                  StackType_t *, StaticTask_t *, BaseType_t core) {
  const TaskHandle_t task = new Task();
  task->is_worker = true;
  task->core = core;
  std::thread([=] {
    present_task() = task;
    code(argument);
  }).detach();
  return task;
}

inline void xTaskNotifyGive(TaskHandle_t task) {
  std::lock_guard<std::mutex> lock(schedule().mutex);
  task->notifications++;
  if (task->is_worker) {
    schedule().loads[task->core]++;
  }
  schedule().changed.notify_all();
}

inline uint32_t ulTaskNotifyTake(BaseType_t, uint32_t) {
  const TaskHandle_t task = present_task();
  std::unique_lock<std::mutex> lock(schedule().mutex);
  if (!task->is_worker) {
    uint32_t *const loads = schedule().loads;
    const uint32_t first_us = loads[0] * 820000, second_us = loads[1] * 823000;
    const uint32_t us = first_us > second_us ? first_us : second_us;
    advance(loads[0] > 0 && loads[1] > 0 ? us + us / 6 : us);
    loads[0] = loads[1] = 0;
  }
  schedule().changed.wait(lock, [=] { return task->notifications > 0; });
  return task->notifications--;
}
