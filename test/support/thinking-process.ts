/**
 * The platform as a process with two agents that think, one for each protocol, on a directory of the
 * test's own; and a provider that outlives it.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openSqlite } from '../../src/adapters/database/sqlite.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { type Follower, follow } from './event-stream.ts';
import { type PlatformProcess, startProcess } from './process.ts';
import { type ScriptedProvider, startScriptedProvider } from './scripted-provider.ts';
import {
  expectAllEnded,
  expectBalanced,
  expectMemoriesOnce,
  expectNotesOnce,
} from './thinking-ledger.ts';
import { inputOf, ledgerSkills, type Plan } from './thinking-plans.ts';
import { waitFor } from './wait-for.ts';

export const runTask = 'agent/v1.0/run-task';
const models = { chat: 'openai/test-model', messages: 'anthropic/test-model' };
export type ThinkingAgent = keyof typeof models;
export const thinkingAgents = Object.keys(models) as ThinkingAgent[];

export interface ThinkingProcess {
  readonly provider: ScriptedProvider;
  /** Into which all notes write. */
  readonly log: string;
  /** The platform that runs; it is another one after each start. */
  readonly platform: PlatformProcess;
  /** Starts it on what the last one left; at the first time makes a key and the agents. */
  start(environment?: Record<string, string>): Promise<void>;
  kill(): Promise<void>;
  /** A path in the test's directory at which there is nothing yet. */
  path(name: string): string;
  /** Lets an agent carry out a plan; the job's id. */
  submit(agent: ThinkingAgent, plan: Plan): Promise<string>;
  /** Runs a skill to its end; what is answered. */
  run(skill: string, input: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string): Promise<Answer>;
  post(path: string, body?: object): Promise<Answer>;
  /** The stream of a job. */
  follow(jobId: string): Promise<Follower>;
  jobIn(jobId: string, ...statuses: string[]): Promise<Answer>;
  untilAllEnded(): Promise<void>;
  lines(): string[];
  /**
   * Stops the platform, holds all that was recorded to the provider's record and the plans, and
   * tells how many jobs ended in which state.
   */
  inspect(): Promise<Record<string, number>>;
  /** As part of `inspect`, where a claim is an attempt: no note ran again once it was recorded. */
  expectNotesOnce(): Promise<void>;
  close(): Promise<void>;
}

type Answer = Awaited<ReturnType<PlatformProcess['request']>>;

export async function thinkingProcess(): Promise<ThinkingProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-thinking-'));
  const dataDir = join(directory, 'data');
  const log = join(directory, 'notes');
  writeFileSync(log, '');
  const provider = await startScriptedProvider();
  let running: PlatformProcess | undefined;
  let key = '';

  function platform(): PlatformProcess {
    if (running === undefined) throw new Error('The platform was not started.');
    return running;
  }

  async function prepare(): Promise<void> {
    key = await platform().key();
    for (const id of thinkingAgents) {
      const body = { id, model: models[id], skills: ['ledger/*'], memory: 'read_write' };
      const { status } = await platform().request('POST', '/api/agents', { key, body });
      expect(status).toBe(201);
    }
  }

  async function withDatabase<T>(
    look: (database: Awaited<ReturnType<typeof openSqlite>>) => Promise<T>,
  ): Promise<T> {
    const database = await openSqlite(dataDir, createLogger('silent'));
    try {
      return await look(database);
    } finally {
      await database.close();
    }
  }

  const get = (path: string) => platform().request('GET', path, { key });

  return {
    provider,
    log,
    get platform() {
      return platform();
    },

    async start(environment = {}) {
      running = await startProcess(dataDir, {
        EXECUTORS: '1',
        RETRY_BACKOFF_MS: '10',
        SKILLS_DIR: ledgerSkills,
        OPENAI_API_KEY: 'sk-test',
        OPENAI_BASE_URL: provider.openaiBaseUrl,
        ANTHROPIC_API_KEY: 'sk-ant-test',
        ANTHROPIC_BASE_URL: provider.anthropicBaseUrl,
        ...environment,
      });
      if (key === '') await prepare();
    },

    async kill() {
      platform().signal('SIGKILL');
      expect((await platform().exit).signal).toBe('SIGKILL');
    },

    path: (name) => join(directory, name),

    async submit(agent, plan) {
      const answer = await platform().request('POST', `/api/${runTask}`, {
        key,
        headers: { 'x-agent-id': agent },
        body: inputOf(plan),
      });
      expect(answer.status).toBe(202);
      return answer.body.job_id;
    },

    run: (skill, input, headers) => platform().run(key, skill, input, headers),
    get,
    post: (path, body) => platform().request('POST', path, { key, ...(body && { body }) }),
    follow: (jobId) => follow(`${platform().url}/api/jobs/${jobId}/events`, { 'x-api-key': key }),
    jobIn: (jobId, ...statuses) => platform().jobIn(key, jobId, ...statuses),

    async untilAllEnded() {
      await waitFor(
        async () => {
          for (const status of ['queued', 'active']) {
            const { body } = await get(`/api/jobs?status=${status}&limit=1`);
            if (body.total > 0) return false;
          }
          return true;
        },
        { describe: 'every job has ended', deadlineMs: 60_000 },
      );
    },

    lines: () => readFileSync(log, 'utf8').trimEnd().split('\n'),

    async inspect() {
      await platform().stop();
      return withDatabase(async (database) => {
        await expectAllEnded(database);
        await expectBalanced(database, provider);
        await expectMemoriesOnce(database);
        const rows = await database.read.kysely.selectFrom('jobs').select('status').execute();
        const all = Map.groupBy(rows, ({ status }) => status);
        return Object.fromEntries([...all].map(([status, jobs]) => [status, jobs.length]));
      });
    },

    expectNotesOnce: () => withDatabase((database) => expectNotesOnce(database, log)),

    async close() {
      running?.signal('SIGKILL');
      await running?.exit;
      await provider.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
