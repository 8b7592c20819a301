import { newId } from '../../kernel/ids.ts';
import type { Redis } from './redis.ts';

/** A key with an expiry, held by one process; it lapses by itself, and only its holder renews and removes it. */
export class RedisLock {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #ms: number;
  readonly #token = newId();

  /** `ms` is the time after which the lock of a process that has died is free. */
  constructor(redis: Redis, key: string, ms: number) {
    this.#redis = redis;
    this.#key = key;
    this.#ms = ms;
  }

  async acquire(): Promise<boolean> {
    const { commands } = this.#redis;
    return (await commands.set(this.#key, this.#token, 'PX', this.#ms, 'NX')) === 'OK';
  }

  /** To be called well within the time of the lock. */
  async renew(): Promise<void> {
    await this.#ifMine(`redis.call('pexpire', KEYS[1], ARGV[2])`);
  }

  async release(): Promise<void> {
    await this.#ifMine(`redis.call('del', KEYS[1])`);
  }

  async #ifMine(command: string): Promise<void> {
    const script = `if redis.call('get', KEYS[1]) == ARGV[1] then return ${command} end`;
    await this.#redis.commands.eval(script, 1, this.#key, this.#token, this.#ms);
  }
}
