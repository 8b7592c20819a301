/**
 * Lanes limit how many deliveries run at the same time. Each host has its own lane with a few slots,
 * fewer while the host answers slowly, so that a slow receiver delays only itself. Half of all slots are
 * reserved for hosts whose last answers were quick, so that other hosts, however many, cannot hold all
 * of them. A delivery without a slot waits in its lane. When the lane is full as well, the delivery is
 * refused, and the sweep finds it again. Lanes take turns. Their state is lost at a restart.
 */
import { bind } from '../../kernel/bind.ts';

/** Slots of one host. */
export const hostSlotsMax = 20;
/** Slower answers count as slow. */
export const quickMs = 2_000;
/** Slots of a slow host. */
const slowSlotsMax = 2;
/** A host is slow after this many deliveries in a row without a quick answer. */
const slowAfter = 3;
/**
 * A host is quick after this many quick answers in a row. As many as it has slots, so that a host that
 * answers quickly only now and then stays slow.
 */
const quickAfter = hostSlotsMax;
/** Slots of all hosts together. */
const slotsMax = 500;
/** Slots for hosts that are not quick, and of those the slots for slow hosts; the rest is for new ones. */
const notQuickMax = 250;
const slowMax = 125;
/** Deliveries that wait for a slot, in one lane and in all. */
const laneWaitingMax = 1_000;
const waitingMax = 20_000;
/** Lanes in memory. Above it, the oldest lane without deliveries is dropped. */
const rememberedMax = 10_000;

/** Whether the host answered a delivery quickly, with any status; null when nothing was sent. */
export type WasQuick = boolean | null;

/** How fast a host answers, in the order in which lanes get a free slot. */
const speeds = ['slow', 'new', 'quick'] as const;
type HostSpeed = (typeof speeds)[number];

export type Lanes = ReturnType<typeof createLanes>;

interface Lane {
  readonly host: string;
  /** In order of arrival. */
  readonly waiting: Set<string>;
  readonly running: Set<string>;
  /** How many of the last deliveries in a row were not answered quickly, and how many were. */
  slowStreak: number;
  quickStreak: number;
}

interface LaneState {
  /** Carries out one delivery; never rejects. */
  readonly deliver: (id: string) => Promise<WasQuick>;
  /** By host. */
  readonly lanes: Map<string, Lane>;
  /** Lanes that can start a delivery, in the order of their turns. */
  readonly ready: Readonly<Record<HostSpeed, Set<Lane>>>;
  /** Running deliveries, by the speed of their host when they started. */
  readonly running: Record<HostSpeed, number>;
  waiting: number;
  isStopped: boolean;
  onIdle: (() => void) | null;
}

/** `deliver` carries out one delivery, and never rejects. */
export function createLanes(deliver: (id: string) => Promise<WasQuick>) {
  const state: LaneState = {
    deliver,
    lanes: new Map(),
    ready: { slow: new Set(), new: new Set(), quick: new Set() },
    running: { slow: 0, new: 0, quick: 0 },
    waiting: 0,
    isStopped: false,
    onIdle: null,
  };
  return bind(state, { add, full, stop });
}

/** Adds a delivery; ignores one that is waiting or running. False when there is no room. */
function add(state: LaneState, host: string, id: string): boolean {
  if (state.isStopped || state.waiting >= waitingMax) return false;
  const lane = laneOf(state, host);
  if (lane.running.has(id) || lane.waiting.has(id)) return true;
  if (lane.waiting.size >= laneWaitingMax) return false;
  lane.waiting.add(id);
  state.waiting++;
  enqueue(state, lane);
  startAll(state);
  return true;
}

function laneOf({ lanes }: LaneState, host: string): Lane {
  let lane = lanes.get(host);
  if (lane === undefined) {
    lane = { host, waiting: new Set(), running: new Set(), slowStreak: 0, quickStreak: 0 };
    lanes.set(host, lane);
    if (lanes.size > rememberedMax) dropIdleLane(lanes);
  }
  return lane;
}

/** Drops the oldest lane without deliveries. */
function dropIdleLane(lanes: Map<string, Lane>): void {
  for (const lane of lanes.values()) {
    if (!isIdle(lane)) continue;
    lanes.delete(lane.host);
    return;
  }
}

/** Queues a lane for its turn when it has a waiting delivery and a free slot. */
function enqueue({ ready }: LaneState, lane: Lane): void {
  const speed = speedOf(lane);
  const slots = speed === 'slow' ? slowSlotsMax : hostSlotsMax;
  if (lane.waiting.size === 0 || lane.running.size >= slots) return;
  ready[speed].add(lane);
}

function startAll(state: LaneState): void {
  for (let lane = nextLane(state); lane !== undefined; lane = nextLane(state)) {
    start(state, lane);
    enqueue(state, lane);
  }
}

/** Removes and returns the lane whose turn it is. */
function nextLane({ ready, running }: LaneState): Lane | undefined {
  for (const speed of speeds) {
    const [lane] = isSlotFree(running, speed) ? ready[speed] : [];
    if (lane === undefined) continue;
    ready[speed].delete(lane);
    return lane;
  }
  return undefined;
}

function isSlotFree(running: LaneState['running'], speed: HostSpeed): boolean {
  if (total(running) >= slotsMax) return false;
  if (speed === 'quick') return true;
  if (speed === 'slow' && running.slow >= slowMax) return false;
  return running.slow + running.new < notQuickMax;
}

function total({ slow, new: unknown, quick }: LaneState['running']): number {
  return slow + unknown + quick;
}

function start(state: LaneState, lane: Lane): void {
  const [id] = lane.waiting;
  if (id === undefined) return;
  const speed = speedOf(lane);
  lane.waiting.delete(id);
  lane.running.add(id);
  state.waiting--;
  state.running[speed]++;
  void state.deliver(id).then((wasQuick) => end(state, lane, id, speed, wasQuick));
}

function end(
  state: LaneState,
  lane: Lane,
  id: string,
  startedAs: HostSpeed,
  wasQuick: WasQuick,
): void {
  const { lanes, running } = state;
  lane.running.delete(id);
  running[startedAs]--;
  if (wasQuick !== null) recordAnswer(state, lane, wasQuick);
  if (isIdle(lane) && lane.slowStreak === 0 && lane.quickStreak === 0) lanes.delete(lane.host);
  enqueue(state, lane);
  startAll(state);
  if (total(running) === 0) state.onIdle?.();
}

function recordAnswer({ ready }: LaneState, lane: Lane, wasQuick: boolean): void {
  lane.slowStreak = wasQuick ? 0 : lane.slowStreak + 1;
  lane.quickStreak = wasQuick ? lane.quickStreak + 1 : 0;
  for (const speed of speeds) ready[speed].delete(lane);
}

/** Hosts whose lanes are at least half full. */
function full({ lanes }: LaneState): string[] {
  const filled = [...lanes.values()].filter(({ waiting }) => waiting.size >= laneWaitingMax / 2);
  return filled.map(({ host }) => host);
}

/** Starts no more and drops the waiting deliveries; resolves when the running ones have ended. */
function stop(state: LaneState): Promise<void> {
  const { ready, lanes, running } = state;
  state.isStopped = true;
  for (const speed of speeds) ready[speed].clear();
  for (const lane of lanes.values()) lane.waiting.clear();
  state.waiting = 0;
  if (total(running) === 0) return Promise.resolve();
  return new Promise((resolve) => {
    state.onIdle = resolve;
  });
}

function speedOf({ slowStreak, quickStreak }: Lane): HostSpeed {
  if (slowStreak >= slowAfter) return 'slow';
  return quickStreak >= quickAfter ? 'quick' : 'new';
}

function isIdle(lane: Lane): boolean {
  return lane.waiting.size === 0 && lane.running.size === 0;
}
