/**
 * The limits and pauses that operators set: how many places a gate has, none while it is paused. Each process knows all of
 * them: its own changes at once, those of another one within seconds.
 */
import { PlatformError } from '../../../kernel/errors.ts';
import type { AgentDependent } from '../../agents/agents.ts';
import type { Context } from '../../context/context.ts';
import { forgetSetting, listSettings, putSetting, stateOfSettings } from './gate-settings.store.ts';
import {
  type Gate,
  type GatedWork,
  isOfAgent,
  limitOfAgent,
  pauseOfAgent,
  settableGates,
} from './gates.ts';

/** Settings of the agents of one organization: each process keeps all of them. */
const agentSettingsMax = 1_000;
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
    const { database, clock, bus } = this.#context;
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

/** A later agent with the same id does not inherit the limit and the pause; the sweep lets go what was held. */
export const settingsOfAgent: AgentDependent = {
  async remove(tx, organizationId, agentId) {
    await forgetSetting(tx, pauseOfAgent(organizationId, agentId));
    await forgetSetting(tx, limitOfAgent(organizationId, agentId));
  },
};
