/** The bus between processes: publish and subscribe in Redis, on a connection of its own. */
import { randomUUID } from 'node:crypto';
import type { Bus, Channel } from '../kernel/bus.ts';
import type { Redis } from './redis.ts';

/** Wait for the server to say that a subscription holds. */
const readyMs = 1_000;
/** Between two looks whether a silent connection is still one. */
const lookEveryMs = 2_000;
/** Tells that the sender may have failed to send something. */
const missed = '';

export function createRedisBus(redis: Redis): Bus {
  const self = randomUUID();
  // Messages know no database numbers, by which the platforms are told apart that share a server.
  const prefix = `skillwright:${redis.commands.options.db ?? 0}:`;
  const subscriber = redis.connection();
  const listeners = new Map<Channel, Set<(message: string) => void>>();
  const onMissed = new Set<() => void>();
  let isConnected = false;

  const tellMissed = () => {
    for (const listener of onMissed) listener();
  };
  subscriber.on('ready', () => {
    isConnected = true;
    tellMissed();
  });
  subscriber.on('close', () => {
    isConnected = false;
  });
  subscriber.on('message', (name: string, text: string) => {
    const [sender, message] = parted(text);
    if (sender === self) return;
    if (message === missed) tellMissed();
    else
      for (const hear of listeners.get(name.slice(prefix.length) as Channel) ?? []) hear(message);
  });
  // Its timeout for silence counts only while something is asked.
  const looking = setInterval(() => {
    if (subscriber.status === 'ready') subscriber.ping().catch(() => {});
  }, lookEveryMs).unref();
  subscriber.once('end', () => clearInterval(looking));
  redis.onReconnect(() => {
    for (const channel of ['jobs', 'cancellations'] as const) send(channel, missed);
  });

  function send(channel: Channel, message: string): void {
    if (!redis.isConnected()) return;
    redis.commands.publish(prefix + channel, `${self} ${message}`).catch(() => {});
  }

  async function subscribed(channel: Channel): Promise<void> {
    if (subscriber.status !== 'ready') {
      // Subscribed as soon as there is a connection; until then `isConnected` says what is missing.
      subscriber.subscribe(prefix + channel).catch(() => {});
      return;
    }
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, readyMs);
    await Promise.race([subscriber.subscribe(prefix + channel), late.promise]).catch(() => {});
    clearTimeout(timer);
  }

  return {
    send,
    listen(channel, listener) {
      const hearing = listeners.get(channel) ?? new Set();
      listeners.set(channel, hearing);
      hearing.add(listener);
      return {
        ready: subscribed(channel),
        stop() {
          hearing.delete(listener);
          if (hearing.size === 0) subscriber.unsubscribe(prefix + channel).catch(() => {});
        },
      };
    },
    onMissed: (listener) => void onMissed.add(listener),
    isConnected: () => isConnected,
  };
}

function parted(text: string): [sender: string, message: string] {
  const at = text.indexOf(' ');
  return [text.slice(0, at), text.slice(at + 1)];
}
