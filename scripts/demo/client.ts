/** A client of the demo's platform: plain HTTP, as in any program. */
import { setTimeout as pause } from 'node:timers/promises';
import { say, sayValue, shortened } from './paper.ts';

const lookEveryMs = 1_000;

interface Job {
  readonly job_id: string;
  readonly status: string;
  readonly conversation_id: string;
  readonly output: unknown;
  readonly error: { code: string; message: string } | null;
  readonly duration_ms: number;
}

export type Client = Awaited<ReturnType<typeof createClient>>;

/** Makes a key for everything and speaks with it. */
export async function createClient(url: string, adminSecret: string) {
  const { plaintext_key: key } = await call<{ plaintext_key: string }>(
    `${url}/admin/api-keys`,
    { authorization: `Bearer ${adminSecret}` },
    { client_name: 'demo', scopes: ['*'], rate_limit: 600 },
  );
  const headers = { 'x-api-key': key };
  const get = <T>(path: string) => call<T>(`${url}${path}`, headers);

  /** Shows a job that has completed, its conversation and its output. */
  async function showJob(title: string, how: string, job: Job): Promise<void> {
    if (job.status !== 'completed') {
      throw new Error(`${how}: ${job.status}, ${job.error?.code} ${job.error?.message}`);
    }
    const messages = await get<{ role: string; content: string }[]>(
      `/api/conversations/${job.conversation_id}/messages`,
    );
    say(`\n── ${title}\n   ${how}`);
    say(`   job ${job.job_id} completed in ${job.duration_ms} ms`);
    say(`   conversation ${job.conversation_id}`);
    for (const { role, content } of messages) say(`     ${role}: ${shortened(content, 100)}`);
    sayValue(job.output);
  }

  return {
    url,
    get,

    post: <T>(path: string, body: unknown) => call<T>(`${url}${path}`, headers, body),

    /** Asks until there is an answer, or fails after `ms` milliseconds. */
    async until<T>(what: string, ms: number, ask: () => Promise<T | undefined>): Promise<T> {
      const end = performance.now() + ms;
      for (;;) {
        const answer = await ask();
        if (answer !== undefined) return answer;
        if (performance.now() > end) throw new Error(`In vain: ${what}`);
        await pause(lookEveryMs);
      }
    },

    /** Runs a skill and shows what came of it. */
    async show(title: string, skill: string, input: unknown): Promise<void> {
      const job = await call<Job>(`${url}/api/${skill}`, { ...headers, prefer: 'wait=30' }, input);
      await showJob(title, `POST /api/${skill}`, job);
    },

    /** Waits for the end of a job that something else has started, and shows it. */
    async showStarted(title: string, how: string, jobId: string): Promise<void> {
      const job = await call<Job>(`${url}/api/jobs/${jobId}`, { ...headers, prefer: 'wait=30' });
      await showJob(title, how, job);
    },
  };
}

/** Sends a request, with a body as JSON when there is one; the answer's JSON. */
async function call<T>(url: string, headers: Record<string, string>, body?: unknown): Promise<T> {
  const init =
    body === undefined
      ? { headers }
      : {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        };
  const response = await fetch(url, init);
  const answer = (await response.json()) as T;
  if (!response.ok) throw new Error(`${url}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}
