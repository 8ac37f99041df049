/* A wall clock and a boot-time clock that a test can move: preloaded (LD_PRELOAD) into the command under test.
 *
 * GPULEDGER_FAKE_CLOCK names a file with two numbers, microseconds that are added to the kernel's wall clock and
 * boot-time clock. It is read at every call, so that a clock can be set while the program runs.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void offsets(long long *wall_us, long long *boot_us) {
    *wall_us = *boot_us = 0;
    const char *path = getenv("GPULEDGER_FAKE_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    char text[64] = "";
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0 || sscanf(text, "%lld %lld", wall_us, boot_us) != 2) abort();
}

static void add(struct timespec *moment, long long us) {
    long long ns = moment->tv_nsec + us % 1000000 * 1000;
    moment->tv_sec += us / 1000000 + (ns >= 1000000000) - (ns < 0);
    moment->tv_nsec = (ns + 1000000000) % 1000000000;
}

int clock_gettime(clockid_t which, struct timespec *moment) {
    if (syscall(SYS_clock_gettime, which, moment)) return -1;
    long long wall_us, boot_us;
    offsets(&wall_us, &boot_us);
    if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) add(moment, wall_us);
    if (which == CLOCK_BOOTTIME) add(moment, boot_us);
    return 0;
}

time_t time(time_t *into) {
    struct timespec moment;
    clock_gettime(CLOCK_REALTIME, &moment);
    if (into) *into = moment.tv_sec;
    return moment.tv_sec;
}

int gettimeofday(struct timeval *restrict into, void *restrict zone) {
    (void)zone;
    struct timespec moment;
    clock_gettime(CLOCK_REALTIME, &moment);
    into->tv_sec = moment.tv_sec;
    into->tv_usec = moment.tv_nsec / 1000;
    return 0;
}
