/**
 * The runs in flight of one executor: their deadlines, what they are told at them, the grace that
 * follows, and what an ending means after that. Charges a deadline to a run only when the child's
 * event loop answered or nobody else's code had begun, and gives back what others took of its time;
 * whether the executor has to die for it is the executor's decision.
 */
import type { Clock } from '../kernel/clock.ts';
import { type Ending, type Flight, type Order, timeoutMessage } from './flight.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { RunOutcome } from './run.ts';

/** Milliseconds without an answer after which a child counts as held up. */
const HELD_UP_MS = 100;

/** The way to the child. */
export interface Channel {
  /** Puts a message, as JSON text, into the next line. */
  push(message: string): void;
  /** Writes what is gathered at once, and a line with nothing but a ping after it. */
  flushAndPing(): void;
}

export interface Flights {
  readonly size: number;
  /** Sends a run to the child. */
  board(order: Order): Flight;
  get(id: number): Flight | undefined;
  all(): Flight[];
  /** Asks a run to stop; what it says next is its end, or the grace is. */
  abort(flight: Flight, reason: string): void;
  /** The run has ended by itself, as the child says. */
  land(flight: Flight, outcome: RunOutcome): void;
  /** Settles a run whatever the child says of it. */
  remove(flight: Flight, outcome: RunOutcome): void;
  /** The child has answered a ping. */
  heard(): void;
  /** Some run is past its deadline, or was aborted, and has not ended. */
  hasEndings(): boolean;
}

interface Probe {
  readonly ping: number;
  /** Since when the child has been silent, as the clock tells it. */
  readonly since: number;
  readonly hadBegun: boolean;
}

export function createFlights(parts: {
  channel: Channel;
  heartbeat: Heartbeat;
  clock: Clock;
  graceMs: number;
  /** False while a debugger may hold the runs: then none is ever told that its time is up. */
  hasDeadlines: boolean;
  /** The grace is over and the run is to blame. */
  onOverdue: (flight: Flight) => void;
}): Flights {
  const { channel, heartbeat, clock, graceMs, hasDeadlines, onOverdue } = parts;
  const flights = new Map<number, Flight>();
  /** Those who were told to end. */
  const endings = new Map<Flight, Ending>();
  /** Those whose deadline has come, and who wait to hear whether the child answers. */
  const probes = new Map<Flight, Probe>();
  let nextId = 1;

  function expire(flight: Flight): void {
    flight.timer = undefined;
    // What the child has said meanwhile is read before the timer's word counts.
    setImmediate(() => {
      if (!flights.has(flight.id) || flight.ending !== undefined) return;
      if (isOnlyBegun(flight) || flight.extraMs >= flight.order.request.timeoutMs) endTime(flight);
      else probe(flight);
    });
  }

  /** Asks whether the child answers: a neighbour may have held up the run, or its begin. */
  function probe(flight: Flight): void {
    probes.set(flight, {
      ping: heartbeat.upcoming,
      since: clock.monotonic() - heartbeat.silentMs(),
      hadBegun: heartbeat.hasAnswered(flight.ping),
    });
    channel.flushAndPing();
  }

  /** The child has answered: in good time, or what others took of the run's is given back. */
  function endProbe(flight: Flight, { since, hadBegun }: Probe): void {
    probes.delete(flight);
    if (flight.ending !== undefined) return;
    const silence = clock.monotonic() - since;
    if (silence < HELD_UP_MS && hadBegun) {
      endTime(flight);
      return;
    }
    const { timeoutMs } = flight.order.request;
    const ms = hadBegun ? Math.min(silence, timeoutMs) : timeoutMs;
    flight.extraMs += ms;
    flight.timer = setTimeout(expire, ms, flight);
  }

  function endTime(flight: Flight): void {
    tell(flight, 'timeout', 'TimeoutError', timeoutMessage(flight.order.request));
  }

  function tell(flight: Flight, cause: Ending['cause'], name: string, reason: string): void {
    clearTimeout(flight.timer);
    const ending: Ending = {
      cause,
      ping: heartbeat.upcoming,
      isOnly: isOnlyBegun(flight),
      toldAt: undefined,
      isOverdue: false,
    };
    flight.ending = ending;
    endings.set(flight, ending);
    flight.asking?.abort();
    channel.push(JSON.stringify(['abort', flight.id, name, reason]));
    channel.flushAndPing();
    startGrace(flight, ending, graceMs);
  }

  function startGrace(flight: Flight, ending: Ending, ms: number): void {
    flight.timer = setTimeout(() => {
      flight.timer = undefined;
      // As above.
      setImmediate(endGrace, flight, ending);
    }, ms);
  }

  function endGrace(flight: Flight, ending: Ending): void {
    if (!endings.has(flight) || flight.timer !== undefined) return;
    if (ending.toldAt === undefined) {
      // It has not been told yet. Whose doing that is can only be said of one that was and is on its
      // own; otherwise the grace begins when it is told, and the watch ends a child that never answers.
      if (!ending.isOnly || !isOnlyBegun(flight)) return;
    } else {
      const left = ending.toldAt + graceMs - clock.monotonic();
      if (left > 1) {
        startGrace(flight, ending, left);
        return;
      }
    }
    ending.isOverdue = true;
    onOverdue(flight);
  }

  /** Its code may have begun, and nobody else's. */
  function isOnlyBegun(flight: Flight): boolean {
    if (!heartbeat.hasAnswered(flight.ping)) return false;
    for (const other of flights.values()) {
      if (other !== flight && heartbeat.hasAnswered(other.ping)) return false;
    }
    return true;
  }

  function remove(flight: Flight, outcome: RunOutcome): void {
    if (!flights.delete(flight.id)) return;
    clearTimeout(flight.timer);
    endings.delete(flight);
    probes.delete(flight);
    flight.asking?.abort();
    flight.order.settle(outcome);
  }

  return {
    get size() {
      return flights.size;
    },

    board(order) {
      const { request } = order;
      const flight: Flight = {
        id: nextId++,
        order,
        ping: heartbeat.upcoming,
        startedAt: clock.now(),
        ending: undefined,
        timer: undefined,
        extraMs: 0,
        logLines: 0,
        messages: 0,
        asks: 0,
        asking: undefined,
      };
      flights.set(flight.id, flight);
      if (hasDeadlines) flight.timer = setTimeout(expire, request.timeoutMs, flight);
      channel.push(runMessage(flight));
      return flight;
    },

    get: (id) => flights.get(id),
    all: () => [...flights.values()],

    abort(flight, reason) {
      if (!flights.has(flight.id) || flight.ending !== undefined) return;
      tell(flight, 'abort', 'AbortError', reason);
    },

    land(flight, outcome) {
      const { ending } = flight;
      if (ending === undefined) {
        remove(flight, outcome);
        return;
      }
      // Said before it was told: it ended of itself, and only the way to us took longer. But one
      // that kept the child from listening, all alone, was late by its own doing.
      const wasTold = heartbeat.hasAnswered(ending.ping);
      if (!wasTold && !(ending.isOnly && ending.cause === 'timeout')) remove(flight, outcome);
      // What it did is done, whether or not somebody still wanted it.
      else if (ending.cause === 'abort' && outcome.kind === 'completed') remove(flight, outcome);
      else if (ending.cause === 'abort') remove(flight, { kind: 'aborted' });
      else remove(flight, { kind: 'timeout', message: timeoutMessage(flight.order.request) });
    },

    remove,

    heard() {
      for (const [flight, probing] of probes) {
        if (heartbeat.hasAnswered(probing.ping)) endProbe(flight, probing);
      }
      for (const [flight, ending] of endings) {
        if (ending.toldAt !== undefined || !heartbeat.hasAnswered(ending.ping + 1)) continue;
        ending.toldAt = clock.monotonic();
        if (flight.timer === undefined) startGrace(flight, ending, graceMs);
      }
    },

    hasEndings: () => endings.size > 0,
  };
}

function runMessage({ id, order }: Flight): string {
  const { skill, context, input } = order.request;
  const tuple = [
    context.jobId,
    context.agentId,
    context.conversationId,
    context.organizationId,
    context.attempt,
  ];
  // Between the tokens of JSON a line break is only space; within strings it is always escaped.
  const line = input.includes('\n') ? input.replaceAll('\n', ' ') : input;
  return `["run",${id},${JSON.stringify(skill)},${JSON.stringify(tuple)},${line}]`;
}
