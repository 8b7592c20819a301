/**
 * The weights of organizations in turns, which the administrator sets. Each process keeps those that differ from 1 in memory; the
 * processes of a cluster read them again every second, so that no claim has to.
 */
import { notFound } from '../../../kernel/errors.ts';
import type { Context } from '../../context/context.ts';
import { findWeight, listWeights, updateWeight } from './weights.store.ts';

export const weightMax = 100;

export class Weights {
  readonly #context: Context;
  /** Those other than 1, by organization. */
  readonly byOrganization = new Map<string, number>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Reads the weights that were set, here or in another process. */
  async refresh(): Promise<void> {
    const rows = await listWeights(this.#context.database.read);
    const known = new Set(rows.map(({ id }) => id));
    for (const id of this.byOrganization.keys()) {
      if (!known.has(id)) this.byOrganization.delete(id);
    }
    for (const { id, weight } of rows) this.byOrganization.set(id, weight);
  }

  /** The weight of an organization, or `404 not_found`. */
  async find(organizationId: string): Promise<number> {
    const weight = await findWeight(this.#context.database.read, organizationId);
    if (weight === undefined) throw notFound('Organization');
    return weight;
  }

  /** Sets it, from 1 to `weightMax`; turns follow it here at once. */
  async set(organizationId: string, weight: number): Promise<void> {
    await this.#context.database.write((tx) => updateWeight(tx, organizationId, weight));
    await this.refresh();
  }
}
