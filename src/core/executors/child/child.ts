/**
 * An executor: the process in which skills run. Loads the skill modules, reports them to the parent, then
 * executes the runs that the parent sends, many at once. All messages go over one socket (file descriptor
 * 3). When the socket ends, the parent is gone, and the child ends at once.
 *
 * It answers a ping of the parent at once when it has handled the messages before it; only the answers to
 * questions of runs that came in the same line are delivered after that.
 */
import { flushCompileCache } from 'node:module';
import { Socket } from 'node:net';
import { compactHeapSoon } from '../../../kernel/heap.ts';
import { provideAuthorModule } from '../../skills/sources/author-module.ts';
import { SkillLoadError } from '../../skills/sources/load-error.ts';
import type { LoadPlan } from '../../skills/sources/load-plan.ts';
import { limitConsole } from '../console-budget.ts';
import { logCharsMax } from '../limits.ts';
import { LineReader, Outbox, send } from '../lines.ts';
import { RunningMark } from '../now-running.ts';
import type { ParentMessage } from '../protocol.ts';
import { Pieces } from '../redaction.ts';
import { type Answer, createAnswerOrder, isAnswer } from './answer-order.ts';
import { type ChildLoad, loadAgain, loadByPlan, loadFirst, prepareLoad } from './child-load.ts';
import { ChildRuns } from './child-runs.ts';
import { describeFailure } from './failure.ts';
import { openInspector } from './inspector.ts';
import type { Run, Runnable } from './part.ts';
import { endProcess, installGuards } from './process-guards.ts';

/** What the parent passes as the only argument. */
export interface ChildSettings {
  readonly skillsDirs: readonly string[];
  /** The first child records the snapshot and reports its skills; the others load the snapshot. */
  readonly isFirst: boolean;
  /** It loads what it can before the skills, and those by a plan that it is told. */
  readonly isPrepared: boolean;
  /** Port for a debugger that it opens itself once it is ready; null for none. */
  readonly inspectPort: number | null;
  /** Files that ended an earlier child: they are not loaded, their skills fail. */
  readonly setAside: readonly string[];
  /** Whether pongs carry the resident memory, where the parent cannot read it itself. */
  readonly reportsMemory: boolean;
}

const socketFd = 3;
/** The skills snapshot. */
const snapshotFd = 4;
const readBytes = 65_536;
/** Milliseconds after which the child says between two messages that it is alive. */
const aliveMs = 250;

const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings;
const skills = new Map<string, Runnable>();
const backlog: string[] = [];
let isHeld = false;
/** When this process last said that it is alive, or had nothing to do; see `performance.now()`. */
let toldAt = 0;

const socket = openSocket();
const outbox = new Outbox((line) => socket.write(line));
const mark = new RunningMark();
const runs = new ChildRuns(skills, outbox);
/** Resolved when a prepared child may load. */
const planned = Promise.withResolvers<LoadPlan>();
const { skillsDirs, setAside } = settings;
const loading: ChildLoad = { snapshotFd, skillsDirs, setAside, skills, outbox };
const answered = createAnswerOrder(dispatch);

limitConsole((bytes) => outbox.push(`["dropped",${bytes}]`), print);
provideAuthorModule();
installGuards(runs, (skill, text) => outbox.push(JSON.stringify(['stray', skill, text])));
await load();

/** Sent at once, because the code that prints may block or end the process next. */
function print(stream: 'stdout' | 'stderr', text: string): string | undefined {
  const run = runs.current();
  // The parent keeps the secrets out of what no run prints.
  if (run === undefined || run.isOver) return text;
  const shown = run.secrets === undefined ? text : piecesOf(run, stream).take(text);
  if (shown !== '') send(outbox, ['print', run.id, stream, shown.slice(0, logCharsMax).trimEnd()]);
  return undefined;
}

/** A program whose output a run passes on writes it in pieces, which may split a secret. */
function piecesOf(run: Run, stream: 'stdout' | 'stderr'): Pieces {
  run.prints ??= {};
  run.prints[stream] ??= new Pieces(() => run.secrets ?? []);
  return run.prints[stream];
}

function openSocket(): Socket {
  const reader = new LineReader(Number.POSITIVE_INFINITY);
  const opened = new Socket({
    fd: socketFd,
    readable: true,
    writable: true,
    onread: {
      buffer: Buffer.allocUnsafe(readBytes),
      callback: (bytes, buffer) => {
        // Until now it has waited for the parent.
        toldAt = performance.now();
        for (const line of reader.take(Buffer.from(buffer.buffer, buffer.byteOffset, bytes)))
          onLine(line);
        return true;
      },
    },
  });
  for (const event of ['end', 'close', 'error']) opened.on(event, endProcess);
  return opened.resume();
}

/** Waits for the parent's plan. */
async function loadWhenPlanned(): Promise<void> {
  await prepareLoad(settings.skillsDirs);
  await loadByPlan(loading, await planned.promise);
}

async function load(): Promise<void> {
  try {
    if (settings.isPrepared) await loadWhenPlanned();
    else if (settings.isFirst) await loadFirst(loading);
    else await loadAgain(loading);
    outbox.push('["ready"]');
    outbox.flush();
    // A child is killed rather than left to end, so it stores what it has compiled now.
    setImmediate(flushCompileCache);
    if (settings.inspectPort !== null) openInspector(settings.inspectPort);
    compactHeapSoon();
  } catch (error) {
    const isLoadError = error instanceof SkillLoadError;
    const { message, stack } = describeFailure(error);
    send(outbox, [
      'refused',
      isLoadError ? error.file : '',
      isLoadError ? message : (stack ?? message),
    ]);
  }
}

/** New lines wait until the parent has read the earlier messages. */
function onLine(line: string): void {
  if (isHeld) backlog.push(line);
  else takeLine(line);
}

function takeLine(line: string): void {
  const messages = parseLine(line);
  if (socket.writableLength === 0) dispatchAll(messages);
  else holdUntilWritten(messages);
}

function holdUntilWritten(messages: ParentMessage[]): void {
  isHeld = true;
  socket.write('[]\n', () => {
    isHeld = false;
    dispatchAll(messages);
    while (!isHeld && backlog.length > 0) takeLine(backlog.shift() ?? '[]');
  });
}

function dispatchAll(messages: ParentMessage[]): void {
  let answers: Answer[] | undefined;
  for (const message of messages) {
    if (!isAnswer(message)) dispatch(message);
    else if (answers === undefined) answers = [message];
    else answers.push(message);
  }
  mark.rest();
  if (answers !== undefined) answered(answers);
}

function parseLine(line: string): ParentMessage[] {
  try {
    return JSON.parse(line) as ParentMessage[];
  } catch (error) {
    // A run's input was not JSON, and the line cannot be parsed to find the run.
    process.stderr.write(`executor: a line that is no JSON: ${String(error)}\n`);
    return endProcess();
  }
}

/** Whether the parent is to be told that this process is alive; true once. */
function isLate(): boolean {
  const now = performance.now();
  if (now - toldAt <= aliveMs) return false;
  toldAt = now;
  return true;
}

function dispatch(message: ParentMessage): void {
  if (isLate()) send(outbox, ['alive']);
  switch (message[0]) {
    case 'run':
      mark.begin(message[1], message[2]);
      runs.start(message[1], message[2], message[3], message[4], message[5]);
      break;
    case 'abort':
      runs.abort(message[1], message[2], message[3]);
      break;
    case 'suspend':
      runs.suspend(message[1], message[2]);
      break;
    case 'answer':
      runs.answer(message[1], message[2], message[3]);
      break;
    case 'refuse':
      runs.refuse(message[1], message[2], message[3]);
      break;
    case 'load':
      planned.resolve(message[1]);
      break;
    case 'ping':
      send(outbox, ['pong', message[1], settings.reportsMemory ? process.memoryUsage.rss() : 0]);
      break;
  }
}
