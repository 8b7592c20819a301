/** A guard over child processes whose parent may end at any time. */
import type { ChildProcessByStdio } from 'node:child_process';
import type { Writable } from 'node:stream';

/** Reads `+ pid` and `- pid`; at the end of its input kills the groups that are left. */
const script = `trap '' INT TERM HUP
pids=
while read -r sign pid; do
  case $sign in
    +) pids="$pids $pid" ;;
    -) kept=
       for p in $pids; do [ "$p" = "$pid" ] || kept="$kept $p"; done
       pids=$kept ;;
  esac
done
for p in $pids; do kill -s KILL -- "-$p" 2>/dev/null; done`;

/**
 * Kills child processes when the parent is gone. A child notices the end of its channel by itself, but not
 * while other code blocks its event loop. A shell that waits on a pipe from the parent always notices.
 * A guard is one sleeping shell (2 MB). Without /bin/sh there is no guard.
 */
export class OrphanGuard {
  /** Undefined on Windows, which has no guard. */
  readonly #shell: ChildProcessByStdio<Writable, null, null> | undefined;
  readonly #gone: Promise<void>;

  /** `name` is what lists of processes show; `onMissing` is called with the reason when there is no guard. */
  constructor(name: string, onMissing: (reason: string) => void) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gone = promise;
    if (process.platform === 'win32') {
      resolve();
      return;
    }
    // An import would load it in every executor.
    const { spawn } = process.getBuiltinModule('node:child_process');
    const shell = spawn('/bin/sh', ['-c', script, name], {
      stdio: ['pipe', 'ignore', 'ignore'],
      // Its own group: a terminal's Ctrl-C is for the parent.
      detached: true,
      env: {},
    });
    this.#shell = shell;
    shell.once('exit', () => resolve());
    shell.once('error', (error) => {
      onMissing(error.message);
      resolve();
    });
    // A write to a guard that has died fails; `onMissing` has been called already.
    shell.stdin.on('error', () => {});
    shell.unref();
  }

  /** Kills this process and its group when the parent is gone. */
  add(pid: number | undefined): void {
    if (pid !== undefined) this.#shell?.stdin.write(`+ ${pid}\n`);
  }

  remove(pid: number | undefined): void {
    if (pid !== undefined) this.#shell?.stdin.write(`- ${pid}\n`);
  }

  /** Resolves when the shell is gone. */
  stop(): Promise<void> {
    this.#shell?.ref();
    this.#shell?.stdin.end();
    return this.#gone;
  }
}
