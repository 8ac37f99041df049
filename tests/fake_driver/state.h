/* The state of the fake driver: one text file that tests write and both libraries read.
 *
 * The file is named by GPULEDGER_FAKE_DRIVER_STATE. It is read again whenever its inode, size or
 * modification time has changed, and replaced by rename under a lock on "<file>.lock". No file: no driver.
 * One line is one thing, its words separated by tabs:
 *
 *   driver   VERSION
 *   root     0|1                                             may the caller change modes (default: uid 0)
 *   error    FUNCTION NUMBER UUID|*                          that exported function returns that number
 *   gpu      UUID PRODUCT MEMORY_MIB PCI ACCOUNTING MIG      each mode 1 on, 0 off, -1 not supported
 *   slice    GPU UUID GI CI PROFILE MEMORY_MIB               a MIG instance
 *   process  GPU PID KINDS BYTES GI CI FOLLOW                an open context, in lists C, G, M; FOLLOW 1: the
 *                                                            context closes when the process is seen to be gone
 *   live     GPU PID START_US PEAK_BYTES SM MEM              a running row of the accounting list
 *   dead     GPU PID START_US TIME_MS PEAK_BYTES SM MEM      a finished row, oldest end first
 *   gone     GPU PID                                         listed, but its row is gone when asked for
 *   sample   GPU PID STAMP_US|now SM MEM                     a utilisation sample
 *
 * "-" stands for the value that NVML writes where it has none. Order within a kind is kept.
 */
#ifndef GPULEDGER_FAKE_STATE_H
#define GPULEDGER_FAKE_STATE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NO_U32 0xFFFFFFFFu
#define NO_U64 0xFFFFFFFFFFFFFFFFull
#define MIB (1024ull * 1024ull)
#define RING 128
#define TEXT 96

struct gpu { char uuid[TEXT], product[TEXT], pci[TEXT]; uint64_t memory_mib; int accounting, mig; };
struct slice { char gpu[TEXT], uuid[TEXT], profile[TEXT]; uint32_t gi, ci; uint64_t memory_mib; };
struct process { char gpu[TEXT], kinds[TEXT]; uint32_t pid, gi, ci; uint64_t bytes; int follow; };
struct row { char gpu[TEXT]; uint32_t pid, sm, mem; uint64_t start_us, time_ms, peak; };
struct gone { char gpu[TEXT]; uint32_t pid; };
struct sample { char gpu[TEXT]; uint32_t pid, sm, mem; uint64_t stamp_us; };
struct failure { char function[TEXT], uuid[TEXT]; int number; };

#define LIST(type) struct { struct type *at; size_t count, room; }
struct state {
    char driver[TEXT];
    int root;
    LIST(gpu) gpus;
    LIST(slice) slices;
    LIST(process) processes;
    LIST(row) live;
    LIST(row) dead;
    LIST(gone) gone;
    LIST(sample) samples;
    LIST(failure) failures;
};

#define APPEND(list) \
    (((list).count == (list).room \
        ? ((list).room = (list).room ? 2 * (list).room : 16, \
           (list).at = realloc((list).at, (list).room * sizeof *(list).at), 0) \
        : 0), \
     memset(&(list).at[(list).count], 0, sizeof *(list).at), \
     &(list).at[(list).count++])
#define REMOVE(list, index) \
    (memmove(&(list).at[index], &(list).at[(index) + 1], ((list).count - (index) - 1) * sizeof *(list).at), \
     (list).count--)

static struct state state;
static struct stat state_seen;

static const char *state_path(void) {
    const char *path = getenv("GPULEDGER_FAKE_DRIVER_STATE");
    return path ? path : "";
}

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static void state_broken(const char *line) {
    fprintf(stderr, "fake driver: %s: cannot understand line: %s\n", state_path(), line);
    abort();
}

static void word(char *into, const char *from) {
    size_t length = strnlen(from, TEXT - 1);
    memcpy(into, from, length);
    into[length] = 0;
}
static uint64_t number(const char *text) { return strcmp(text, "-") ? strtoull(text, NULL, 10) : NO_U64; }
static uint32_t small(const char *text) { return strcmp(text, "-") ? (uint32_t)strtoul(text, NULL, 10) : NO_U32; }

static void state_line(char *line) {
    char *words[9] = {0}, whole[1024];
    size_t count = 0, length = strnlen(line, sizeof whole - 1);
    memcpy(whole, line, length);
    whole[length] = 0;
    for (char *rest = line, *next; (next = strsep(&rest, "\t")) && count < 9;) words[count++] = next;
    const char *kind = words[0];
#define IS(name, n) (!strcmp(kind, name) && count == (n))
    if (IS("driver", 2)) word(state.driver, words[1]);
    else if (IS("root", 2)) state.root = atoi(words[1]);
    else if (IS("error", 4)) {
        struct failure *one = APPEND(state.failures);
        word(one->function, words[1]); one->number = atoi(words[2]); word(one->uuid, words[3]);
    } else if (IS("gpu", 7)) {
        struct gpu *one = APPEND(state.gpus);
        word(one->uuid, words[1]); word(one->product, words[2]); one->memory_mib = number(words[3]);
        word(one->pci, words[4]); one->accounting = atoi(words[5]); one->mig = atoi(words[6]);
    } else if (IS("slice", 7)) {
        struct slice *one = APPEND(state.slices);
        word(one->gpu, words[1]); word(one->uuid, words[2]); one->gi = small(words[3]); one->ci = small(words[4]);
        word(one->profile, words[5]); one->memory_mib = number(words[6]);
    } else if (IS("process", 8)) {
        struct process *one = APPEND(state.processes);
        word(one->gpu, words[1]); one->pid = small(words[2]); word(one->kinds, words[3]);
        one->bytes = number(words[4]); one->gi = small(words[5]); one->ci = small(words[6]);
        one->follow = atoi(words[7]);
    } else if (IS("live", 7)) {
        struct row *one = APPEND(state.live);
        word(one->gpu, words[1]); one->pid = small(words[2]); one->start_us = number(words[3]);
        one->peak = number(words[4]); one->sm = small(words[5]); one->mem = small(words[6]);
    } else if (IS("dead", 8)) {
        struct row *one = APPEND(state.dead);
        word(one->gpu, words[1]); one->pid = small(words[2]); one->start_us = number(words[3]);
        one->time_ms = number(words[4]); one->peak = number(words[5]); one->sm = small(words[6]);
        one->mem = small(words[7]);
    } else if (IS("gone", 3)) {
        struct gone *one = APPEND(state.gone);
        word(one->gpu, words[1]); one->pid = small(words[2]);
    } else if (IS("sample", 6)) {
        struct sample *one = APPEND(state.samples);
        word(one->gpu, words[1]); one->pid = small(words[2]);
        one->stamp_us = strcmp(words[3], "now") ? number(words[3]) : 0;
        one->sm = small(words[4]); one->mem = small(words[5]);
    } else state_broken(whole);
#undef IS
}

/* Reads the file if it has changed. 0: no file, so no driver. */
static int state_read(void) {
    struct stat seen;
    if (stat(state_path(), &seen)) return 0;
    if (seen.st_ino == state_seen.st_ino && seen.st_size == state_seen.st_size &&
        seen.st_mtim.tv_sec == state_seen.st_mtim.tv_sec && seen.st_mtim.tv_nsec == state_seen.st_mtim.tv_nsec)
        return 1;
    FILE *file = fopen(state_path(), "r");
    if (!file) return 0;
    fstat(fileno(file), &state_seen);
    word(state.driver, "595.45.04");
    state.root = geteuid() == 0;
    state.gpus.count = state.slices.count = state.processes.count = state.live.count = state.dead.count = 0;
    state.gone.count = state.samples.count = state.failures.count = 0;
    char *line = NULL;
    size_t room = 0;
    for (ssize_t length; (length = getline(&line, &room, file)) > 0;) {
        if (line[length - 1] == '\n') line[length - 1] = 0;
        if (*line && *line != '#') state_line(line);
    }
    free(line);
    fclose(file);
    return 1;
}

static int state_lock(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s.lock", state_path());
    int lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (lock < 0 || flock(lock, LOCK_EX)) { perror("fake driver: lock"); abort(); }
    if (!state_read()) { close(lock); return -1; }
    return lock;
}

static const char *shown(uint64_t value, int wide, char into[32]) {
    if (wide ? value == NO_U64 : (uint32_t)value == NO_U32) return "-";
    snprintf(into, 32, "%llu", (unsigned long long)value);
    return into;
}
#define N64(value) shown(value, 1, (char[32]){0})
#define N32(value) shown(value, 0, (char[32]){0})

/* Replaces the file by what is in memory and lets the lock go. */
static void state_write(int lock) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", state_path(), (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file) { perror("fake driver: state"); abort(); }
    static char buffer[256 * 1024]; /* a busy crowd changes the state 200 times a second */
    setvbuf(file, buffer, _IOFBF, sizeof buffer);
    fprintf(file, "driver\t%s\nroot\t%d\n", state.driver, state.root);
    for (size_t i = 0; i < state.failures.count; i++) {
        struct failure *one = &state.failures.at[i];
        fprintf(file, "error\t%s\t%d\t%s\n", one->function, one->number, one->uuid);
    }
    for (size_t i = 0; i < state.gpus.count; i++) {
        struct gpu *one = &state.gpus.at[i];
        fprintf(file, "gpu\t%s\t%s\t%s\t%s\t%d\t%d\n", one->uuid, one->product, N64(one->memory_mib), one->pci,
                one->accounting, one->mig);
    }
    for (size_t i = 0; i < state.slices.count; i++) {
        struct slice *one = &state.slices.at[i];
        fprintf(file, "slice\t%s\t%s\t%s\t%s\t%s\t%s\n", one->gpu, one->uuid, N32(one->gi), N32(one->ci), one->profile,
                N64(one->memory_mib));
    }
    for (size_t i = 0; i < state.processes.count; i++) {
        struct process *one = &state.processes.at[i];
        fprintf(file, "process\t%s\t%u\t%s\t%s\t%s\t%s\t%d\n", one->gpu, one->pid, one->kinds, N64(one->bytes),
                N32(one->gi), N32(one->ci), one->follow);
    }
    for (size_t i = 0; i < state.live.count; i++) {
        struct row *one = &state.live.at[i];
        fprintf(file, "live\t%s\t%u\t%s\t%s\t%s\t%s\n", one->gpu, one->pid, N64(one->start_us), N64(one->peak),
                N32(one->sm), N32(one->mem));
    }
    for (size_t i = 0; i < state.dead.count; i++) {
        struct row *one = &state.dead.at[i];
        fprintf(file, "dead\t%s\t%u\t%s\t%s\t%s\t%s\t%s\n", one->gpu, one->pid, N64(one->start_us), N64(one->time_ms),
                N64(one->peak), N32(one->sm), N32(one->mem));
    }
    for (size_t i = 0; i < state.gone.count; i++)
        fprintf(file, "gone\t%s\t%u\n", state.gone.at[i].gpu, state.gone.at[i].pid);
    for (size_t i = 0; i < state.samples.count; i++) {
        struct sample *one = &state.samples.at[i];
        fprintf(file, "sample\t%s\t%u\t%s\t%s\t%s\n", one->gpu, one->pid, one->stamp_us ? N64(one->stamp_us) : "now",
                N32(one->sm), N32(one->mem));
    }
    fclose(file);
    if (rename(path, state_path())) { perror("fake driver: rename"); abort(); }
    memset(&state_seen, 0, sizeof state_seen);
    close(lock);
}

/* A process closes a device: settled if it was accounted. A second stint frees the pid's older row, and a
 * full ring loses its oldest. Call with the lock held. */
static void state_finish(const char *gpu, uint32_t pid, uint64_t ended_us) {
    for (size_t i = state.processes.count; i-- > 0;)
        if (state.processes.at[i].pid == pid && !strcmp(state.processes.at[i].gpu, gpu)) REMOVE(state.processes, i);
    for (size_t i = 0; i < state.live.count; i++) {
        if (state.live.at[i].pid != pid || strcmp(state.live.at[i].gpu, gpu)) continue;
        struct row ended = state.live.at[i];
        REMOVE(state.live, i);
        ended.time_ms = (ended_us - ended.start_us) / 1000;
        size_t held = 0, oldest = 0;
        for (size_t k = state.dead.count; k-- > 0;) {
            if (strcmp(state.dead.at[k].gpu, gpu)) continue;
            if (state.dead.at[k].pid == pid) { REMOVE(state.dead, k); oldest -= oldest > k; continue; }
            held++;
            oldest = k;
        }
        if (held >= RING) REMOVE(state.dead, oldest);
        *APPEND(state.dead) = ended;
        return;
    }
}

static int is_gone(uint32_t pid) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    const char *after = length > 0 ? strrchr(text, ')') : NULL;
    return !after || after[2] == 'Z' || after[2] == 'X';
}

/* Closes the contexts of followed processes that are no more, as the kernel would have at their exit. */
__attribute__((unused)) static void state_reap(void) {
    int any = 0;
    for (size_t i = 0; i < state.processes.count; i++)
        any |= state.processes.at[i].follow && is_gone(state.processes.at[i].pid);
    if (!any) return;
    int lock = state_lock();
    if (lock < 0) return;
    for (size_t i = state.processes.count; i-- > 0;) {
        struct process one = state.processes.at[i];
        if (!one.follow || !is_gone(one.pid)) continue;
        state_finish(one.gpu, one.pid, now_us());
        if (i > state.processes.count) i = state.processes.count;
    }
    state_write(lock);
    state_read();
}

#endif
