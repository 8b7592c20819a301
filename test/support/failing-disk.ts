/**
 * A disk that fails on request, for one process and its children: a small library in front of the C library, compiled when
 * a test asks for it, lets the calls fail that reach the named files. It needs no rights, unlike a small file system.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { serverDirectory } from './supervised.ts';

/**
 * `fsync`: data cannot be made durable. `readonly`: the file system takes no writes, as after an error of its disk.
 * `full`: it has no room, so a file cannot grow, and what it has can be overwritten.
 */
export type DiskFault = 'fsync' | 'readonly' | 'full';

export interface FailingDisk {
  /** Variables of the process. */
  readonly environment: Readonly<Record<string, string>>;
  fail(fault: DiskFault): void;
  heal(): void;
}

/** Whether a C compiler is there; says so where not. A run in CI must have one. */
export function canCompile(): boolean {
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    if (process.env['CI']) throw new Error('gcc is missing: the tests of failing disks need it');
    process.stderr.write('\nThere is no gcc: the tests of failing disks are skipped.\n');
    return false;
  }
}

/** Compiles the library. The files whose paths contain `files` are on the disk. It is gone when the test ends. */
export function makeFailingDisk(files: string): FailingDisk {
  const directory = serverDirectory('disk', null);
  onTestFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 10 }));
  // A server may run under another account.
  chmodSync(directory, 0o755);
  const source = join(directory, 'failing-disk.c');
  const library = join(directory, 'failing-disk.so');
  writeFileSync(source, program);
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl']);
  const request = (fault: DiskFault) => join(directory, `fail-${fault}`);
  return {
    environment: { LD_PRELOAD: library, FAILING_DISK: directory, FAILING_DISK_FILES: files },
    fail: (fault) => writeFileSync(request(fault), ''),
    heal() {
      for (const fault of ['fsync', 'readonly', 'full'] as const) {
        rmSync(request(fault), { force: true });
      }
    },
  };
}

const program = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int fails(int fd, const char *fault) {
  const char *directory = getenv("FAILING_DISK"), *files = getenv("FAILING_DISK_FILES");
  char link[64], path[4096], request[4096];
  if (directory == NULL || files == NULL) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (strstr(path, files) == NULL) return 0;
  snprintf(request, sizeof request, "%s/fail-%s", directory, fault);
  return access(request, F_OK) == 0;
}

/* Sets errno where a write that ends there fails. */
static int refuses(int fd, off64_t end) {
  struct stat64 file;
  if (fails(fd, "readonly")) { errno = EROFS; return 1; }
  if (!fails(fd, "full") || fstat64(fd, &file) != 0 || end <= file.st_size) return 0;
  errno = ENOSPC;
  return 1;
}

static off64_t end_of(int fd, size_t count) {
  int appends = fcntl(fd, F_GETFL) & O_APPEND;
  off64_t at = lseek64(fd, 0, appends ? SEEK_END : SEEK_CUR);
  return at < 0 ? 0 : at + (off64_t)count;
}

static size_t length_of(const struct iovec *parts, int count) {
  size_t sum = 0;
  for (int i = 0; i < count; i++) sum += parts[i].iov_len;
  return sum;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fsync(int fd) {
  if (fails(fd, "fsync")) { errno = EIO; return -1; }
  return REAL(fsync)(fd);
}
int fdatasync(int fd) {
  if (fails(fd, "fsync")) { errno = EIO; return -1; }
  return REAL(fdatasync)(fd);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  if (refuses(fd, offset + count)) return -1;
  return REAL(pwrite64)(fd, bytes, count, offset);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  if (refuses(fd, offset + count)) return -1;
  return REAL(pwrite)(fd, bytes, count, offset);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
  if (refuses(fd, offset + length_of(parts, count))) return -1;
  return REAL(pwritev64)(fd, parts, count, offset);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  if (refuses(fd, offset + length_of(parts, count))) return -1;
  return REAL(pwritev)(fd, parts, count, offset);
}
ssize_t write(int fd, const void *bytes, size_t count) {
  if (refuses(fd, end_of(fd, count))) return -1;
  return REAL(write)(fd, bytes, count);
}
int ftruncate64(int fd, off64_t length) {
  if (refuses(fd, length)) return -1;
  return REAL(ftruncate64)(fd, length);
}
int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  if (refuses(fd, offset + length)) return errno;
  return REAL(posix_fallocate64)(fd, offset, length);
}
`;
