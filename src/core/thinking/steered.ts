/** The messages that have steered a request to a model, as they are on record. */
import type { Handle } from '../../adapters/database/database.ts';
import type { UserMessage } from '../../adapters/models/model.ts';
import { jobsOnRecord } from '../journal/taken-over.ts';
import { listSteered } from './steered.store.ts';

/** The data of a message that a run has taken. */
export interface SteeredEntry extends UserMessage {
  readonly generation: string;
  /** The turn whose tools came before it. */
  readonly turn: number;
}

/** The messages that have steered a request, by the turn after which they were said. */
export async function steeredAfter(
  db: Handle,
  job: { readonly id: string; readonly conversation_id: string; readonly resumes: string | null },
  generation: string,
): Promise<ReadonlyMap<number, readonly UserMessage[]>> {
  const { conversation_id } = job;
  const rows = await listSteered(db, { conversation_id, job_ids: jobsOnRecord(job) });
  const entries = rows
    .map(({ data }) => JSON.parse(data as string) as SteeredEntry)
    .filter((entry) => entry.generation === generation);
  const byTurn = Map.groupBy(entries, ({ turn }) => turn);
  return new Map([...byTurn].map(([turn, some]) => [turn, some.map(saidOf)]));
}

/** What a model is sent of it. */
export function saidOf({ text }: UserMessage): UserMessage {
  return { role: 'user', text };
}
