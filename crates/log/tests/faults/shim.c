/*
 * A disk that fails on command. Preloaded into a process, it counts every write, sync and truncate
 * of files below SHIM_FOLDER, and lets call number SHIM_AT (from 1) go wrong:
 *
 *   SHIM_MODE=eio     the call fails with EIO, once
 *   SHIM_MODE=enospc  the call fails with ENOSPC, and so do all writes after it
 *   SHIM_MODE=short   a write puts down half of its bytes, and the next call fails with ENOSPC
 *   SHIM_MODE=power   the power fails before the call: of what was written since the last sync of
 *                     each file, every write is lost, kept, or torn at a sector, as SHIM_SEED says
 *                     (0: all is lost); then the process ends
 *
 *   SHIM_MODE=clean   the call fails with EIO, once; what a sync could not write is held for clean
 *                     from then on, as Linux does: it can be read, and no later sync writes it
 *                     unless it was written again. The power fails when the process ends.
 *
 * Names of files count as durable at once: the model loses contents, not directory entries.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define SECTOR 512

struct change { /* a write (new != NULL) or a truncate that was not synced yet */
    struct change *before;
    dev_t dev;
    ino_t ino;
    int clean; /* a sync has failed: only writing it again makes it durable */
    int fd; /* our own copy: the program may close its */
    off_t offset, old_size, new_size;
    size_t old_length, length;
    char *old, *new;
};

static struct change *newest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls;
static int disk_full;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static int mode_is(const char *mode) { return strcmp(setting("SHIM_MODE"), mode) == 0; }

static int ours(int fd) {
    char link[64], path[PATH_MAX];
    const char *folder = setting("SHIM_FOLDER");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || !*folder) return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0 && !strstr(path, "-shm");
}

static uint64_t draw(void) { /* splitmix64 */
    static uint64_t state;
    if (!state) state = strtoull(setting("SHIM_SEED"), NULL, 10) * 0x9e3779b97f4a7c15u;
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void power_fails(void) {
    struct change *oldest = NULL;
    for (struct change *c = newest, *before; c; c = before) { /* back to what was synced */
        before = c->before;
        if (c->clean && c->new) { /* the file has its length, and nothing there */
            memset(c->new, 0, c->length);
            REAL(pwrite)(c->fd, c->new, c->length, c->offset);
        }
        if (c->old_length) REAL(pwrite)(c->fd, c->old, c->old_length, c->offset);
        if (!c->clean) REAL(ftruncate)(c->fd, c->old_size);
        c->before = oldest;
        oldest = c;
    }
    for (struct change *c = oldest; c && *setting("SHIM_SEED") != '0'; c = c->before) {
        if (c->clean) continue;
        uint64_t fate = draw();
        if (fate % 3 == 0) continue; /* lost */
        if (!c->new) {
            REAL(ftruncate)(c->fd, c->new_size);
            continue;
        }
        size_t keep = c->length;
        if (fate % 3 == 1) { /* torn: ends at a sector of the disk */
            size_t end = ((c->offset + (fate >> 8) % (c->length + 1)) / SECTOR) * SECTOR;
            keep = end > (size_t)c->offset ? end - c->offset : 0;
        }
        if (keep) REAL(pwrite)(c->fd, c->new, keep, c->offset);
    }
    _exit(9);
}

static void remember(int fd, const void *bytes, size_t length, off_t offset, off_t new_size) {
    struct stat st;
    struct change *c = calloc(1, sizeof *c);
    fstat(fd, &st);
    c->before = newest, c->dev = st.st_dev, c->ino = st.st_ino;
    c->old_size = st.st_size, c->new_size = new_size;
    char link[64], path[PATH_MAX] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) < 0) abort();
    FILE *own = fopen(path, "r+"); /* the program's descriptor may be write-only */
    if (!own) abort();
    c->fd = fileno(own);
    if (bytes) {
        c->offset = offset, c->length = length, c->new = malloc(length);
        memcpy(c->new, bytes, length);
    } else { /* a truncate loses what is behind the new end */
        c->offset = new_size < st.st_size ? new_size : st.st_size;
        length = st.st_size - c->offset;
    }
    c->old = malloc(length + 1);
    ssize_t old = pread(c->fd, c->old, length, c->offset);
    c->old_length = old > 0 ? old : 0;
    newest = c;
}

static int is_of(struct change *c, struct stat *st) {
    return c->dev == st->st_dev && c->ino == st->st_ino;
}

static int written_again(struct change *old, struct stat *st) {
    for (struct change *c = newest; c != old; c = c->before)
        if (is_of(c, st) && !c->clean && c->new && c->offset <= old->offset &&
            c->offset + c->length >= old->offset + old->length)
            return 1;
    return 0;
}

static void synced(int fd) {
    struct stat st;
    fstat(fd, &st);
    for (struct change *c = newest; c; c = c->before)
        if (is_of(c, &st) && c->clean && written_again(c, &st)) c->clean = 0;
    for (struct change **c = &newest; *c;) {
        if (is_of(*c, &st) && !(*c)->clean) *c = (*c)->before;
        else c = &(*c)->before;
    }
}

static void not_synced(int fd) {
    struct stat st;
    fstat(fd, &st);
    for (struct change *c = newest; c; c = c->before)
        if (is_of(c, &st)) c->clean = 1;
}

__attribute__((destructor)) static void ends(void) {
    if (mode_is("clean")) power_fails();
}

static int remembers(void) { return mode_is("power") || mode_is("clean"); }

/* Whether this call is to fail; for a short write, *length says how much is put down. */
static int fails(const char *name, int fd, size_t *length) {
    long at = atol(setting("SHIM_AT"));
    long call = ++calls;
    if (disk_full && length) return errno = ENOSPC, 1;
    if (call != at && !(mode_is("short") && call == at + 1)) return 0;
    char link[64], path[PATH_MAX] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) < 0) abort();
    dprintf(2, "shim: %s %s\n", name, strrchr(path, '/') + 1);
    if (mode_is("power")) power_fails();
    if (mode_is("eio") || mode_is("clean")) return errno = EIO, 1;
    if (mode_is("enospc")) return disk_full = 1, errno = ENOSPC, 1;
    if (mode_is("short") && call == at && length && *length > 1) return *length /= 2, 0;
    return errno = ENOSPC, 1;
}

static ssize_t put(int fd, const void *bytes, size_t length, off_t offset) {
    pthread_mutex_lock(&lock);
    ssize_t done = -1;
    if (!fails("write", fd, &length)) {
        if (remembers()) remember(fd, bytes, length, offset, 0);
        done = REAL(pwrite)(fd, bytes, length, offset);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    return ours(fd) ? put(fd, bytes, length, offset) : REAL(pwrite)(fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    return pwrite(fd, bytes, length, offset);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    if (!ours(fd)) return REAL(write)(fd, bytes, length);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t done = put(fd, bytes, length, offset);
    if (done > 0) lseek(fd, offset + done, SEEK_SET);
    return done;
}

static int sync_with(int fd, int (*real)(int)) {
    if (!ours(fd)) return real(fd);
    pthread_mutex_lock(&lock);
    int done = fails("sync", fd, NULL) ? -1 : real(fd);
    if (done == 0) synced(fd);
    else if (mode_is("clean")) not_synced(fd);
    pthread_mutex_unlock(&lock);
    return done;
}

int fsync(int fd) { return sync_with(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_with(fd, REAL(fdatasync)); }

int ftruncate(int fd, off_t size) {
    if (!ours(fd)) return REAL(ftruncate)(fd, size);
    pthread_mutex_lock(&lock);
    int done = -1;
    if (!fails("truncate", fd, NULL)) {
        struct stat st;
        if (remembers() && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            remember(fd, NULL, 0, 0, size);
        done = REAL(ftruncate)(fd, size);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }
