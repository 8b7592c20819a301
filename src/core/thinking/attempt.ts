/** The thinking of one attempt: what its requests, its calls of models and its tools share. */

import type { KnownModels } from '../../adapters/models/known-models.ts';
import { ModelError, type Models, type ToolMessage } from '../../adapters/models/model.ts';
import type { Expressions } from '../../adapters/sandbox/expressions.ts';
import type { Agents } from '../agents/agents.ts';
import type { InstructionValues } from '../agents/instruction-values.ts';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { Context } from '../context/context.ts';
import type { Credentials } from '../credentials/credentials.ts';
import type { Files } from '../files/files.ts';
import { type Attempt, streamOf } from '../jobs/runs/attempt.ts';
import type { Report } from '../jobs/runs/reports.ts';
import type { RunPart } from '../journal/run-part.ts';
import type { WaitScope } from '../journal/wait-scope.ts';
import type { ProviderPaces } from '../paces/provider-paces.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import type { SkillFolders } from '../skills/sources/skill-folders.ts';
import type { Capacity } from './capacity.ts';
import type { Compaction } from './compaction.ts';
import type { DocumentReader, DocumentText, UnreadDocument } from './document-reader.ts';
import type { Estimates } from './estimates.ts';
import type { RestingModels } from './fallbacks.ts';
import type { Generation } from './generation.ts';
import type { GenerationParts, Generations } from './generations.ts';
import type { RunBounds } from './run-bounds.ts';
import type { TextGuards } from './text-guards.ts';
import type { ToolMeaning } from './tool-meaning.ts';
import type { ToolBox } from './tools.ts';

/** What the thinking of a process uses. */
export interface ThinkingParts extends GenerationParts {
  readonly context: Context;
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly skills: SkillRegistry;
  readonly credentials: Credentials;
  readonly expressions: Expressions;
  readonly models: Models;
  readonly paces: ProviderPaces;
  readonly known: KnownModels;
  readonly skillFolders: SkillFolders;
  readonly files: Files;
  readonly documents: DocumentReader;
  /** Bytes of files that all attempts of the process hold. */
  readonly fileBytes: Capacity;
}

export interface ThinkingAttempt {
  readonly parts: ThinkingParts;
  readonly run: Attempt;
  readonly generations: Generations;
  readonly bounds: RunBounds;
  readonly estimates: Estimates;
  readonly toolMeaning: ToolMeaning;
  readonly resting: RestingModels;
  /** The texts of documents that were read, by the id of the file. */
  readonly documents: Map<string, Promise<DocumentText | UnreadDocument>>;
  /** Requests under way. */
  readonly underWay: Set<Promise<unknown>>;
  /** The values of the agent's instructions, once they are filled; null for instructions without any. */
  values: InstructionValues | null;
  /** The model's last answer in the conversation's dialogue, null without one. */
  answer: string | null;
  /** The delay that a provider asks for when there is no further try, else null. */
  retryAfterMs: number | null;
}

/** A generation under way, in its attempt. */
export interface ActiveGeneration {
  readonly attempt: ThinkingAttempt;
  readonly generation: Generation;
  /** The part of the run that asks. */
  readonly part: RunPart;
  readonly box: ToolBox;
  readonly compaction: Compaction;
  /** The results of tools in the dialogue, by the id of their call. */
  readonly results: Map<string, ToolMessage>;
  /** The wait scope of the generation: it waits when all of its concurrent tools wait. */
  readonly scope: WaitScope;
  readonly guards: TextGuards;
}

/** A generation before its dialogue is complete. */
export type BegunGeneration = Omit<ActiveGeneration, 'results' | 'compaction'>;

/** The user for whom the job of an attempt works; null without one. */
export const userOf = ({ run }: ThinkingAttempt): string | null =>
  run.job.for_user === 1 ? run.job.user_id : null;

/** Reports to the clients that follow the job. */
export function report({ run }: ThinkingAttempt, report: Report): void {
  streamOf(run).add(report);
}

/** How the run reaches the provider of a model; that this cannot be read counts as a failed call. */
export async function settingsFor({ parts, run }: ThinkingAttempt, model: string) {
  try {
    return await parts.credentials.settingsForModel(run.job.organization_id, model);
  } catch (error) {
    if (error instanceof ModelError) parts.models.countUnmade(error.fault);
    throw error;
  }
}

export function log(attempt: ThinkingAttempt, message: string): void {
  report(attempt, { type: 'log', data: { message } });
}
