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

/** Text from a terminal, a file or another program: the standard input of this process. */
class Input {
  get isTTY(): boolean {
    return process.stdin.isTTY === true;
  }

  /** All of it. */
  async read(): Promise<string> {
    const { text } = await import('node:stream/consumers');
    return text(process.stdin);
  }

  /** Line by line, as they come. */
  async *lines(): AsyncIterable<string> {
    const { createInterface } = await import('node:readline');
    yield* createInterface({ input: process.stdin });
  }

  /** One line that the terminal does not show, with the question before it. */
  async askSecret(question: string): Promise<string> {
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
  }
}

let interrupted: AbortSignal | undefined;

/** The input and output of this process. */
export class Io {
  readonly stdin = new Input();
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd = process.cwd();

  constructor(env: NodeJS.ProcessEnv) {
    this.env = env;
    this.stdout = outputTo(process.stdout, env);
    this.stderr = outputTo(process.stderr, env);
  }

  /** Aborts at Ctrl-C. A process that reads it is not ended by the first one: the platform has its own way to stop. */
  get interrupted(): AbortSignal {
    interrupted ??= untilInterrupted();
    return interrupted;
  }

  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return fetch(input, init);
  }

  now(): number {
    return Date.now();
  }
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

/** A value as `--json` prints it: one line. */
export function writeJson({ stdout }: Pick<Io, 'stdout'>, value: unknown): void {
  stdout.write(`${JSON.stringify(value)}\n`);
}
