/** What a command may use of its process. Commands use nothing else of it, so tests run them in their own. */

/** A stream of text to a terminal, a file or another program. */
export class Output {
  readonly isTTY: boolean;
  readonly hasColors: boolean;
  /** Characters of a line of the terminal. */
  readonly columns: number | undefined;
  readonly #write: (text: string) => void;

  constructor(write: (text: string) => void, terminal: Terminal) {
    this.isTTY = terminal.isTTY;
    this.hasColors = terminal.hasColors;
    this.columns = terminal.columns;
    this.#write = write;
  }

  write(text: string): void {
    this.#write(text);
  }
}

/** What an output knows of its terminal. */
interface Terminal {
  readonly isTTY: boolean;
  readonly hasColors: boolean;
  readonly columns?: number | undefined;
}

/** Text from a terminal, a file or another program. */
export interface Input {
  readonly isTTY: boolean;
  /** All of it. */
  read(): Promise<string>;
  /** Line by line, as they come. */
  lines(): AsyncIterable<string>;
  /** One line that the terminal does not show, with the question before it. */
  askSecret(question: string): Promise<string>;
}

export interface Io {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly fetch: typeof fetch;
  readonly now: () => number;
  /** Aborts at Ctrl-C. A process that reads it is not ended by the first one. */
  readonly interrupted: AbortSignal;
}

/** The input and output of this process. */
export function processIo(env: NodeJS.ProcessEnv): Io {
  let interrupted: AbortSignal | undefined;
  return {
    stdin: processInput,
    stdout: outputTo(process.stdout, env),
    stderr: outputTo(process.stderr, env),
    env,
    cwd: process.cwd(),
    fetch: (input, init) => fetch(input, init),
    now: Date.now,
    // Only for commands that ask for it: the platform has its own way to stop.
    get interrupted() {
      interrupted ??= untilInterrupted();
      return interrupted;
    },
  };
}

function untilInterrupted(): AbortSignal {
  const controller = new AbortController();
  process.once('SIGINT', () => controller.abort());
  return controller.signal;
}

function outputTo(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Output {
  const isTTY = stream.isTTY === true;
  // A reader that goes away, such as head, is not a failure.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  return new Output((text) => stream.write(text), {
    isTTY,
    // Considers NO_COLOR and FORCE_COLOR.
    hasColors: isTTY && stream.hasColors(env),
    columns: isTTY ? stream.columns : undefined,
  });
}

const processInput: Input = {
  get isTTY() {
    return process.stdin.isTTY === true;
  },
  async read() {
    const { text } = await import('node:stream/consumers');
    return text(process.stdin);
  },
  async *lines() {
    const { createInterface } = await import('node:readline');
    yield* createInterface({ input: process.stdin });
  },
  async askSecret(question) {
    const [{ createInterface }, { Writable }] = await Promise.all([
      import('node:readline/promises'),
      import('node:stream'),
    ]);
    process.stderr.write(question);
    const output = new Writable({ write: (_chunk, _encoding, done) => done() });
    const prompt = createInterface({ input: process.stdin, output, terminal: true });
    try {
      return await prompt.question('');
    } finally {
      prompt.close();
      process.stderr.write('\n');
    }
  },
};

/** A value as `--json` prints it: one line. */
export function writeJson({ stdout }: Pick<Io, 'stdout'>, value: unknown): void {
  stdout.write(`${JSON.stringify(value)}\n`);
}
