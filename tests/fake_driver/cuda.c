/* A fake libcuda.so.1: enough of the driver API for a job by ctypes. A context that is created or destroyed
 * here opens or closes a device in the state file of the fake driver, as the kernel module would. */
#include "state.h"

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
enum { CUDA_SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
       INVALID_CONTEXT = 201 };

#define CONTEXT_BYTES (184 * MIB) /* what an empty context holds on real cards, about */
#define MOST 64

static int ready;
static char current[TEXT];
static int opened[MOST]; /* contexts by device */
static struct { CUdeviceptr at; size_t bytes; } blocks[1024];

/* The devices that CUDA_VISIBLE_DEVICES leaves, in order. */
static size_t visible(const struct gpu *into[MOST]) {
    size_t count = 0;
    const char *named = getenv("CUDA_VISIBLE_DEVICES");
    if (!named) {
        for (size_t i = 0; i < state.gpus.count && i < MOST; i++) into[count++] = &state.gpus.at[i];
        return count;
    }
    char text[1024];
    snprintf(text, sizeof text, "%s", named);
    for (char *rest = text, *one; (one = strsep(&rest, ",")) && count < MOST;) {
        const struct gpu *found = NULL;
        for (size_t i = 0; i < state.gpus.count; i++) {
            char index[24];
            snprintf(index, sizeof index, "%zu", i);
            if (!strcmp(one, index) || (*one && !strncmp(one, state.gpus.at[i].uuid, strlen(one)))) found = &state.gpus.at[i];
        }
        if (!found) break;
        into[count++] = found;
    }
    return count;
}

static const struct gpu *device_at(int index) {
    const struct gpu *gpus[MOST];
    size_t count = visible(gpus);
    return index >= 0 && (size_t)index < count ? gpus[index] : NULL;
}

/* Changes the memory this process holds on a device by so many bytes, and its peak. */
static CUresult hold(const char *gpu, long long bytes) {
    int lock = state_lock();
    if (lock < 0) return NO_DEVICE;
    uint64_t held = 0;
    for (size_t i = 0; i < state.processes.count; i++)
        if (state.processes.at[i].pid == (uint32_t)getpid() && !strcmp(state.processes.at[i].gpu, gpu))
            held = state.processes.at[i].bytes += (uint64_t)bytes;
    for (size_t i = 0; i < state.live.count; i++)
        if (state.live.at[i].pid == (uint32_t)getpid() && !strcmp(state.live.at[i].gpu, gpu) && state.live.at[i].peak < held)
            state.live.at[i].peak = held;
    state_write(lock);
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags) {
    if (flags) return INVALID_VALUE;
    if (!state_read() || !state.gpus.count) return NO_DEVICE;
    ready = 1;
    return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version) {
    *version = 13000;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) {
    if (!ready || !state_read()) return NOT_INITIALIZED;
    const struct gpu *gpus[MOST];
    *count = (int)visible(gpus);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(int *device, int index) {
    if (!ready || !state_read()) return NOT_INITIALIZED;
    if (!device_at(index)) return INVALID_DEVICE;
    *device = index;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *into, int room, int device) {
    if (!ready || !state_read()) return NOT_INITIALIZED;
    if (!device_at(device)) return INVALID_DEVICE;
    snprintf(into, (size_t)room, "%s", device_at(device)->product);
    return CUDA_SUCCESS;
}
CUresult cuCtxCreate_v2(void **context, unsigned flags, int device) {
    (void)flags;
    if (!ready) return NOT_INITIALIZED;
    int lock = state_lock();
    if (lock < 0) return NO_DEVICE;
    const struct gpu *gpu = device_at(device);
    if (!gpu || device >= MOST) { close(lock); return INVALID_DEVICE; }
    word(current, gpu->uuid);
    *context = (void *)(uintptr_t)(device + 1);
    if (opened[device]++) { close(lock); return CUDA_SUCCESS; }
    struct process *process = APPEND(state.processes);
    word(process->gpu, current); word(process->kinds, "C");
    process->pid = (uint32_t)getpid(); process->gi = process->ci = NO_U32;
    process->bytes = CONTEXT_BYTES; process->follow = 1;
    if (gpu->accounting == 1) {
        struct row *row = APPEND(state.live);
        word(row->gpu, current);
        row->pid = (uint32_t)getpid(); row->start_us = now_us(); row->peak = CONTEXT_BYTES;
    }
    state_write(lock);
    return CUDA_SUCCESS;
}
CUresult cuCtxDestroy_v2(void *context) {
    int device = (int)(uintptr_t)context - 1;
    if (device < 0 || device >= MOST || !opened[device]) return INVALID_CONTEXT;
    if (--opened[device]) return CUDA_SUCCESS;
    int lock = state_lock();
    if (lock < 0) return NO_DEVICE;
    const struct gpu *gpu = device_at(device);
    if (gpu) state_finish(gpu->uuid, (uint32_t)getpid(), now_us());
    state_write(lock);
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void) { return *current ? CUDA_SUCCESS : INVALID_CONTEXT; }
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
    static CUdeviceptr next = 0x7f0000000000ull;
    if (!*current) return INVALID_CONTEXT;
    if (!bytes) return INVALID_VALUE;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (blocks[i].at) continue;
        blocks[i].at = *at = next;
        blocks[i].bytes = bytes;
        next += (bytes + 511) & ~(CUdeviceptr)511;
        return hold(current, (long long)bytes);
    }
    return OUT_OF_MEMORY;
}
CUresult cuMemFree_v2(CUdeviceptr at) {
    for (size_t i = 0; at && i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i].at == at) { blocks[i].at = 0; return hold(current, -(long long)blocks[i].bytes); }
    return INVALID_VALUE;
}
CUresult cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t count) {
    (void)at, (void)value, (void)count;
    return *current ? CUDA_SUCCESS : INVALID_CONTEXT;
}
CUresult cuGetErrorString(CUresult number, const char **text) {
    *text = number ? "fake CUDA error" : "no error";
    return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult number, const char **text) { return cuGetErrorString(number, text); }

/* A process that ends without destroying its contexts closes its devices all the same. */
__attribute__((destructor)) static void leave(void) {
    for (int device = 0; device < MOST; device++)
        while (opened[device]) cuCtxDestroy_v2((void *)(uintptr_t)(device + 1));
}
