/* A fake libnvidia-ml.so.1: what nvidia-ml-py, and the tools built on it, ask of a driver, answered from the
 * state file of state.h. Layouts and numbers are those of nvml.h as the binding declares them. What is not
 * here is missing from the library, and the binding says "function not found". */
#include "nvml_core.h"

/* The library and the system. */

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    BEGIN(0, NULL);
    started++;
    return done(SUCCESS);
}
nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlShutdown(void) {
    pthread_mutex_lock(&mutex);
    if (!started) return done(UNINITIALIZED);
    started--;
    return done(SUCCESS);
}
const char *nvmlErrorString(nvmlReturn_t number) {
    static char text[32];
    snprintf(text, sizeof text, "fake error %d", number);
    return text;
}
nvmlReturn_t nvmlSystemGetDriverVersion(char *into, unsigned room) {
    BEGIN(0, NULL);
    return give(into, room, state.driver);
}
nvmlReturn_t nvmlSystemGetNVMLVersion(char *into, unsigned room) {
    BEGIN(0, NULL);
    char text[TEXT + 4];
    snprintf(text, sizeof text, "13.%s", state.driver);
    return give(into, room, text);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    BEGIN(0, NULL);
    *version = 13000;
    return done(SUCCESS);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *into, unsigned room) {
    BEGIN(0, NULL);
    char path[64], text[1024] = "";
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return done(NOT_FOUND);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? give(into, room, text) : done(NOT_FOUND);
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    BEGIN(0, NULL);
    *count = (unsigned)state.gpus.count;
    return done(SUCCESS);
}
nvmlReturn_t nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

/* Devices. */

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *handle) {
    BEGIN(0, NULL);
    if (index >= state.gpus.count) return done(INVALID_ARGUMENT);
    for (size_t i = 0; i < state.failures.count; i++) /* this one names its device by index */
        if (!strcmp(state.failures.at[i].function, __func__) &&
            !strcmp(state.failures.at[i].uuid, state.gpus.at[index].uuid))
            return done(state.failures.at[i].number);
    *handle = handle_of(state.gpus.at[index].uuid);
    return done(SUCCESS);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *handle) {
    return nvmlDeviceGetHandleByIndex_v2(index, handle);
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *handle) {
    BEGIN(0, NULL);
    if (!find(uuid, &place)) return done(NOT_FOUND);
    *handle = handle_of(uuid);
    return done(SUCCESS);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *handle) {
    BEGIN(0, NULL);
    for (size_t i = 0; i < state.gpus.count; i++)
        if (!strcasecmp(state.gpus.at[i].pci, bus_id)) { *handle = handle_of(state.gpus.at[i].uuid); return done(SUCCESS); }
    return done(NOT_FOUND);
}
DEVICE(nvmlDeviceGetUUID, char *into, unsigned room) {
    BEGIN(1, handle);
    return give(into, room, place.uuid);
}
DEVICE(nvmlDeviceGetName, char *into, unsigned room) {
    BEGIN(1, handle);
    if (!place.slice) return give(into, room, place.gpu->product);
    char name[2 * TEXT + 8];
    snprintf(name, sizeof name, "%s MIG %s", place.gpu->product, place.slice->profile);
    return give(into, room, name);
}
DEVICE(nvmlDeviceGetSerial, char *into, unsigned room) {
    (void)into, (void)room;
    BEGIN(1, handle);
    return done(NOT_SUPPORTED);
}
static nvmlReturn_t index_of(const char *function, nvmlDevice_t handle, unsigned *index) {
    struct place place;
    nvmlReturn_t opened = begin(function, 1, handle, &place);
    if (opened) return opened == -1 ? SUCCESS : opened;
    *index = (unsigned)(place.gpu - state.gpus.at);
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetIndex, unsigned *index) { return index_of(__func__, handle, index); }
DEVICE(nvmlDeviceGetMinorNumber, unsigned *minor) { return index_of(__func__, handle, minor); }
DEVICE(nvmlDeviceGetPciInfo_v3, struct pci *pci) {
    BEGIN(1, handle);
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%.31s", place.gpu->pci);
    if (strlen(place.gpu->pci) > 4) snprintf(pci->legacy, sizeof pci->legacy, "%.15s", place.gpu->pci + 4);
    sscanf(place.gpu->pci, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetPciInfo, struct pci *pci) { return nvmlDeviceGetPciInfo_v3(handle, pci); }

static uint64_t held(const struct place *place) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < state.processes.count; i++) {
        struct process *one = &state.processes.at[i];
        if (strcmp(one->gpu, place->gpu->uuid) || one->bytes == NO_U64) continue;
        if (!place->slice || one->gi == place->slice->gi) bytes += one->bytes;
    }
    return bytes;
}
static nvmlReturn_t memory_of(const char *function, nvmlDevice_t handle, struct memory_v2 *memory) {
    struct place place;
    nvmlReturn_t opened = begin(function, 1, handle, &place);
    if (opened) return opened == -1 ? SUCCESS : opened;
    memory->total = (place.slice ? place.slice->memory_mib : place.gpu->memory_mib) * MIB;
    memory->reserved = 512 * MIB;
    memory->used = held(&place);
    if (memory->used + memory->reserved > memory->total) memory->used = memory->total - memory->reserved;
    memory->free = memory->total - memory->used - memory->reserved;
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetMemoryInfo, struct memory *memory) {
    struct memory_v2 all = {0};
    nvmlReturn_t number = memory_of(__func__, handle, &all);
    *memory = (struct memory){all.total, all.free, all.used + all.reserved}; /* version 1 counts reserved as used */
    return number;
}
DEVICE(nvmlDeviceGetMemoryInfo_v2, struct memory_v2 *memory) { return memory_of(__func__, handle, memory); }
DEVICE(nvmlDeviceGetBAR1MemoryInfo, struct memory *memory) {
    BEGIN(1, handle);
    *memory = (struct memory){256 * MIB, 250 * MIB, 6 * MIB};
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetUtilizationRates, struct utilization *rates) {
    BEGIN(1, handle);
    if (place.slice) return done(NOT_SUPPORTED);
    unsigned sm = 0, mem = 0;
    for (size_t i = 0; i < state.samples.count; i++)
        if (!strcmp(state.samples.at[i].gpu, place.uuid)) { sm += state.samples.at[i].sm; mem += state.samples.at[i].mem; }
    *rates = (struct utilization){sm > 100 ? 100 : sm, mem > 100 ? 100 : mem};
    return done(SUCCESS);
}

#include "nvml_monitor.h"

/* Living processes. */

enum layout { V1, V2, V535 };

static nvmlReturn_t processes(const char *function, nvmlDevice_t handle, char kind, unsigned *count, void *into,
                              enum layout layout) {
    struct place place;
    nvmlReturn_t opened = begin(function, 1, handle, &place);
    if (opened) return opened == -1 ? SUCCESS : opened;
    if (place.gpu->mig == 1 && !place.slice && !state.root) return done(NO_PERMISSION);
    state_reap();
    struct place again;
    if (!find(known[(size_t)(uintptr_t)handle - 1], &again)) return done(GPU_IS_LOST);
    unsigned found = 0, room = into ? *count : 0;
    for (size_t i = 0; i < state.processes.count; i++) {
        struct process *one = &state.processes.at[i];
        if (strcmp(one->gpu, again.gpu->uuid) || !strchr(one->kinds, kind)) continue;
        if (again.slice && (one->gi != again.slice->gi || one->ci != again.slice->ci)) continue;
        if (found < room && layout == V1) ((struct process_v1 *)into)[found] = (struct process_v1){one->pid, one->bytes};
        if (found < room && layout == V2)
            ((struct process_v2 *)into)[found] = (struct process_v2){one->pid, one->bytes, one->gi, one->ci};
        if (found < room && layout == V535 && (found + 1) * sizeof(struct process_535) <= room * sizeof(struct process_v2))
            ((struct process_535 *)into)[found] = (struct process_535){one->pid, one->bytes, one->gi, one->ci, 0};
        found++;
    }
    *count = found;
    return done(found > room ? INSUFFICIENT_SIZE : SUCCESS);
}
/* Version 3 has longer records on drivers 535.43 to 535.86 only. */
static enum layout third(void) {
    unsigned minor = 0;
    return sscanf(state.driver, "535.%u", &minor) == 1 && minor >= 43 && minor <= 86 ? V535 : V2;
}
#define PROCESSES(name, kind) \
    DEVICE(name, unsigned *count, void *into) { return processes(__func__, handle, kind, count, into, V1); } \
    DEVICE(name##_v2, unsigned *count, void *into) { return processes(__func__, handle, kind, count, into, V2); } \
    DEVICE(name##_v3, unsigned *count, void *into) { return processes(__func__, handle, kind, count, into, third()); }
PROCESSES(nvmlDeviceGetComputeRunningProcesses, 'C')
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, 'G')
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, 'M')

DEVICE(nvmlDeviceGetProcessUtilization, struct process_sample *into, unsigned *count, unsigned long long since) {
    BEGIN(1, handle);
    if (place.gpu->mig == 1) return done(NOT_SUPPORTED);
    unsigned found = 0, room = into ? *count : 0;
    for (size_t i = 0; i < state.samples.count; i++) {
        struct sample *one = &state.samples.at[i];
        uint64_t stamp = one->stamp_us ? one->stamp_us : now_us();
        if (strcmp(one->gpu, place.uuid) || stamp <= since) continue;
        if (found < room) into[found] = (struct process_sample){one->pid, stamp, one->sm, one->mem, 0, 0};
        found++;
    }
    *count = found;
    if (!found) return done(NOT_FOUND);
    return done(found > room ? INSUFFICIENT_SIZE : SUCCESS);
}

/* Accounting. */

DEVICE(nvmlDeviceGetAccountingMode, unsigned *mode) {
    BEGIN(1, handle);
    if (place.gpu->accounting < 0) return done(NOT_SUPPORTED);
    *mode = (unsigned)place.gpu->accounting;
    return done(SUCCESS);
}
DEVICE(nvmlDeviceSetAccountingMode, unsigned mode) {
    BEGIN(1, handle);
    if (!state.root) return done(NO_PERMISSION);
    if (place.gpu->mig == 1 || place.gpu->accounting < 0) return done(NOT_SUPPORTED);
    int lock = state_lock();
    if (lock < 0) return done(DRIVER_NOT_LOADED);
    if (!find(known[(size_t)(uintptr_t)handle - 1], &place)) { close(lock); return done(GPU_IS_LOST); }
    place.gpu->accounting = (int)mode;
    for (size_t i = state.live.count; !mode && i-- > 0;) /* switching off clears the running rows only */
        if (!strcmp(state.live.at[i].gpu, place.gpu->uuid)) REMOVE(state.live, i);
    state_write(lock);
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetAccountingBufferSize, unsigned *size) {
    BEGIN(1, handle);
    *size = 4000;
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetAccountingPids, unsigned *count, unsigned *pids) {
    BEGIN(1, handle);
    if (place.gpu->accounting < 0) return done(NOT_SUPPORTED);
    state_reap();
    const char *uuid = known[(size_t)(uintptr_t)handle - 1];
    unsigned found = 0, room = pids ? *count : 0;
#define LISTED(list) \
    for (size_t i = 0; i < (list).count; i++) \
        if (!strcmp((list).at[i].gpu, uuid)) { \
            if (found < room) pids[found] = (list).at[i].pid; \
            found++; \
        }
    LISTED(state.gone)
    LISTED(state.dead)
    LISTED(state.live)
    *count = found;
    return done(found > room ? INSUFFICIENT_SIZE : SUCCESS);
}
static const struct row *row_of(const struct place *place, unsigned pid, int *running) {
    *running = 0; /* the dead are looked up first, so that they hide a second stint */
    for (size_t i = 0; i < state.dead.count; i++)
        if (state.dead.at[i].pid == pid && !strcmp(state.dead.at[i].gpu, place->gpu->uuid)) return &state.dead.at[i];
    *running = 1;
    for (size_t i = 0; i < state.live.count; i++)
        if (state.live.at[i].pid == pid && !strcmp(state.live.at[i].gpu, place->gpu->uuid)) return &state.live.at[i];
    return NULL;
}
DEVICE(nvmlDeviceGetAccountingStats, unsigned pid, struct stats *stats) {
    BEGIN(1, handle);
    int running;
    const struct row *row = row_of(&place, pid, &running);
    if (!row) return done(NOT_FOUND);
    *stats = (struct stats){row->sm, row->mem, row->peak, running ? 0 : row->time_ms, row->start_us, (unsigned)running, {0}};
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetAccountingStats_v2, struct stats_v2 *stats) {
    BEGIN(1, handle);
    if (atoi(state.driver) < 610) return done(FUNCTION_NOT_FOUND);
    int running;
    const struct row *row = row_of(&place, stats->pid, &running);
    if (!row) return done(NOT_FOUND);
    unsigned samples = (unsigned)(row->time_ms / 167);
    *stats = (struct stats_v2){row->pid, (unsigned)running, row->sm, row->mem, row->peak, samples,
                               100ull * row->sm * samples, 100ull * row->mem * samples, running ? 0 : row->time_ms,
                               row->start_us};
    return done(SUCCESS);
}
nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t handle) {
    BEGIN(1, handle);
    if (!state.root) return done(NO_PERMISSION);
    int lock = state_lock();
    if (lock < 0) return done(DRIVER_NOT_LOADED);
    const char *uuid = known[(size_t)(uintptr_t)handle - 1];
    for (size_t i = state.dead.count; i-- > 0;)
        if (!strcmp(state.dead.at[i].gpu, uuid)) REMOVE(state.dead, i);
    state_write(lock);
    return done(SUCCESS);
}

/* MIG. */

DEVICE(nvmlDeviceGetMigMode, unsigned *current, unsigned *pending) {
    BEGIN(1, handle);
    if (place.gpu->mig < 0 || place.slice) return done(NOT_SUPPORTED);
    *current = *pending = (unsigned)place.gpu->mig;
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetMaxMigDeviceCount, unsigned *count) {
    BEGIN(1, handle);
    *count = place.gpu->mig < 0 ? 0 : 7;
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetMigDeviceHandleByIndex, unsigned index, nvmlDevice_t *instance) {
    BEGIN(1, handle);
    for (size_t i = 0; i < state.slices.count; i++)
        if (!strcmp(state.slices.at[i].gpu, place.gpu->uuid) && index-- == 0) {
            *instance = handle_of(state.slices.at[i].uuid);
            return done(SUCCESS);
        }
    return done(NOT_FOUND);
}
DEVICE(nvmlDeviceIsMigDeviceHandle, unsigned *is) {
    BEGIN(1, handle);
    *is = place.slice != NULL;
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t *gpu) {
    BEGIN(1, handle);
    if (!place.slice) return done(INVALID_ARGUMENT);
    *gpu = handle_of(place.gpu->uuid);
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetGpuInstanceId, unsigned *id) {
    BEGIN(1, handle);
    if (!place.slice) return done(INVALID_ARGUMENT);
    *id = place.slice->gi;
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetComputeInstanceId, unsigned *id) {
    BEGIN(1, handle);
    if (!place.slice) return done(INVALID_ARGUMENT);
    *id = place.slice->ci;
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetAttributes_v2, struct attributes *attributes) {
    BEGIN(1, handle);
    if (!place.slice) return done(NOT_SUPPORTED);
    unsigned compute = 0, gpu = 0;
    if (sscanf(place.slice->profile, "%uc.%ug", &compute, &gpu) != 2) {
        sscanf(place.slice->profile, "%ug", &gpu);
        compute = gpu;
    }
    *attributes = (struct attributes){16 * gpu, 1, 1, 0, 0, 0, gpu, compute, place.slice->memory_mib};
    return done(SUCCESS);
}
