/*
 * Put in front of a server's C library by LD_PRELOAD: writes down how much of a file a power cut would leave.
 *
 * After each fdatasync or fsync that has succeeded, a line "<bytes> <path>" goes into the file that SYNCED names: the
 * file's size before the call began, for what is written meanwhile may or may not be on the disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int note(int fd, int (*sync)(int))
{
    struct stat before;
    char link[64], path[4096], line[4200];
    int status = fstat(fd, &before);
    if (status == 0) status = sync(fd);
    if (status != 0) return status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    int log = open(getenv("SYNCED"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (length < 0 || log < 0) abort();
    path[length] = 0;
    int size = snprintf(line, sizeof line, "%lld %s\n", (long long)before.st_size, path);
    if (write(log, line, size) != size) abort();
    close(log);
    return 0;
}

int fdatasync(int fd)
{
    return note(fd, (int (*)(int))dlsym(RTLD_NEXT, "fdatasync"));
}

int fsync(int fd)
{
    return note(fd, (int (*)(int))dlsym(RTLD_NEXT, "fsync"));
}
