/**
 * A digest of what an agent has remembered, each night for some nights, in one function with a loop. To
 * copy. Between two nights it uses no process: the job is `waiting`, and a restart changes nothing.
 *
 * What it shows: `sleepUntil` with a moment that is computed from recorded values, and steps with one name in a
 * loop. Where each night is independent of the others, a schedule fits better: `docs/schedules.md`.
 *
 *   POST /api/durable/v1.0/nightly-digest {"nights": 7}
 */
import { defineSkill } from 'skillwright';

const hourMs = 3_600_000;

export default defineSkill({
  category: 'durable',
  name: 'nightly-digest',
  version: 'v1.0',
  displayName: 'Nightly digest',
  description: 'Collects each night what the agent has remembered since the night before.',
  parameters: {
    type: 'object',
    required: ['nights'],
    additionalProperties: false,
    properties: {
      nights: { type: 'integer', minimum: 1, maximum: 365, description: 'How many digests.' },
      hours_between: {
        type: 'number',
        exclusiveMinimum: 0,
        maximum: 168,
        default: 24,
        description: 'Hours from one digest to the next.',
      },
      tag: { type: 'string', default: 'fact', description: 'The tag of the memories to collect.' },
    },
  },
  output: {
    type: 'object',
    required: ['digests'],
    additionalProperties: false,
    properties: {
      digests: {
        type: 'array',
        items: {
          type: 'object',
          required: ['at', 'news'],
          properties: {
            at: { type: 'string' },
            news: { type: 'array', items: { type: 'string' } },
          },
        },
      },
    },
  },
  examples: [{ input: { nights: 7 } }],

  async run({ nights, hours_between = 24, tag = 'fact' }, ctx) {
    const digests: { at: string; news: string[] }[] = [];
    // At first the moment at which the job was accepted, the same in each replay.
    let since = ctx.now();
    for (let night = 1; night <= nights; night += 1) {
      const next = new Date(since.getTime() + hours_between * hourMs);
      await ctx.sleepUntil('night', next);

      // What is read from outside is read in a step, so that a replay sees the same.
      const news = await ctx.step('collect', async () => {
        const memories = await ctx.memory.recall({ tag, limit: 200 });
        return memories
          .filter(({ created_at }) => new Date(created_at) >= since)
          .map(({ content }) => content)
          .reverse();
      });
      digests.push({ at: next.toISOString(), news });
      ctx.log(`Digest ${night} of ${nights} is ready`, { news: news.length });
      since = next;
    }
    return { digests };
  },
});
