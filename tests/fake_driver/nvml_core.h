/* What every exported function of the fake library shares: layouts, handles, how a call opens and closes. */
#ifndef GPULEDGER_FAKE_NVML_CORE_H
#define GPULEDGER_FAKE_NVML_CORE_H

#include "state.h"
#include <pthread.h>

typedef int nvmlReturn_t;
typedef void *nvmlDevice_t;
enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15,
};

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
struct utilization { unsigned gpu, memory; };
struct process_v1 { unsigned pid; unsigned long long bytes; };
struct process_v2 { unsigned pid; unsigned long long bytes; unsigned gi, ci; };
struct process_535 { unsigned pid; unsigned long long bytes; unsigned gi, ci; unsigned long long protected_bytes; };
struct process_sample { unsigned pid; unsigned long long stamp; unsigned sm, mem, enc, dec; };
struct stats { unsigned sm, mem; unsigned long long peak, time_ms, start_us; unsigned running, reserved[5]; };
struct stats_v2 {
    unsigned pid, running, sm, mem;
    unsigned long long peak;
    unsigned samples;
    unsigned long long sum_sm, sum_mem, time_ms, start_us;
};
struct attributes { unsigned sms, copy, dec, enc, jpeg, ofa, gpu_slices, compute_slices; unsigned long long memory_mb; };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int started;

/* Handles outlive readings of the file: a handle is a place in this table of UUIDs, plus one. */
static char known[64][TEXT];
static size_t known_count;

static nvmlDevice_t handle_of(const char *uuid) {
    for (size_t i = 0; i < known_count; i++)
        if (!strcmp(known[i], uuid)) return (nvmlDevice_t)(uintptr_t)(i + 1);
    if (known_count == 64) abort();
    word(known[known_count], uuid);
    return (nvmlDevice_t)(uintptr_t)++known_count;
}

struct place { struct gpu *gpu; struct slice *slice; const char *uuid; };

static nvmlReturn_t done(nvmlReturn_t number) {
    pthread_mutex_unlock(&mutex);
    return number;
}

static int find(const char *uuid, struct place *place) {
    const char *gpu = uuid;
    place->slice = NULL;
    for (size_t i = 0; i < state.slices.count; i++)
        if (!strcmp(state.slices.at[i].uuid, uuid)) { place->slice = &state.slices.at[i]; gpu = place->slice->gpu; }
    for (size_t i = 0; i < state.gpus.count; i++)
        if (!strcmp(state.gpus.at[i].uuid, gpu)) { place->gpu = &state.gpus.at[i]; place->uuid = uuid; return 1; }
    return 0;
}

/* Opens a call. SUCCESS: the mutex is held until done(). `asked` is 0 for calls that name no device. */
static nvmlReturn_t begin(const char *function, int asked, nvmlDevice_t handle, struct place *place) {
    pthread_mutex_lock(&mutex);
    if (!started && strncmp(function, "nvmlInit", 8)) return done(UNINITIALIZED);
    if (!state_read()) return done(DRIVER_NOT_LOADED);
    const char *uuid = "*";
    if (asked) {
        size_t number = (size_t)(uintptr_t)handle;
        if (number == 0 || number > known_count) return done(INVALID_ARGUMENT);
        uuid = known[number - 1];
        if (!find(uuid, place)) return done(!strncmp(uuid, "MIG", 3) ? NOT_FOUND : GPU_IS_LOST);
    }
    for (size_t i = 0; i < state.failures.count; i++) {
        struct failure *one = &state.failures.at[i];
        if (!strcmp(one->function, function) && (!strcmp(one->uuid, "*") || !strcmp(one->uuid, uuid))) {
            nvmlReturn_t told = one->number;
            done(told);
            return told ? told : -1; /* told to succeed and do nothing */
        }
    }
    return SUCCESS;
}
#define BEGIN(asked, handle) \
    struct place place; \
    (void)place; \
    nvmlReturn_t opened = begin(__func__, asked, handle, &place); \
    if (opened) return opened == -1 ? SUCCESS : opened
#define DEVICE(name, ...) nvmlReturn_t name(nvmlDevice_t handle, __VA_ARGS__)

static nvmlReturn_t give(char *into, unsigned room, const char *text) {
    if (strlen(text) >= room) return done(INSUFFICIENT_SIZE);
    strcpy(into, text);
    return done(SUCCESS);
}

#endif
