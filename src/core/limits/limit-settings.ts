/**
 * The limits and pauses that operators set: how many places a gate has, none while it is paused. Each process knows all of
 * them: its own changes at once, those of another one within seconds, or where a row shows them.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { Context } from '../context/context.ts';
import { isOfAgent, limitOfAgent, pauseOfAgent } from './limit-names.ts';
import {
  forgetSetting,
  listSettings,
  putSetting,
  stateOfSettings,
} from './limit-settings.store.ts';

/** Settings of the agents of one organization: each process keeps all of them. */
const agentSettingsMax = 1_000;

export class LimitSettings {
  readonly #context: Context;
  #byName: ReadonlyMap<string, number> = new Map();
  /** The state that was read last. */
  #known = '';
  /** Changes of this process. */
  #changes = 0;

  constructor(context: Context) {
    this.#context = context;
    context.bus?.listen('gates', () => void this.refresh().catch(() => {}));
  }

  /** How many places gates have. */
  get byName(): ReadonlyMap<string, number> {
    return this.#byName;
  }

  /** Reads the changes of other processes. */
  async refresh(): Promise<void> {
    const { read } = this.#context.database;
    const changes = this.#changes;
    const state = JSON.stringify(await stateOfSettings(read, {}));
    if (state === this.#known) return;
    const rows = await listSettings(read, {});
    // The rows may be from before a change that was made here meanwhile; the next refresh reads them again.
    if (changes !== this.#changes) return;
    this.#byName = new Map(rows.map(({ name, places }) => [name, places]));
    this.#known = state;
  }

  /** Reads the changes of other processes where a limit is not as its row says: the one of a new key, before its first job. */
  async follow(name: string, places: number): Promise<void> {
    if (this.#byName.get(name) !== places) await this.refresh();
  }

  /** `409 conflict` for a further limit or pause of an agent where those of the organization have the most. */
  requireRoomForAgent(organizationId: string, wanted: string): void {
    if (this.#byName.has(wanted)) return;
    const names = [...this.#byName.keys()].filter((name) => isOfAgent(organizationId, name));
    if (names.length < agentSettingsMax) return;
    const message = `The agents of the organization have ${agentSettingsMax} limits and pauses: remove one`;
    throw new PlatformError('conflict', message);
  }

  /** Sets how many places a gate has, null for any number. */
  async set(name: string, places: number | null): Promise<void> {
    await this.#context.database.write((tx) => this.setWithin(tx, name, places));
  }

  /** The same in the caller's transaction. */
  async setWithin(tx: Transaction, name: string, places: number | null): Promise<void> {
    const { clock, bus } = this.#context;
    if (places === null) await forgetSetting(tx, name);
    else await putSetting(tx, { name, places, updated_at: clock.now() });
    tx.afterCommit(() => {
      const byName = new Map(this.#byName);
      if (places === null) byName.delete(name);
      else byName.set(name, places);
      this.#byName = byName;
      this.#changes += 1;
      this.#known = '';
      bus?.send('gates', name);
    });
  }

  /** A later agent with the same id does not inherit the limit and the pause; the sweep lets go what was held. */
  async forgetAgent(tx: Transaction, organizationId: string, agentId: string): Promise<void> {
    await this.setWithin(tx, pauseOfAgent(organizationId, agentId), null);
    await this.setWithin(tx, limitOfAgent(organizationId, agentId), null);
  }
}
