/* Records lines on a Cortex-M3: QEMU's lm3s6965evb, whose SD card is on SSI 0 and pin 0 of port D.
 *
 * The card stalls: see exchange. Prints the result on UART 0, and ends QEMU with an exit status. */
#include "cardiograph.h"

enum { SAMPLES = 20000, SAMPLES_PER_MS = 4, RING_BYTES = 32768, STALL_BLOCKS = 128, STALL_US = 100000 };

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CLOCKS REGISTER(0x400FE060)
#define CLOCK_GATES_1 REGISTER(0x400FE104)
#define CLOCK_GATES_2 REGISTER(0x400FE108)
#define SSI_CONTROL_0 REGISTER(0x40008000)
#define SSI_CONTROL_1 REGISTER(0x40008004)
#define SSI_DATA REGISTER(0x40008008)
#define SSI_STATUS REGISTER(0x4000800C)
#define SSI_PRESCALE REGISTER(0x40008010)
#define PORT_A_FUNCTION REGISTER(0x40004420)
#define PORT_A_ENABLE REGISTER(0x4000451C)
#define PORT_D_SELECT REGISTER(0x40007004)
#define PORT_D_DIRECTION REGISTER(0x40007400)
#define PORT_D_ENABLE REGISTER(0x4000751C)
#define UART_DATA REGISTER(0x4000C000)
#define SYSTICK_CONTROL REGISTER(0xE000E010)
#define SYSTICK_RELOAD REGISTER(0xE000E014)
#define SYSTICK_VALUE REGISTER(0xE000E018)

enum { CLOCK_HZ = 50000000, CLOCKS_PER_MS = CLOCK_HZ / 1000, CLOCKS_PER_US = CLOCK_HZ / 1000000 };

static uint8_t ring[RING_BYTES];
static cardiograph_recorder recorder;
static volatile uint32_t ms;
static volatile uint32_t pushed;
static volatile bool was_lost;

static void print(const char *text) {
    while (*text)
        UART_DATA = (uint8_t)*text++;
}

/* Writes a number in decimal; returns its end. */
static char *write_number(char *to, uint32_t number) {
    char digits[10];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count)
        *to++ = digits[--count];
    return to;
}

static void print_number(uint32_t number) {
    char text[11];
    *write_number(text, number) = 0;
    print(text);
}

/* Ends QEMU by semihosting. */
static void leave(bool is_success) {
    register uint32_t operation __asm__("r0") = 0x18;
    register uint32_t reason __asm__("r1") = is_success ? 0x20026 : 0x20023;
    __asm__ volatile("bkpt 0xAB" : : "r"(operation), "r"(reason) : "memory");
    for (;;)
        ;
}

static void fail(const char *what) {
    print(what);
    print("\n");
    leave(false);
}

static void expect(cardiograph_status found, cardiograph_status wanted) {
    if (found != wanted)
        fail(cardiograph_status_text(found));
}

static void on_panic(void) { fail("the library panicked"); }

static uint64_t now_us(void *context) {
    (void)context;
    static uint64_t newest;
    uint32_t before, value;
    do {
        before = ms;
        value = SYSTICK_VALUE;
    } while (before != ms);
    uint64_t now = (uint64_t)before * 1000 + (CLOCKS_PER_MS - 1 - value) / CLOCKS_PER_US;
    /* The timer may have reached zero just before its interrupt. */
    uint32_t mask;
    __asm__ volatile("mrs %0, primask\n cpsid i" : "=r"(mask) : : "memory");
    if (now > newest)
        newest = now;
    now = newest;
    __asm__ volatile("msr primask, %0" : : "r"(mask) : "memory");
    return now;
}

/* The timer's interrupt. */
static void tick(void) {
    ms++;
    for (int at = 0; at < SAMPLES_PER_MS && pushed < SAMPLES && cardiograph_is_ready(&recorder); at++) {
        char line[32];
        char *end = write_number(line, pushed);
        *end++ = ',';
        end = write_number(end, pushed * 2654435769u);
        *end++ = '\n';
        if (cardiograph_push(&recorder, (const uint8_t *)line, (size_t)(end - line)) != CARDIOGRAPH_OK)
            was_lost = true;
        pushed++;
    }
}

static uint8_t crc7_and_end(const uint8_t *frame) {
    uint8_t crc = 0;
    for (int at = 0; at < 5; at++) {
        crc ^= frame[at];
        for (int bit = 0; bit < 8; bit++)
            crc = (uint8_t)((crc << 1) ^ ((crc >> 7) * (0x09 << 1)));
    }
    return crc | 1;
}

static uint8_t exchange(uint8_t byte) {
    SSI_DATA = byte;
    while (!(SSI_STATUS & 4))
        ;
    return (uint8_t)SSI_DATA;
}

/* Exchanges bytes, and corrects QEMU's card as firmware/qemu-card does: it checks no CRC, reports after CMD58 that it is
 * not initialised, and is never busy. */
static int spi_transfer(void *context, const uint8_t *send, uint8_t *receive, size_t bytes) {
    static enum { NOTHING, REJECTION, RESPONSE, RESPONSE_OCR } next;
    static uint32_t blocks;
    static uint64_t busy_until_us;
    static bool was_illegal;
    bool is_command = send && !receive && bytes == 7 && send[0] == 0xFF;
    if (is_command) {
        next = crc7_and_end(send + 1) != send[6] ? REJECTION : (send[1] & 0x3F) == 58 ? RESPONSE_OCR : RESPONSE;
        if (next == REJECTION)
            return 0;
    } else if (receive && next == REJECTION) {
        for (size_t at = 0; at < bytes; at++)
            receive[at] = 0x09;
        next = NOTHING;
        return 0;
    } else if (receive && now_us(context) < busy_until_us) {
        for (size_t at = 0; at < bytes; at++)
            receive[at] = 0;
        return 0;
    }
    for (size_t at = 0; at < bytes; at++) {
        uint8_t byte = exchange(send ? send[at] : 0xFF);
        if (receive)
            receive[at] = byte;
    }
    if (receive && bytes == 1 && (next == RESPONSE || next == RESPONSE_OCR) && !(receive[0] & 0x80)) {
        if (next == RESPONSE_OCR)
            receive[0] &= (uint8_t)~1u;
        if (was_illegal)
            receive[0] &= (uint8_t)~4u;
        was_illegal = receive[0] & 4;
        next = NOTHING;
    } else if (receive && bytes == 3 && (receive[2] & 0x1F) == 5) {
        if (++blocks % STALL_BLOCKS == 0)
            busy_until_us = now_us(context) + STALL_US;
    }
    return 0;
}

static void select_card(void *context, bool is_selected) {
    (void)context;
    PORT_D_SELECT = !is_selected;
}

static void set_clock_hz(void *context, uint32_t hz) {
    (void)context;
    uint32_t divider = (CLOCK_HZ / hz + 1) & ~1u;
    SSI_PRESCALE = divider < 2 ? 2 : divider > 254 ? 254 : divider;
}

static void start_hardware(void) {
    CLOCKS = 3u << 23 | 1u << 22;
    CLOCK_GATES_1 |= 1u << 4;
    CLOCK_GATES_2 |= 1u << 0 | 1u << 3;
    PORT_D_SELECT = 1;
    PORT_D_DIRECTION = 1;
    PORT_D_ENABLE = 1;
    PORT_A_FUNCTION = 0x34;
    PORT_A_ENABLE = 0x34;
    SSI_CONTROL_0 = 7;
    SSI_PRESCALE = 254;
    SSI_CONTROL_1 = 2;
    SYSTICK_RELOAD = CLOCKS_PER_MS - 1;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = 7;
}

static void run(void) {
    start_hardware();
    cardiograph_options options = {
        .options_bytes = sizeof options,
        .hardware = {0, spi_transfer, select_card, set_clock_hz, now_us, on_panic},
        .ring = ring,
        .ring_bytes = sizeof ring,
        .prefix = "REC",
        .header = "index,value",
        .line_bytes_max = 32,
        .file_bytes = 256 << 10,
        .entropy = 1,
    };
    expect(cardiograph_begin(&recorder, &options), CARDIOGRAPH_OK);
    while (pushed < SAMPLES)
        expect(cardiograph_run_for(&recorder, 1000), CARDIOGRAPH_OK);
    expect(cardiograph_end(&recorder), CARDIOGRAPH_OK);
    cardiograph_statistics statistics;
    expect(cardiograph_get_statistics(&recorder, &statistics), CARDIOGRAPH_OK);
    print("written ");
    print_number((uint32_t)statistics.written);
    print(", lost ");
    print_number((uint32_t)statistics.lost);
    print(", ring peak ");
    print_number(statistics.ring_peak_bytes);
    print(" B\n");
    leave(statistics.written == SAMPLES && statistics.lost == 0 && !was_lost);
}

extern uint32_t data_begin, data_end, data_source, bss_begin, bss_end, stack_top;

static void start(void) {
    uint32_t *from = &data_source;
    for (uint32_t *to = &data_begin; to < &data_end;)
        *to++ = *from++;
    for (uint32_t *to = &bss_begin; to < &bss_end;)
        *to++ = 0;
    run();
}

static void on_fault(void) { fail("fault"); }

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))&stack_top, start, on_fault, on_fault, on_fault, on_fault, on_fault, 0, 0, 0, 0, on_fault, on_fault, 0,
    on_fault, tick,
};
