/**
 * The AI SDK alone: `streamText` with one tool that runs in this process, nothing recorded, nothing
 * checked. What a turn of our agents costs is measured against it. Its parent names the model over
 * IPC, one run at a time, and hears when the run has ended.
 */
import { createOpenAI } from '@ai-sdk/openai';
import { isStepCount, jsonSchema, streamText, tool } from 'ai';

const [baseURL = ''] = process.argv.slice(2);
const openai = createOpenAI({ baseURL, apiKey: 'bench' });
const turnsMax = 1_000;

const tools = {
  util__echo__v1_0: tool({
    description: 'Returns the text it is given.',
    inputSchema: jsonSchema<{ text: string }>({
      type: 'object',
      properties: { text: { type: 'string' } },
      required: ['text'],
      additionalProperties: false,
    }),
    execute: ({ text }) => ({ text }),
  }),
};

process.on('message', async (model: string) => {
  const result = streamText({
    model: openai.chat(model),
    prompt: 'Task 1',
    tools,
    stopWhen: isStepCount(turnsMax),
  });
  const steps = await result.steps;
  process.send?.(steps.length);
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
