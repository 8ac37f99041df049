/* A process that does one thing that kernel events tell of, and ends. Built static, so that it runs in any root. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static char **words;

static void *become(void *none) {
    execv(words[2], words + 2);
    return none;
}

int main(int count, char **given) {
    const char *what = count > 1 ? given[1] : "nothing";
    words = given;
    if (!strcmp(what, "open")) { /* a node, any number of times */
        for (int i = 2; i < count; i++) open(given[i], O_RDWR | O_CLOEXEC);
    } else if (!strcmp(what, "fork-open")) { /* a child opens the node, and never execs */
        if (!fork()) _exit(open(given[2], O_RDWR) < 0);
        wait(NULL);
    } else if (!strcmp(what, "forks")) { /* so many children end at once */
        for (int i = atoi(given[2]); i > 0; i--) {
            if (!fork()) _exit(0);
            if (i % 50 == 1) while (wait(NULL) > 0) {}
        }
        while (wait(NULL) > 0) {}
    } else if (!strcmp(what, "thread-exec")) { /* a thread that is not the first becomes another program */
        pthread_t thread;
        pthread_create(&thread, NULL, become, NULL);
        pause();
    } else if (!strcmp(what, "become-user")) { /* another user, who opens the node */
        if (setuid(atoi(given[2]))) return 1;
        open(given[3], O_RDWR);
    } else if (!strcmp(what, "title")) { /* writes a title over the command line, up to its end and beyond */
        char *end = environ[0] + strlen(environ[0]);
        memset(given[0], 't', end - given[0]);
        open("/dev/null", O_RDWR);
        pause();
    } else if (!strcmp(what, "mknod")) {
        mknod(given[2], S_IFCHR | 0600, makedev(1, 3));
    } else if (!strcmp(what, "wait")) {
        pause();
    }
    return 0;
}
