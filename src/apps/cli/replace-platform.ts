/** `skillwright start --replace`: has the running platform start this installation in its place. */
import { createConnection } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../core/config/config.ts';
import {
  type ReplaceAnswer,
  type ReplaceRequest,
  replaceSocket,
} from '../../core/config/replacement.ts';
import { nodeArguments } from '../../kernel/node-program.ts';
import { CliError, exitCodes } from './exit-codes.ts';
import { type Io, writeJson } from './io.ts';

export async function replacePlatform(
  io: Pick<Io, 'cwd' | 'env' | 'stdout'>,
  { json }: { json?: boolean },
): Promise<void> {
  // Settings that are wrong end the command before the running platform is asked.
  const { dataDir, port } = readConfig(io.env);
  const request: ReplaceRequest = {
    program: process.execPath,
    args: [
      ...nodeArguments(process.execArgv),
      fileURLToPath(new URL('../../start.js', import.meta.url)),
    ],
    cwd: io.cwd,
    env: withoutParent(io.env),
  };
  const answer = await ask(replaceSocket({ dataDir, port }), request, () => {
    const message = `No platform with DATA_DIR=${dataDir} and PORT=${port} can be reached, so there is none to replace. Start one: skillwright start`;
    return new CliError(message, exitCodes.unreachable);
  });
  if (answer.status === 'refused') {
    const message = `The running platform goes on: ${answer.reason}`;
    throw new CliError(message, exitCodes.failed);
  }
  if (json) return writeJson(io, answer);
  io.stdout.write(`The process ${answer.pid} has taken over. It logs where the earlier one did.\n`);
}

/** The new process is no child of an npm that runs this command. */
function withoutParent(env: Io['env']): Record<string, string> {
  const entries = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || name.startsWith('npm_') ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}

async function ask(
  path: string,
  request: ReplaceRequest,
  unreachable: () => CliError,
): Promise<ReplaceAnswer> {
  const socket = createConnection(path);
  const { promise: connected, resolve, reject } = Promise.withResolvers<void>();
  socket.once('connect', resolve).once('error', reject);
  await connected.catch(() => {
    throw unreachable();
  });
  socket.write(`${JSON.stringify(request)}\n`);
  const answer = await text(socket);
  if (answer === '') {
    const message = 'The running platform ended before it answered: look at its log';
    throw new CliError(message, exitCodes.failed);
  }
  return JSON.parse(answer) as ReplaceAnswer;
}
