/** What a command may use of its process. Commands use nothing else of it, so tests run them in their own. */

/** A stream of text to a terminal, a file or another program. */
export interface Output {
  write(text: string): void;
  readonly isTTY: boolean;
  readonly hasColors: boolean;
}

export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly fetch: typeof fetch;
}

/** The input and output of this process. */
export function processIo(env: NodeJS.ProcessEnv): Io {
  return {
    stdout: outputTo(process.stdout, env),
    stderr: outputTo(process.stderr, env),
    env,
    cwd: process.cwd(),
    fetch: (input, init) => fetch(input, init),
  };
}

function outputTo(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Output {
  const isTTY = stream.isTTY === true;
  return {
    write: (text) => void stream.write(text),
    isTTY,
    // Considers NO_COLOR and FORCE_COLOR.
    hasColors: isTTY && stream.hasColors(env),
  };
}

/** A value as `--json` prints it: one line. */
export function writeJson({ stdout }: Pick<Io, 'stdout'>, value: unknown): void {
  stdout.write(`${JSON.stringify(value)}\n`);
}
