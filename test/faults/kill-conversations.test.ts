/**
 * What a conversation owes that takes messages while it works, and whose processes die at random: each message that was accepted is said
 * once, in the order of its mode.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { canRunClusters } from '../support/cluster-load.ts';
import type { Answer, Platform } from '../support/platform.ts';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { randomInteger } from '../support/random.ts';
import { type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';
import { beginChance, rounds } from '../support/soak.ts';
import { environmentOf, runTask, toolNamed } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

const kills = rounds(3, 20);
const conversations = 3;
const hasClusters = await canRunClusters();
const modes = ['queue', 'steer', 'interrupt'] as const;

/** A platform whose processes can be killed. */
interface Mortal {
  client(): Pick<Platform, 'request' | 'key'>;
  /** Kills what runs jobs, and starts it again. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

async function embedded(environment: Record<string, string>): Promise<Mortal> {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-conversations-'));
  const start = () => startProcess(directory, { EXECUTORS: '1', ...environment });
  let running: PlatformProcess = await start();
  const end = async () => {
    running.signal('SIGKILL');
    await running.exit;
  };
  return {
    client: () => running,
    async kill() {
      await end();
      running = await start();
    },
    async close() {
      await end();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function cluster(environment: Record<string, string>): Promise<Mortal> {
  const running = await startCluster({
    workers: 2,
    environment: { ...environment, JOB_LEASE_MS: '2000' },
  });
  const [api] = running.of('api');
  if (api === undefined) throw new Error('no process with the role api');
  return {
    client: () => api.client,
    async kill() {
      const workers = running.of('worker');
      const worker = workers[randomInteger(0, workers.length - 1)];
      await worker?.kill();
      await worker?.start();
    },
    close: () => running.close(),
  };
}

describe.each([
  ['one process', embedded, false],
  ['a cluster', cluster, true],
] as const)('the conversations of %s', (_, start, isCluster) => {
  let provider: ScriptedProvider;
  let platform: Mortal;
  beforeEach(async () => {
    provider = await startScriptedProvider();
  });
  afterEach(async () => {
    await platform?.close();
    await provider.close();
  });

  test.skipIf(isCluster && !hasClusters)(
    `that are killed ${kills} times have each message once, in the order of its mode`,
    { timeout: 300_000 },
    async () => {
      beginChance();
      provider.script(({ toolResults, index }) => {
        const calls = [{ name: toolNamed('util/v1.0/echo'), input: { text: `${index}` } }];
        // Two turns with tools on average, so that there are boundaries before and after a kill.
        const isOver = toolResults.length > 0 && randomInteger(0, 2) === 0;
        return { text: `Turn ${index}.`, everyMs: 2, ...(isOver ? {} : { toolCalls: calls }) };
      });
      platform = await start(environmentOf(provider));
      const key = await platform.client().key();
      const agent = { id: 'thinker', skills: ['util/*'] };
      const made = await platform.client().request('POST', '/api/agents', { key, body: agent });
      expect(made.status).toBe(201);
      const send = (path: string, body: unknown, headers: Record<string, string>) =>
        persistently(() => platform.client().request('POST', path, { key, body, headers }));
      const get = (path: string) =>
        persistently(() => platform.client().request('GET', path, { key }));

      const sent: { task: string; mode: string; jobId: string; conversation: number }[] = [];
      let isOver = false;
      /** Sends one message after the other; one without an answer is sent again with its key. */
      async function talk(conversation: number): Promise<string> {
        let id: string | undefined;
        for (let n = 0; !isOver; n += 1) {
          const mode = modes[randomInteger(0, 5)] ?? (n % 2 === 0 ? 'steer' : 'queue');
          const task = `message ${conversation}.${n}`;
          const { status, body } = await send(
            `/api/${runTask}`,
            { task },
            {
              'x-agent-id': 'thinker',
              'idempotency-key': task,
              'x-conversation-mode': mode,
              ...(id !== undefined && { 'x-conversation-id': id }),
            },
          );
          // As many wait as may: the same message is not sent again.
          if (status === 409) continue;
          expect([200, 202], JSON.stringify(body)).toContain(status);
          id ??= body.conversation_id as string;
          sent.push({ task, mode: n === 0 ? 'first' : mode, jobId: body.job_id, conversation });
          await waitFor(() => isOver || provider.requests.length >= sent.length * 2 - 20, {
            describe: 'the agents keep up',
            deadlineMs: 60_000,
            everyMs: 5,
          });
        }
        return id as string;
      }

      const talks = Array.from({ length: conversations }, (__, n) => talk(n));
      for (let round = 0; round < kills; round += 1) {
        const target = provider.requests.length + randomInteger(5, 25);
        await waitFor(() => provider.requests.length >= target, {
          describe: 'the provider is asked',
          deadlineMs: 60_000,
          everyMs: 1,
        });
        await platform.kill();
      }
      isOver = true;
      const ids = await Promise.all(talks);
      for (const id of ids) {
        await waitFor(
          async () => (await get(`/api/conversations/${id}`)).body.status !== 'active',
          {
            describe: `conversation ${id} has ended`,
            deadlineMs: 90_000,
          },
        );
      }

      const jobs = new Map<string, Answer['body']>();
      for (const { jobId } of sent) jobs.set(jobId, (await get(`/api/jobs/${jobId}`)).body);
      let steered = 0;
      for (const [n, id] of ids.entries()) {
        const { body } = await get(`/api/conversations/${id}/messages?limit=500&role=user`);
        const said = body.map(({ content }: { content: string }) => JSON.parse(content).task);
        const own = sent.filter(({ conversation }) => conversation === n);
        const begun = own.filter(({ jobId }) => jobs.get(jobId).started_at !== null);
        for (const { jobId } of own) {
          const job = jobs.get(jobId);
          expect(job.finished_at, JSON.stringify(job)).not.toBeNull();
          if (job.delivered_to === null) continue;
          steered += 1;
          const to = jobs.get(job.delivered_to);
          expect([job.status, job.output]).toEqual([to.status, to.output]);
        }
        // Those whose jobs began, each once. One that was its turn may have been interrupted before it began.
        const isCancelled = ({ jobId }: { jobId: string }) =>
          jobs.get(jobId).status === 'cancelled';
        const mayBe = own.filter(isCancelled).map(({ task }) => task);
        expect(new Set(said).size).toBe(said.length);
        expect(said).toEqual(expect.arrayContaining(begun.map(({ task }) => task)));
        const others = said.filter((task: string) => !begun.some((one) => one.task === task));
        expect(mayBe).toEqual(expect.arrayContaining(others));
        for (const mode of ['queue', 'steer']) {
          const inOrder = begun.filter((one) => one.mode === mode).map(({ task }) => task);
          expect(said.filter((task: string) => inOrder.includes(task))).toEqual(inOrder);
        }
      }
      expect(steered).toBeGreaterThan(0);
      // The request whose answer is that of a job had its message, also after a kill.
      for (const { jobId, task } of sent) {
        const { status, output } = jobs.get(jobId);
        if (status !== 'completed') continue;
        const index = Number(/\d+/.exec(output.answer)?.[0]);
        expect(JSON.stringify(provider.requests[index]?.messages)).toMatch(
          new RegExp(`${task}\\b`),
        );
      }
      for (const { messages } of provider.requests) {
        const tasks = JSON.stringify(messages).match(/message \d+\.\d+/g) ?? [];
        expect(new Set(tasks).size).toBe(tasks.length);
      }
    },
  );
});

/** Asks again while no process answers, or the one that does has no database. */
function persistently(ask: () => Promise<Answer>): Promise<Answer> {
  return waitFor(
    async () => {
      const answer = await ask().catch(() => null);
      return answer !== null && answer.status < 500 ? answer : null;
    },
    { describe: 'an answer', deadlineMs: 60_000, everyMs: 20 },
  );
}
