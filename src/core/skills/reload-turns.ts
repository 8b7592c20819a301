/**
 * Reloads of all processes of a platform: one process after the other, led by the one that was asked. A
 * process that refuses ends the reload, so a fault is met by the first and leaves all others as they were.
 * Promises that one process leads at a time, and that it goes on within seconds when another does not answer.
 * Messages may be lost: a process that does not answer counts as refused, and nothing waits for it.
 */
import type { Bus } from '../../kernel/bus.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import {
  noReload,
  type ReloadResult,
  type ReloadState,
  type ReloadTrigger,
  type SkillFault,
} from './reload.schemas.ts';
import type { Reload } from './reload.ts';

/** Milliseconds between two signs of a process that it is reloading. */
const signEveryMs = 1_000;
/** Milliseconds without a sign after which the leader gives a process up. */
const silentMs = 10_000;

/** The right to lead a reload, held by one process; it lapses by itself. */
export interface ReloadLock {
  acquire(): Promise<boolean>;
  /** To be called at least every ten seconds. */
  renew(): Promise<void>;
  release(): Promise<void>;
}

export interface ReloadTurnsDeps {
  /** This process. */
  readonly id: string;
  /** Null in a process that runs no skills. */
  readonly reload: Reload | null;
  /** What does not load of the skills that this process has. */
  faults(): SkillFault[];
  readonly clock: Clock;
  /** Null where the platform is one process. */
  readonly cluster: {
    readonly bus: Bus;
    readonly lock: ReloadLock;
    /** The live processes that run skills. */
    workers(): Promise<readonly string[]>;
  } | null;
}

type Message =
  | { readonly kind: 'turn'; readonly turn: string; readonly process: string }
  | { readonly kind: 'working'; readonly turn: string }
  | { readonly kind: 'result'; readonly turn: string; readonly result: ReloadResult }
  | { readonly kind: 'state'; readonly state: ReloadState };

interface State extends ReloadTurnsDeps {
  last: ReloadState;
  /** The turns that this process has given away. */
  readonly turns: Map<string, { sign(): void; end(result: ReloadResult): void }>;
}

export interface Reloads {
  /** Reloads all processes; `409 conflict` while another process leads a reload. Never rejects otherwise. */
  reloadAll(trigger: ReloadTrigger): Promise<ReloadState>;
  /** Reloads this process alone. */
  reloadHere(trigger: ReloadTrigger): Promise<ReloadState>;
  last(): ReloadState;
  stop(): void;
}

export function createReloads(deps: ReloadTurnsDeps): Reloads {
  const state: State = { ...deps, last: { ...noReload, faults: deps.faults() }, turns: new Map() };
  const listening = deps.cluster?.bus.listen('reloads', (text) => take(state, text));
  return {
    reloadAll: (trigger) => reloadAll(state, trigger),
    reloadHere: (trigger) => reloadThese(state, trigger, [deps.id]),
    last: () => state.last,
    stop: () => listening?.stop(),
  };
}

async function reloadAll(state: State, trigger: ReloadTrigger): Promise<ReloadState> {
  const { cluster, id } = state;
  if (cluster === null) return reloadThese(state, trigger, [id]);
  if (!(await cluster.lock.acquire())) {
    throw new PlatformError('conflict', 'Another process leads a reload of the skills already');
  }
  const renewing = setInterval(() => void cluster.lock.renew().catch(() => {}), signEveryMs);
  try {
    return await reloadThese(state, trigger, await cluster.workers());
  } finally {
    clearInterval(renewing);
    await cluster.lock.release().catch(() => {});
  }
}

/** One process after the other, until one refuses. */
async function reloadThese(
  state: State,
  trigger: ReloadTrigger,
  ids: readonly string[],
): Promise<ReloadState> {
  const started_at = timestamp(state.clock.now());
  publish(state, {
    ...noReload,
    faults: state.last.faults,
    status: 'running',
    trigger,
    started_at,
  });
  const processes: ReloadState['processes'] = [];
  let first: ReloadResult | undefined;
  for (const id of ids) {
    const result = await reloadOne(state, trigger, id);
    const { status, reason } = result;
    processes.push({ id, status, reason });
    if (status === 'refused') {
      return publish(state, { ...result, started_at, processes });
    }
    first ??= result;
  }
  if (first === undefined) {
    const ended_at = timestamp(state.clock.now());
    const reason = 'no process that runs skills is live';
    const outcome = { status: 'refused', trigger, started_at, ended_at, reason } as const;
    return publish(state, { ...noReload, faults: state.last.faults, ...outcome });
  }
  const ended_at = timestamp(state.clock.now());
  return publish(state, { ...first, started_at, ended_at, processes });
}

/** Remembers the state, and tells the other processes. */
function publish(state: State, last: ReloadState): ReloadState {
  state.last = last;
  send(state, { kind: 'state', state: last });
  return last;
}

function send({ cluster }: State, message: Message): void {
  cluster?.bus.send('reloads', JSON.stringify(message));
}

async function reloadOne(state: State, trigger: ReloadTrigger, id: string): Promise<ReloadResult> {
  const { reload } = state;
  if (id !== state.id) return giveTurn(state, trigger, id);
  if (reload === null)
    return refused(state, trigger, 'this process runs no skills: ROLES has no worker');
  return reload(trigger);
}

/** Waits for another process for as long as it gives signs. */
async function giveTurn(state: State, trigger: ReloadTrigger, id: string): Promise<ReloadResult> {
  const { promise, resolve } = Promise.withResolvers<ReloadResult>();
  const turn = newId();
  const giveUp = () => resolve(refused(state, trigger, `the process ${id} does not answer`));
  let timer = setTimeout(giveUp, silentMs);
  state.turns.set(turn, {
    sign() {
      clearTimeout(timer);
      timer = setTimeout(giveUp, silentMs);
    },
    end: resolve,
  });
  send(state, { kind: 'turn', turn, process: id });
  try {
    return { ...(await promise), trigger };
  } finally {
    clearTimeout(timer);
    state.turns.delete(turn);
  }
}

function refused({ clock, last }: State, trigger: ReloadTrigger, reason: string): ReloadResult {
  const now = timestamp(clock.now());
  const { added, changed, removed, file, line, column, differences } = noReload;
  const faults = { file, line, column, differences, faults: last.faults };
  const facts = { added, changed, removed, ...faults };
  return { ...facts, status: 'refused', trigger, started_at: now, ended_at: now, reason };
}

function take(state: State, text: string): void {
  const message = JSON.parse(text) as Message;
  switch (message.kind) {
    case 'turn':
      if (message.process === state.id) void takeTurn(state, message.turn);
      break;
    case 'working':
      state.turns.get(message.turn)?.sign();
      break;
    case 'result':
      state.turns.get(message.turn)?.end(message.result);
      break;
    case 'state':
      state.last = message.state;
  }
}

async function takeTurn(state: State, turn: string): Promise<void> {
  send(state, { kind: 'working', turn });
  const signs = setInterval(() => send(state, { kind: 'working', turn }), signEveryMs);
  try {
    const result = await reloadOne(state, 'request', state.id);
    send(state, { kind: 'result', turn, result });
  } finally {
    clearInterval(signs);
  }
}
