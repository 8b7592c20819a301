/**
 * A provider of models in a process of its own, so that its work does not count for the measured processes. It
 * speaks streamed chat completions. What it does is in the model's name: `calls-30` calls a tool in
 * every turn but the 30th, `holds` keeps its first byte back, `drips` says a word every 250 ms; the
 * latter two until they are released. It tells its parent over IPC what it saw.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Body, chat } from '../test/support/scripted-protocols.ts';

/** What it is told. */
export type ProviderOrder = 'report' | 'release';

/** What it saw since the last report. */
export interface ProviderReport {
  /** Answers that are begun or kept back, and not ended. */
  readonly open: number;
  /** Milliseconds from the last byte of a turn to the request of the next, by model, in order. */
  readonly gaps: Readonly<Record<string, readonly number[]>>;
}

/** Words of an answer, a piece of the stream each. */
const words = 16;
const wordEveryMs = 4;
const dripEveryMs = 250;

let open = 0;
let gaps: Record<string, number[]> = {};
const endedAt = new Map<string, number>();
let gate = Promise.withResolvers<void>();
let isReleased = false;

const server = createServer((request, response) => {
  const at = performance.now();
  open += 1;
  response.once('close', () => {
    open -= 1;
  });
  answer(request, response, at).catch((error: unknown) => {
    console.error(error);
    response.destroy();
  });
});

async function answer(request: IncomingMessage, response: ServerResponse, at: number) {
  const body: Body = JSON.parse(await textOf(request));
  const model = String(body.model);
  const turn = turnOf(body);
  const before = endedAt.get(model);
  // A run's first request follows nothing.
  if (turn > 1 && before !== undefined) gaps[model] = [...(gaps[model] ?? []), at - before];
  const [kind, turns] = model.split('-');
  const { head, pieces, tail } = eventsOf(body, kind === 'calls' && turn < Number(turns));
  if (kind === 'holds') await gate.promise;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of head) response.write(event);
  while (kind === 'drips' && !isReleased) {
    response.write(pieces[0] ?? '');
    await Promise.race([pause(dripEveryMs), gate.promise]);
  }
  for (const event of pieces) {
    if (kind === 'calls') await pause(wordEveryMs);
    response.write(event);
  }
  endedAt.set(model, performance.now());
  response.end(tail.join(''));
}

/** From 1; each turn but the last ends with a tool's result. */
function turnOf(body: Body): number {
  return 1 + body.messages.filter((message: Body) => message.role === 'tool').length;
}

function eventsOf(body: Body, isCalling: boolean) {
  const turn = turnOf(body);
  const task = body.messages.find((message: Body) => message.role === 'user')?.content;
  // What an answer costs says which task it was for.
  const number = Number(/\d+$/.exec(String(task))?.[0] ?? 0);
  const call = {
    id: `call_${turn}`,
    name: 'util__echo__v1_0',
    input: JSON.stringify({ text: `turn ${turn}` }),
  };
  const content = {
    id: `answer_${turn}`,
    model: body.model,
    text: 'word '.repeat(words),
    toolCalls: isCalling ? [call] : [],
    finish: isCalling ? ('tool-calls' as const) : ('stop' as const),
    usage: { prompt: number, completion: number },
  };
  return chat.events(content, 'word '.length, body);
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  request.setEncoding('utf8');
  for await (const part of request) text += part;
  return text;
}

process.on('message', (order: ProviderOrder) => {
  if (order === 'release') {
    isReleased = true;
    gate.resolve();
    gate = Promise.withResolvers();
    // Later requests wait again.
    setTimeout(() => {
      isReleased = false;
    }, 2 * dripEveryMs);
  }
  process.send?.({ open, gaps } satisfies ProviderReport);
  gaps = {};
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
});
