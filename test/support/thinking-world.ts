/**
 * Agents that think in the world of `jobs-world.ts`: models over HTTP and a real database, while the
 * test plays the executors and moves the time.
 */
import type { Engine } from './databases.ts';
import { type JobsWorld, jobsWorld } from './jobs-world.ts';
import type { ScriptedProvider } from './scripted-provider.ts';
import { anyWriter } from './writers.ts';

/** The agent `default` has a model there, and the skills of `test` as tools. */
export async function thinkingWorld(
  engine: Engine,
  { openaiBaseUrl }: Pick<ScriptedProvider, 'openaiBaseUrl'>,
): Promise<JobsWorld> {
  const providers = new Map([['openai', { apiKey: 'sk-test', baseUrl: openaiBaseUrl }]]);
  const world = await jobsWorld(engine, { providers });
  await world.agents.update(anyWriter(), 'default', {
    memory: 'read_write',
    model: 'openai/test-model',
    skills: ['test/*'],
  });
  return world;
}
