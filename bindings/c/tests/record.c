/* Records lines to a simulated card, and leaves the card's image for fsck.fat and mcopy.
 *
 * Arguments: image of a FAT file system, profile of the card. The card is the library of wasm/, built for this computer.
 * Time is virtual: each byte on the bus takes 320 ns (25 MHz), each reading of the clock 5 us. */
#include "cardiograph.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *buffer(size_t bytes);
size_t buffer_bytes(void);
int32_t card_new(uint64_t seed, uint64_t capacity_bytes);
uint8_t card_exchange_at(size_t card, double start_ns, double end_ns, uint8_t byte);
void card_select(size_t card, uint32_t is_selected);
void card_power(size_t card, double now_ns, uint32_t is_on);
void card_store(size_t card, uint32_t start);
void card_read(size_t card, uint32_t start);
uint32_t card_stalls(size_t card);
double card_stall_ns_max(size_t card);

enum { SAMPLES = 20000, SAMPLE_US = 250, IMAGE_BYTES = 64 << 20, RING_BYTES = 65536, BYTE_NS = 320 };

static size_t card;
static uint64_t now_ns;
static uint64_t next_us;
static uint32_t pushed;
static uint8_t ring[RING_BYTES];
static cardiograph_recorder recorder;

static void fail(const char *what) {
    fprintf(stderr, "record: %s\n", what);
    exit(1);
}

static void expect(cardiograph_status found, cardiograph_status wanted, const char *call) {
    if (found != wanted) {
        fprintf(stderr, "record: %s: %s\n", call, cardiograph_status_text(found));
        exit(1);
    }
}

/* The interrupt: pushes the samples that are due. A push reads the clock, which must not interrupt it again. */
static void interrupt(void) {
    static bool is_inside;
    if (is_inside)
        return;
    is_inside = true;
    while (pushed < SAMPLES && cardiograph_is_ready(&recorder) && next_us <= now_ns / 1000) {
        char line[32];
        int bytes = snprintf(line, sizeof line, "%u,%u\n", (unsigned)pushed, (unsigned)(pushed * 2654435769u));
        expect(cardiograph_push(&recorder, (const uint8_t *)line, (size_t)bytes), CARDIOGRAPH_OK, "push");
        pushed++;
        next_us += SAMPLE_US;
    }
    is_inside = false;
}

static void advance(uint64_t ns) {
    now_ns += ns;
    if (cardiograph_is_ready(&recorder) && next_us == 0)
        next_us = now_ns / 1000;
    interrupt();
}

static int spi_transfer(void *context, const uint8_t *send, uint8_t *receive, size_t bytes) {
    (void)context;
    for (size_t at = 0; at < bytes; at++) {
        uint8_t byte = card_exchange_at(card, (double)now_ns, (double)(now_ns + BYTE_NS), send ? send[at] : 0xFF);
        if (receive)
            receive[at] = byte;
        advance(BYTE_NS);
    }
    return 0;
}

static void select_card(void *context, bool is_selected) {
    (void)context;
    card_select(card, is_selected);
}

static void set_clock_hz(void *context, uint32_t hz) {
    (void)context;
    (void)hz;
}

static uint64_t now_us(void *context) {
    (void)context;
    advance(5000);
    return now_ns / 1000;
}

static void on_panic(void) { fail("the library panicked"); }

static void load(const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t *to = buffer(IMAGE_BYTES);
    if (!file || fread(to, 1, IMAGE_BYTES, file) != IMAGE_BYTES)
        fail("the image cannot be read; it must have 64 MiB");
    fclose(file);
    card_store(card, 0);
}

static void save(const char *path) {
    FILE *file = fopen(path, "wb");
    uint8_t *from = buffer(IMAGE_BYTES);
    card_read(card, 0);
    if (!file || fwrite(from, 1, IMAGE_BYTES, file) != IMAGE_BYTES || fclose(file) != 0)
        fail("the image cannot be written");
}

static void test_misuse(const cardiograph_options *good) {
    cardiograph_options bad = *good;
    uint8_t line[] = "1\n";
    expect(cardiograph_begin(NULL, good), CARDIOGRAPH_NULL_POINTER, "begin without recorder");
    expect(cardiograph_begin(&recorder, NULL), CARDIOGRAPH_NULL_POINTER, "begin without options");
    bad.options_bytes--;
    expect(cardiograph_begin(&recorder, &bad), CARDIOGRAPH_WRONG_SIZE, "begin with a wrong size");
    bad = *good;
    bad.hardware.now_us = NULL;
    expect(cardiograph_begin(&recorder, &bad), CARDIOGRAPH_NULL_POINTER, "begin without clock");
    bad = *good;
    bad.ring_bytes = 1023;
    expect(cardiograph_begin(&recorder, &bad), CARDIOGRAPH_RING_TOO_SMALL, "begin with a small ring");
    bad = *good;
    bad.line_bytes_max = 4000;
    expect(cardiograph_begin(&recorder, &bad), CARDIOGRAPH_LINE_TOO_LONG, "begin with long lines");
    bad = *good;
    bad.header = "\xff";
    expect(cardiograph_begin(&recorder, &bad), CARDIOGRAPH_HEADER_INVALID, "begin with a header of other bytes");
    expect(cardiograph_push(&recorder, line, 2), CARDIOGRAPH_NOT_BEGUN, "push before begin");
    expect(cardiograph_poll(&recorder), CARDIOGRAPH_NOT_BEGUN, "poll before begin");
    expect(cardiograph_end(&recorder), CARDIOGRAPH_NOT_BEGUN, "end before begin");
}

int main(int count, char **args) {
    if (count != 3)
        fail("usage: record IMAGE PROFILE");
    memcpy(buffer(strlen(args[2])), args[2], strlen(args[2]));
    int32_t handle = card_new(1, IMAGE_BYTES);
    if (handle < 0)
        fail("no such profile");
    card = (size_t)handle;
    load(args[1]);
    card_power(card, 0, 1);
    cardiograph_options options = {
        .options_bytes = sizeof options,
        .hardware = {NULL, spi_transfer, select_card, set_clock_hz, now_us, on_panic},
        .ring = ring,
        .ring_bytes = sizeof ring,
        .prefix = "REC",
        .header = "index,value",
        .line_bytes_max = 32,
        .file_bytes = 256 << 10,
        .entropy = 1,
    };
    test_misuse(&options);
    expect(cardiograph_begin(&recorder, &options), CARDIOGRAPH_OK, "begin");
    expect(cardiograph_begin(&recorder, &options), CARDIOGRAPH_ALREADY_BEGUN, "second begin");
    uint8_t early[] = "1\n";
    expect(cardiograph_push(&recorder, early, 2), CARDIOGRAPH_NOT_READY, "push before the recorder is ready");
    while (pushed < SAMPLES)
        expect(cardiograph_run_for(&recorder, 1000), CARDIOGRAPH_OK, "run_for");
    expect(cardiograph_end(&recorder), CARDIOGRAPH_OK, "end");
    expect(cardiograph_poll(&recorder), CARDIOGRAPH_ENDED, "poll after the end");
    cardiograph_statistics statistics;
    expect(cardiograph_get_statistics(&recorder, &statistics), CARDIOGRAPH_OK, "statistics");
    printf("written %llu, lost %llu, %u files, ring peak %u B, %u stalls, longest %.0f ms\n",
           (unsigned long long)statistics.written, (unsigned long long)statistics.lost, statistics.files,
           statistics.ring_peak_bytes, card_stalls(card), card_stall_ns_max(card) / 1e6);
    save(args[1]);
    return statistics.written == SAMPLES && statistics.lost == 0 ? 0 : 1;
}
