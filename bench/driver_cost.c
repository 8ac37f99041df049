/* What the driver's library itself costs: the calls of one look after the other, without a binding.
 *
 * driver_cost RATE SECONDS: looks so many times a second for so long, then prints the looks it made. Its CPU
 * time is what every contender pays for the same calls. Built and run by bench_agent.py. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void *device;
struct process { unsigned pid; unsigned long long bytes; unsigned gi, ci; };
struct sample { unsigned pid; unsigned long long stamp; unsigned sm, mem, enc, dec; };
struct stats { unsigned sm, mem; unsigned long long peak, time_ms, start_us; unsigned running, reserved[5]; };

static void *library;
static void *call(const char *name) {
    void *found = dlsym(library, name);
    if (!found) { fprintf(stderr, "%s: not in this library\n", name); exit(2); }
    return found;
}
#define CALL(name, ...) ((int (*)(__VA_ARGS__))call(#name))

int main(int count, char **words) {
    if (count != 3 || !(library = dlopen("libnvidia-ml.so.1", RTLD_NOW))) return 2;
    double rate = atof(words[1]), seconds = atof(words[2]);
    int (*init)(void) = CALL(nvmlInit_v2, void);
    int (*devices)(unsigned *) = CALL(nvmlDeviceGetCount_v2, unsigned *);
    int (*handle)(unsigned, device *) = CALL(nvmlDeviceGetHandleByIndex_v2, unsigned, device *);
    int (*mode)(device, unsigned *) = CALL(nvmlDeviceGetAccountingMode, device, unsigned *);
    int (*mig)(device, unsigned *, unsigned *) = CALL(nvmlDeviceGetMigMode, device, unsigned *, unsigned *);
    int (*pids)(device, unsigned *, unsigned *) = CALL(nvmlDeviceGetAccountingPids, device, unsigned *, unsigned *);
    int (*stats)(device, unsigned, struct stats *) = CALL(nvmlDeviceGetAccountingStats, device, unsigned, struct stats *);
    int (*lists[3])(device, unsigned *, struct process *) = {
        CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, unsigned *, struct process *),
        CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, device, unsigned *, struct process *),
        CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, device, unsigned *, struct process *),
    };
    int (*busy)(device, struct sample *, unsigned *, unsigned long long) =
        CALL(nvmlDeviceGetProcessUtilization, device, struct sample *, unsigned *, unsigned long long);
    static struct process processes[1024];
    static struct sample samples[1024];
    static unsigned listed[4000];
    unsigned found = 0;
    device gpus[64];
    if (init() || devices(&found)) return 2;
    for (unsigned i = 0; i < found && i < 64; i++) handle(i, &gpus[i]);
    long looks = (long)(rate * seconds);
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long look = 0; look < looks; look++) {
        unsigned now = 0, room;
        devices(&now);
        for (unsigned i = 0; i < found; i++) {
            unsigned one, two;
            struct stats row;
            mode(gpus[i], &one);
            mig(gpus[i], &one, &two);
            room = 4000;
            pids(gpus[i], &room, listed);
            /* from the newest row back to the first finished one, as the agent does */
            for (unsigned at = room; at-- > 0;)
                if (!stats(gpus[i], listed[at], &row) && !row.running) break;
            for (int list = 0; list < 3; list++) { room = 1024; lists[list](gpus[i], &room, processes); }
            room = 1024;
            struct timespec wall;
            clock_gettime(CLOCK_REALTIME, &wall);
            busy(gpus[i], samples, &room, (unsigned long long)wall.tv_sec * 1000000ull - 1000000ull);
        }
        due.tv_nsec += (long)(1e9 / rate);
        while (due.tv_nsec >= 1000000000L) { due.tv_nsec -= 1000000000L; due.tv_sec++; }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
    printf("%ld\n", looks);
    return 0;
}
