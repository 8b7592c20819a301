/** The bus over publish and subscribe of Redis, with a separate connection for subscriptions. */
import { randomUUID } from 'node:crypto';
import { type Bus, type Channel, channels } from '../../kernel/bus.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import type { Client, Redis } from './redis.ts';

/** How long `ready` waits for the confirmation of a subscription. */
const readyMs = 1_000;
/** Interval of pings that detect a dead connection. */
const pingEveryMs = 2_000;
/** The message of a sender that may have failed to send earlier ones. */
const missed = '';

export function createRedisBus(redis: Redis): Bus {
  const self = randomUUID();
  // Channels are not separated by database number, so the prefix separates platforms on one server.
  const prefix = `skillwright:${redis.commands.options.db ?? 0}:`;
  const subscriber = redis.connection();
  const listeners = new Map<Channel, Set<(message: string) => void>>();
  const onMissed = new Set<() => void>();
  let isConnected = false;

  const reportMissed = () => {
    for (const listener of onMissed) listener();
  };
  subscriber.on('ready', () => {
    isConnected = true;
    reportMissed();
  });
  subscriber.on('close', () => {
    isConnected = false;
  });
  subscriber.on('message', (name: string, text: string) => {
    const [sender, message] = splitMessage(text);
    if (sender === self) return;
    if (message === missed) reportMissed();
    else
      for (const listener of listeners.get(name.slice(prefix.length) as Channel) ?? [])
        listener(message);
  });
  pingRegularly(subscriber);
  redis.onReconnect(() => {
    for (const channel of channels) send(channel, missed);
  });

  function send(channel: Channel, message: string): void {
    if (!redis.isConnected()) return;
    redis.commands.publish(prefix + channel, `${self} ${message}`).catch(() => {});
  }

  async function subscribed(channel: Channel): Promise<void> {
    if (subscriber.status !== 'ready') {
      // The client subscribes as soon as it is connected; until then `isConnected` is false.
      subscriber.subscribe(prefix + channel).catch(() => {});
      return;
    }
    await withDeadline(subscriber.subscribe(prefix + channel), readyMs).catch(() => {});
  }

  return {
    send,
    listen(channel, listener) {
      const channelListeners = listeners.get(channel) ?? new Set();
      listeners.set(channel, channelListeners);
      channelListeners.add(listener);
      return {
        ready: subscribed(channel),
        stop() {
          channelListeners.delete(listener);
          if (channelListeners.size === 0) subscriber.unsubscribe(prefix + channel).catch(() => {});
        },
      };
    },
    onMissed: (listener) => void onMissed.add(listener),
    isConnected: () => isConnected,
  };
}

/** The socket timeout only runs while a command is pending, so a ping starts it. */
function pingRegularly(subscriber: Client): void {
  const pinging = setInterval(() => {
    if (subscriber.status === 'ready') subscriber.ping().catch(() => {});
  }, pingEveryMs).unref();
  subscriber.once('end', () => clearInterval(pinging));
}

function splitMessage(text: string): [sender: string, message: string] {
  const at = text.indexOf(' ');
  return [text.slice(0, at), text.slice(at + 1)];
}
