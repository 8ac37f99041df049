/* A job that lives as short as it is told: worker MODE NODE MICROSECONDS [WORDS...]
 *   use   opens the device's node, makes a context of the (fake) CUDA driver, lives, and lets go
 *   open  opens the node and lives, as a tool does that only looks
 *   fork  a child does what `use` does, without an exec of its own
 *   chain does what `use` does, then becomes the next of these, and so on: chain NODE US HOW[,HOW...] [WORDS...]
 *         where HOW is use or open, each a program of its own; its place in the chain is its first word
 * What stands after that is only there to be read in its command line. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void live(long us) {
    struct timespec left = {us / 1000000, (us % 1000000) * 1000};
    nanosleep(&left, NULL);
}

static int use(const char *node, long us) {
    (void)!open(node, O_RDWR | O_CLOEXEC); /* without a driver the kernel refuses it, after it has asked */
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*create)(void **, unsigned, int) = (int (*)(void **, unsigned, int))dlsym(cuda, "cuCtxCreate_v2");
    int (*destroy)(void *) = (int (*)(void *))dlsym(cuda, "cuCtxDestroy_v2");
    void *context = NULL;
    int failed = init(0);
    if (!failed) failed = create(&context, 0, 0);
    if (failed) return 3;
    live(us);
    destroy(context);
    return 0;
}

/* Holds the device as this program of the chain, then becomes the next one; an exec closes what was open. */
static int chain(char **words) {
    char *how = words[4], *next = strchr(how, ',');
    int status = 0;
    if (next) *next++ = 0;
    if (!strcmp(how, "use")) {
        status = use(words[2], atol(words[3]));
    } else {
        (void)!open(words[2], O_RDWR | O_CLOEXEC);
        live(atol(words[3]));
    }
    if (status || !next) return status;
    char number[24];
    snprintf(number, sizeof number, "%d", atoi(words[0]) + 1);
    words[0] = number;
    words[4] = next;
    execv("/proc/self/exe", words);
    return 5;
}

int main(int count, char **words) {
    if (count < 4) return 64;
    if (!strcmp(words[1], "chain")) return chain(words);
    long us = atol(words[3]);
    if (!strcmp(words[1], "use")) return use(words[2], us);
    if (!strcmp(words[1], "open")) {
        (void)!open(words[2], O_RDWR | O_CLOEXEC);
        live(us);
        return 0;
    }
    int status = 0;
    pid_t child = fork();
    if (child < 0) return 4;
    if (child == 0) _exit(use(words[2], us));
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
