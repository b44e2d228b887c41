/* Records lines of text to files on a FAT card, and loses none while the card stalls.
 *
 * One recorder per program. An interrupt may call cardiograph_push; every other function belongs to the main loop.
 * docs/c.md describes what the program provides. */
#ifndef CARDIOGRAPH_H
#define CARDIOGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Result of a function. */
typedef uint32_t cardiograph_status;

enum {
    CARDIOGRAPH_OK = 0,
    CARDIOGRAPH_NULL_POINTER = 1,
    CARDIOGRAPH_WRONG_SIZE = 2,
    CARDIOGRAPH_NOT_BEGUN = 3,
    CARDIOGRAPH_ALREADY_BEGUN = 4,
    CARDIOGRAPH_NOT_READY = 5,
    CARDIOGRAPH_SAMPLE_LOST = 6,
    CARDIOGRAPH_RING_TOO_SMALL = 7,
    CARDIOGRAPH_LINE_TOO_LONG = 8,
    CARDIOGRAPH_FILE_TOO_SMALL = 9,
    CARDIOGRAPH_CARD_FAILED = 10,
    CARDIOGRAPH_NO_FILE_SYSTEM = 11,
    CARDIOGRAPH_ENDED = 12,
    CARDIOGRAPH_FAILED = 13,
    CARDIOGRAPH_HEADER_INVALID = 14
};

typedef struct {
    /* Passed to every callback except panic. */
    void *context;
    /* Exchanges bytes on the SPI bus. `send` is NULL to send 0xFF; `receive` is NULL to discard. Returns 0 on success. */
    int (*spi_transfer)(void *context, const uint8_t *send, uint8_t *receive, size_t bytes);
    /* Drives chip select: low if `is_selected`. */
    void (*select)(void *context, bool is_selected);
    /* Sets the bus clock to at most `hz`. */
    void (*set_clock_hz)(void *context, uint32_t hz);
    /* Returns the time since a fixed moment, in us; never decreases. */
    uint64_t (*now_us)(void *context);
    /* Called on an error of the library itself; must not return. */
    void (*panic)(void);
} cardiograph_hardware;

typedef struct {
    /* sizeof(cardiograph_options). */
    size_t options_bytes;
    cardiograph_hardware hardware;
    /* Memory for samples, owned by the library from now on: at least 1024 B. */
    uint8_t *ring;
    size_t ring_bytes;
    /* Three letters that every file name begins with. */
    char prefix[4];
    /* First line of each file, without its newline; must stay valid. */
    const char *header;
    /* Maximum length of a line, newline included: at most 405 B. */
    uint16_t line_bytes_max;
    /* Maximum length of a file, which may be up to an eighth shorter: at least 65536 B; 0 for 45 MiB. */
    uint32_t file_bytes;
    /* Highest bus clock, in Hz; 0 for 25 MHz. */
    uint32_t bus_hz;
    /* Any number, different for each recording if possible. */
    uint32_t entropy;
} cardiograph_options;

typedef struct {
    /* Durable samples. */
    uint64_t written;
    /* Lost samples; the files name each gap. */
    uint64_t lost;
    uint64_t bytes;
    uint32_t files;
    /* Highest level of the ring, in bytes. */
    uint32_t ring_peak_bytes;
} cardiograph_statistics;

#define CARDIOGRAPH_RECORDER_BYTES 8192

/* A recorder. Must be zero before cardiograph_begin, as a static object is, and must not be moved or copied. */
typedef struct {
    uint8_t opaque[CARDIOGRAPH_RECORDER_BYTES] __attribute__((aligned(16)));
} cardiograph_recorder;

/* Begins a recording. The card is first used by cardiograph_poll. */
cardiograph_status cardiograph_begin(cardiograph_recorder *recorder, const cardiograph_options *options);
/* Returns true once files are open and samples are accepted. */
bool cardiograph_is_ready(const cardiograph_recorder *recorder);
/* Adds a line, newline included. May be called from one interrupt. */
cardiograph_status cardiograph_push(cardiograph_recorder *recorder, const uint8_t *line, size_t bytes);
/* Lets the recorder work until it waits for the card. CARDIOGRAPH_ENDED once the recording has ended. */
cardiograph_status cardiograph_poll(cardiograph_recorder *recorder);
/* Polls for this time, in us. */
cardiograph_status cardiograph_run_for(cardiograph_recorder *recorder, uint32_t us);
/* Writes all samples and closes the files. Stop the interrupt that pushes before. */
cardiograph_status cardiograph_end(cardiograph_recorder *recorder);
/* Returns the statistics of a recording that has ended. */
cardiograph_status cardiograph_get_statistics(const cardiograph_recorder *recorder, cardiograph_statistics *statistics);
/* Returns the sentence of a status. */
const char *cardiograph_status_text(cardiograph_status status);

#ifdef __cplusplus
}
#endif
#endif
