/**
 * Agents that think in the world of `jobs-world.ts`: models over HTTP and a real database, while the
 * test plays the executors and moves the time.
 */
import { createJournals, type Journals } from '../../src/agents/journal.ts';
import { createThinking } from '../../src/agents/thinking.ts';
import { createAdmission } from '../../src/jobs/admission.ts';
import { isHeld } from '../../src/jobs/jobs.store.ts';
import { createPerformer, type Performer } from '../../src/jobs/perform.ts';
import { createReports } from '../../src/jobs/reports.ts';
import { createRuns } from '../../src/jobs/run.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { createRunMemories } from '../../src/memories/run-memory.ts';
import { createModels } from '../../src/models/models.ts';
import { createReservations } from '../../src/usage/reservations.ts';
import type { Engine } from './databases.ts';
import { type JobsWorld, jobsWorld, leaseMs } from './jobs-world.ts';
import { type ScriptedPool, scriptedPool } from './scripted-pool.ts';
import type { ScriptedProvider } from './scripted-provider.ts';

/** A process whose runs may think. */
export interface ThinkingWorker {
  readonly pool: ScriptedPool;
  readonly performer: Performer;
}

export interface ThinkingWorld extends JobsWorld {
  readonly journals: Journals;
  /** Another process on the same database. */
  thinker(name: string): ThinkingWorker;
}

/** The agent `default` has a model there, and the skills of `test` as tools. */
export async function thinkingWorld(
  engine: Engine,
  provider: Pick<ScriptedProvider, 'openaiBaseUrl'>,
): Promise<ThinkingWorld> {
  const world = await jobsWorld(engine);
  const { database, clock, conversations, agents, apiKeys, skills, settle, feed } = world;
  await agents.update('default', 'default', { model: 'openai/test-model', skills: ['test/*'] });
  const log = createLogger('silent');
  const journals = createJournals({
    database,
    conversations,
    reservations: createReservations(),
    clock,
    isHeld,
    scheduledJobOf: async () => undefined,
  });

  return {
    ...world,
    journals,

    thinker(writer) {
      const pool = scriptedPool();
      const thinking = createThinking({
        agents,
        skills,
        conversations,
        models: createModels({
          silence: { firstTokenMs: 60_000, betweenMs: 60_000 },
          settingsOf: async () => ({ apiKey: 'sk-test', baseUrl: provider.openaiBaseUrl }),
        }),
        scopesOf: async () => ['*'],
        readFile: async () => ({ error: 'There are no files.' }),
        defaultModel: null,
        limits: { turnsMax: 20, tokensMax: 1e9, outputTokens: 1_000, contextTokens: 100_000 },
      });
      const startRun = createRuns({
        executors: pool,
        skills,
        journals,
        reports: createReports({ database, feed, clock, onError: () => {} }),
        mayCall: async () => true,
        startMemory: createRunMemories(database, clock),
        thinking,
        yieldSlot: () => () => {},
        clock,
        log,
      });
      const admission = createAdmission({
        skills,
        apiKeys,
        clock,
        isLoaded: () => true,
        writer,
        leaseMs,
      });
      const common = { database, feed, clock, log, leaseMs };
      return { pool, performer: createPerformer({ ...common, admission, startRun, settle }) };
    },
  };
}
