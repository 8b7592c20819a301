/** Commands of the command line, run in the test's own process. */
import { type Io, Output } from '../../src/apps/cli/io.ts';
import { runCli } from '../../src/apps/cli/program.ts';

export interface CliWorld {
  readonly env?: Record<string, string | undefined>;
  readonly cwd?: string;
  /** What comes on stdin. */
  readonly stdin?: string;
  /** A terminal of 100 columns with colours, at this moment. */
  readonly terminal?: boolean;
  readonly now?: () => number;
  readonly fetch?: typeof fetch;
  readonly interrupted?: AbortSignal;
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

type TextOutput = Output & { text(): string };

/** Runs a command to its end. */
export async function cli(args: readonly string[], world: CliWorld = {}): Promise<Ended> {
  const { io, stdout, stderr } = ioOf(world);
  const code = await runCli({ io, version: '1.2.3', startPlatform: async () => {} }, args);
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

/** What a command sees of its process, and what it prints. */
export function ioOf(world: CliWorld): { io: Io; stdout: TextOutput; stderr: TextOutput } {
  const [stdout, stderr] = [textOutput(world.terminal), textOutput(world.terminal)];
  const { stdin = '' } = world;
  const io: Io = {
    stdin: {
      isTTY: world.terminal === true,
      read: async () => stdin,
      async *lines() {
        yield* stdin.split('\n').filter((line) => line !== '');
      },
      askSecret: async () => stdin,
    },
    stdout,
    stderr,
    env: world.env ?? {},
    cwd: world.cwd ?? '/',
    fetch: world.fetch ?? fetch,
    now: world.now ?? Date.now,
    interrupted: world.interrupted ?? new AbortController().signal,
  };
  return { io, stdout, stderr };
}

function textOutput(isTerminal = false): TextOutput {
  const texts: string[] = [];
  const terminal = { isTTY: isTerminal, hasColors: isTerminal, columns: 100 };
  const output = new Output((text) => texts.push(text), terminal);
  return Object.assign(output, { text: () => texts.join('') });
}
