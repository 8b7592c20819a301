/**
 * A disk that fails on request, for one process: a small library in front of the C library, compiled when a test asks for
 * it, lets the calls fail that reach the files of the embedded database.
 */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** `fsync`: data cannot be made durable. `readonly`: the file system takes no writes, as after an error of its disk. */
export type DiskFault = 'fsync' | 'readonly';

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

/** Compiles the library into `directory`, which also has the requests. */
export function makeFailingDisk(directory: string): FailingDisk {
  const source = join(directory, 'failing-disk.c');
  const library = join(directory, 'failing-disk.so');
  writeFileSync(source, program);
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl']);
  const request = (fault: DiskFault) => join(directory, `fail-${fault}`);
  return {
    environment: { LD_PRELOAD: library, FAILING_DISK: directory },
    fail: (fault) => writeFileSync(request(fault), ''),
    heal() {
      for (const fault of ['fsync', 'readonly'] as const) rmSync(request(fault), { force: true });
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
#include <unistd.h>

static int fails(int fd, const char *fault) {
  const char *directory = getenv("FAILING_DISK");
  char link[64], path[4096], request[4096];
  if (directory == NULL) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (strstr(path, "skillwright.db") == NULL) return 0;
  snprintf(request, sizeof request, "%s/fail-%s", directory, fault);
  return access(request, F_OK) == 0;
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
  if (fails(fd, "readonly")) { errno = EROFS; return -1; }
  return REAL(pwrite64)(fd, bytes, count, offset);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  if (fails(fd, "readonly")) { errno = EROFS; return -1; }
  return REAL(pwrite)(fd, bytes, count, offset);
}
ssize_t write(int fd, const void *bytes, size_t count) {
  if (fails(fd, "readonly")) { errno = EROFS; return -1; }
  return REAL(write)(fd, bytes, count);
}
int ftruncate64(int fd, off64_t length) {
  if (fails(fd, "readonly")) { errno = EROFS; return -1; }
  return REAL(ftruncate64)(fd, length);
}
`;
