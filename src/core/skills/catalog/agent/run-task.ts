import { defineSkill } from '../../definition.ts';
import {
  integer,
  isCutMark,
  jsonSchema,
  madeFiles,
  objectWith,
  textWith,
} from '../_support/schemas.ts';

const timeoutMs = 600_000;
const parameters = objectWith(['task'], {
  task: textWith(65_536, 'What the agent is to do, with all that it needs to know.'),
  files: {
    type: 'array',
    maxItems: 20,
    items: { type: 'string', minLength: 1, maxLength: 2048 },
    description:
      'Pictures, PDF, documents and texts that the task is about: ids of files (POST /api/files), or urls.',
  },
  schema: jsonSchema('JSON Schema (draft 2020-12) of the data that `output` is to be.'),
  max_turns: integer(
    { minimum: 1, maximum: 100 },
    "Most calls of the model; the platform's setting when left out.",
  ),
  timeout_ms: integer(
    { minimum: 1000, maximum: 86_400_000, default: timeoutMs },
    'Milliseconds for one attempt, with all calls of the model and of tools; 24 hours at most.',
  ),
});
const output = objectWith(['answer'], {
  answer: { type: 'string', description: 'What the agent says in the end.' },
  output: { description: 'The answer as the schema wants it; absent without a schema.' },
  is_cut: isCutMark,
  files: madeFiles,
});

export default defineSkill({
  category: 'agent',
  name: 'run-task',
  version: 'v1.0',
  displayName: 'Run task',
  description:
    'Gives the agent a task in plain words. It follows its instructions, uses its skills and its ' +
    'memory, and answers; with a JSON Schema also as data.',
  parameters,
  output,
  timeoutMs,
  timeoutField: 'timeout_ms',
  continuesConversations: true,
  taskField: 'task',
  answerField: 'answer',
  examples: [
    { input: { task: 'What is on our list of open questions?' } },
    {
      input: {
        task: 'Find three names for a café beside a railway station.',
        schema: {
          type: 'object',
          required: ['names'],
          additionalProperties: false,
          properties: { names: { type: 'array', items: { type: 'string' } } },
        },
        max_turns: 5,
      },
    },
  ],

  async run({ task, files, schema, max_turns: maxTurns }, ctx) {
    const {
      text,
      output,
      isCut,
      files: made,
    } = await ctx.generate({
      prompt: task,
      ...(files !== undefined && files.length > 0 && { attachments: files }),
      tools: true,
      continues: true,
      schema,
      maxTurns,
    });
    return {
      answer: text,
      ...(schema === undefined ? {} : { output }),
      ...(isCut ? { is_cut: true } : {}),
      ...(made === undefined ? {} : { files: made }),
    };
  },
});
