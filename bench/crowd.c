/* The crowd of bench_naming.py: starts processes, and writes down the truth about each. Nothing here is a contender.
 *   crowd rate  TRUTH WORD COUNT PER_SECOND GPUS NODES JOB US   one after the other at a steady rate, each on the next
 *                                                               GPU: JOB use NODES<gpu> US WORD-<number>
 *   crowd waves TRUTH WORD COUNT AT_ONCE NODE|-                 AT_ONCE together, which end together; then the next
 *   crowd wait  NODE|- WORD                                     one of a wave: opens the node, waits to be let go
 * TRUTH gets a line for each process: word, pid, wall-clock microseconds before it was started and after it was
 * reaped. A wave's contexts are told to the fake driver (where the environment names one) all at once, by who starts
 * them: 20,000 processes that each rewrote its state file would measure that file. */
#include "../tests/fake_driver/state.h"
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;
struct life { uint32_t pid; uint64_t began_us, opened_us, ended_us; };
static struct life *lives;
static int failures;

static void must(int failed, const char *what) {
    if (failed) { fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno)); exit(1); }
}

static void reaped(size_t from, size_t until, pid_t pid, int status) {
    failures += !WIFEXITED(status) || WEXITSTATUS(status);
    for (size_t i = until; i-- > from;)
        if (lives[i].pid == (uint32_t)pid && !lives[i].ended_us) { lives[i].ended_us = now_us(); return; }
}

static void write_truth(const char *path, const char *word, size_t count) {
    FILE *file = fopen(path, "w");
    must(!file, path);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%s-%zu %u %llu %llu\n", word, i, lives[i].pid, (unsigned long long)lives[i].began_us,
                (unsigned long long)lives[i].ended_us);
    must(fclose(file), path);
}

static int rate(char **words) {
    const char *word = words[3];
    size_t count = (size_t)atol(words[4]), gpus = (size_t)atol(words[6]), alive = 0, first = 0;
    double each_us = 1e6 / atof(words[5]);
    must(setpriority(PRIO_PROCESS, 0, -15), "priority"); /* a busy machine shall not make ten milliseconds fifty */
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    uint64_t start_us = now_us();
    for (size_t i = 0; i < count || alive;) {
        int status;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0; alive--) reaped(first, i, pid, status);
        while (first < i && lives[first].ended_us) first++;
        int64_t left_us = (int64_t)(start_us + (uint64_t)((double)i * each_us)) - (int64_t)now_us();
        if (i == count || left_us > 0) {
            if (i == count) left_us = 1000000;
            struct timespec until = {left_us / 1000000, left_us % 1000000 * 1000};
            if (i < count || alive) sigtimedwait(&child, NULL, &until);
            continue;
        }
        char node[4096], name[128], gpu[32];
        snprintf(node, sizeof node, "%s%zu", words[7], i % gpus);
        snprintf(name, sizeof name, "%s-%zu", word, i);
        snprintf(gpu, sizeof gpu, "%zu", i % gpus);
        setenv("CUDA_VISIBLE_DEVICES", gpu, 1);
        char *argv[] = {words[8], "use", node, words[9], name, NULL};
        pid_t pid;
        lives[i].began_us = now_us();
        must(posix_spawn(&pid, words[8], NULL, &attributes, argv, environ), words[8]);
        lives[i++].pid = (uint32_t)pid;
        alive++;
    }
    write_truth(words[2], word, count);
    return 0;
}

/* What the kernel module knows of a wave: who has the first GPU open, and then that they let it go. */
static void tell_driver(size_t from, size_t until, int ended) {
    int lock = *state_path() ? state_lock() : -1;
    if (lock < 0) return;
    const char *gpu = state.gpus.at[0].uuid;
    for (size_t i = from; i < until; i++) {
        if (ended) { state_finish(gpu, lives[i].pid, lives[i].ended_us); continue; }
        struct process *process = APPEND(state.processes);
        struct row *row = APPEND(state.live);
        word(process->gpu, gpu); word(process->kinds, "C"); word(row->gpu, gpu);
        process->pid = row->pid = lives[i].pid;
        process->gi = process->ci = NO_U32;
        process->bytes = row->peak = 184 * MIB;
        row->start_us = lives[i].opened_us;
    }
    state_write(lock);
}

static int waves(char **words) {
    const char *word = words[3];
    size_t count = (size_t)atol(words[4]), at_once = (size_t)atol(words[5]);
    char name[128], *argv[] = {"/proc/self/exe", "wait", words[6], name, NULL};
    char self[4096] = {0};
    must(readlink("/proc/self/exe", self, sizeof self - 1) < 0, "/proc/self/exe");
    argv[0] = self;
    for (size_t from = 0, until; from < count; from = until) {
        until = from + at_once < count ? from + at_once : count;
        int hold[2], told[2], status;
        must(pipe2(hold, O_CLOEXEC) || pipe2(told, O_CLOEXEC), "pipe");
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, hold[0], 0);
        posix_spawn_file_actions_adddup2(&actions, told[1], 1);
        for (size_t i = from; i < until; i++) {
            snprintf(name, sizeof name, "%s-%zu", word, i);
            pid_t pid;
            lives[i].began_us = now_us();
            must(posix_spawn(&pid, self, &actions, NULL, argv, environ), self);
            lives[i].pid = (uint32_t)pid;
        }
        for (size_t open = from; open < until; open++) {
            uint32_t pid;
            must(read(told[0], &pid, sizeof pid) != sizeof pid, "a process of the wave");
            for (size_t i = from; i < until; i++)
                if (lives[i].pid == pid) lives[i].opened_us = now_us();
        }
        if (*words[6] != '-') tell_driver(from, until, 0);
        close(hold[0]);
        close(hold[1]); /* they are let go */
        for (size_t left = until - from; left; left--) {
            pid_t pid = wait(&status);
            must(pid < 0, "wait");
            reaped(from, until, pid, status);
        }
        if (*words[6] != '-') tell_driver(from, until, 1);
        close(told[0]);
        close(told[1]);
        posix_spawn_file_actions_destroy(&actions);
    }
    write_truth(words[2], word, count);
    return 0;
}

static int wait_here(char **words) {
    uint32_t pid = (uint32_t)getpid();
    char byte;
    if (*words[2] != '-') (void)!open(words[2], O_RDWR | O_CLOEXEC); /* refused, after the kernel has asked */
    if (write(1, &pid, sizeof pid) != sizeof pid) return 1;
    while (read(0, &byte, 1) > 0) {}
    _exit(0);
}

int main(int count, char **words) {
    if (count == 4 && !strcmp(words[1], "wait")) return wait_here(words);
    if (count < 7) return 64;
    size_t of = (size_t)atol(words[4]);
    lives = calloc(of, sizeof *lives);
    must(!lives, "memory");
    uint64_t began_us = now_us();
    int failed = count == 10 && !strcmp(words[1], "rate") ? rate(words)
        : count == 7 && !strcmp(words[1], "waves") ? waves(words) : 64;
    printf("%.3f %d\n", (double)(now_us() - began_us) / 1e6, failures);
    return failed;
}
