/**
 * The limits and pauses that operators set: how many places a gate has, none while it is paused. Each process knows all of
 * them: its own changes at once, those of another one within seconds.
 */
import { PlatformError } from '../../kernel/errors.ts';
import type { Context } from '../context/context.ts';
import { forgetSetting, listSettings, putSetting, stateOfSettings } from './gate-settings.store.ts';
import { type Gate, type GatedWork, settableGates } from './gates.ts';

/** Settings of all organizations together. */
const settingsMax = 10_000;
const noGates: readonly Gate[] = [];

export class GateSettings {
  readonly #context: Context;
  #byName: ReadonlyMap<string, number> = new Map();
  /** The state that was read last. */
  #known = '';

  constructor(context: Context) {
    this.#context = context;
    context.bus?.listen('gates', () => void this.refresh().catch(() => {}));
  }

  /** How many places gates have. */
  get byName(): ReadonlyMap<string, number> {
    return this.#byName;
  }

  /** The gates of work that are set. */
  gatesOf(work: GatedWork): readonly Gate[] {
    const byName = this.#byName;
    if (byName.size === 0) return noGates;
    return settableGates(work).flatMap((name) => {
      const limit = byName.get(name);
      return limit === undefined ? [] : [{ name, limit }];
    });
  }

  /** Reads the changes of other processes. */
  async refresh(): Promise<void> {
    const { read } = this.#context.database;
    const state = JSON.stringify(await stateOfSettings(read, {}));
    if (state === this.#known) return;
    const rows = await listSettings(read, {});
    this.#byName = new Map(rows.map(({ name, places }) => [name, places]));
    this.#known = state;
  }

  /** Sets how many places a gate has, null for any number; `409 conflict` where too many gates are set. */
  async set(name: string, places: number | null): Promise<void> {
    const { database, clock, bus } = this.#context;
    if (places !== null && !this.#byName.has(name) && this.#byName.size >= settingsMax) {
      throw new PlatformError('conflict', `${settingsMax} limits and pauses are set: remove one`);
    }
    await database.write((tx) =>
      places === null
        ? forgetSetting(tx, name)
        : putSetting(tx, { name, places, updated_at: clock.now() }),
    );
    this.#known = '';
    await this.refresh();
    bus?.send('gates', name);
  }
}
