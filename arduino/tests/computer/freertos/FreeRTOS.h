// The parts of FreeRTOS on an ESP32 that the library uses, on a computer.
#pragma once

#include <stdint.h>

#define CONFIG_FREERTOS_UNICORE 0
#define portMAX_DELAY UINT32_MAX
#define pdFALSE 0

typedef int BaseType_t;
typedef unsigned UBaseType_t;
typedef uint8_t StackType_t;
struct StaticTask_t {
  int unused;
};
