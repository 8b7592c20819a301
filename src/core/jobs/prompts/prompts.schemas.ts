/** What a call of a model was sent, on the wire. */
import { Type } from 'typebox';
import { promptStates } from '../../../adapters/database/tables.ts';
import { FreeObject, Nullable, Timestamp, Words } from '../../../adapters/http/schemas.ts';

export const PromptStateWord = Words([...promptStates, 'off', 'earlier_job']);
export const promptStateWords =
  'kept; off: the settings keep none; cap_reached: the organization had as many bytes of them as it may; too_large: more than 4 MiB; ' +
  'not_sent: no request could be made of the call; expired: removed after its days; earlier_job: the job that this one resumes made the call.';

const AnyValue = Type.Unknown();
const Count = Type.Integer();
const ChangedField = Type.Object(
  {
    field: Type.String(),
    same: Type.Optional({
      ...Count,
      description: 'Elements at the beginning of a list that are as before.',
    }),
    removed: Type.Optional(Type.Array(AnyValue)),
    added: Type.Optional(Type.Array(AnyValue)),
    same_at_end: Type.Optional({
      ...Count,
      description: 'Elements at its end that are as before.',
    }),
    before: Type.Optional({
      ...AnyValue,
      description: 'Of a field that is no list; absent where it is new.',
    }),
    after: Type.Optional({ ...AnyValue, description: 'Absent where it is gone.' }),
  },
  { title: 'ChangedPromptField' },
);

/** The prompt of a step. */
export const StepPrompt = Type.Object(
  {
    step: Type.Integer(),
    generation_id: Type.String(),
    turn: Type.Integer({ description: '0 for a summary.' }),
    model: Type.String(),
    state: { ...PromptStateWord, description: promptStateWords },
    kept_at: Nullable(Timestamp),
    bytes: {
      ...Nullable(Type.Integer()),
      description: 'UTF-8 bytes of what was sent, with the names of files in place of their bytes.',
    },
    stored_bytes: {
      ...Nullable(Type.Integer()),
      description: 'Bytes that are stored for it: earlier prompts of the job have the rest.',
    },
    since_step: {
      ...Nullable(Type.Integer()),
      description: 'The step before in the same dialogue whose prompt is kept; null for the first.',
    },
    body: {
      ...Nullable(FreeObject),
      description: "The body that was sent, in the provider's own form; null with as=difference.",
    },
    difference: {
      ...Nullable(
        Type.Object(
          {
            same: Type.Array(Type.String(), { description: 'Fields that are as before.' }),
            changed: Type.Array(ChangedField),
          },
          { title: 'PromptDifference' },
        ),
      ),
      description: 'With as=difference: what differs from the prompt of since_step.',
    },
  },
  {
    title: 'StepPrompt',
    examples: [
      {
        step: 3,
        generation_id: 'Zk3v0cXlq8m1T5yWb2dR7A',
        turn: 2,
        model: 'openai/gpt-5',
        state: 'kept',
        kept_at: '2026-01-01T00:00:01.000Z',
        bytes: 5_120,
        stored_bytes: 310,
        since_step: 1,
        body: null,
        difference: {
          same: ['model', 'max_output_tokens', 'instructions', 'tools', 'stream', 'store'],
          changed: [
            {
              field: 'input',
              same: 1,
              removed: [],
              added: [{ type: 'function_call_output', call_id: 'call_1', output: '42' }],
              same_at_end: 0,
            },
          ],
        },
      },
    ],
  },
);
