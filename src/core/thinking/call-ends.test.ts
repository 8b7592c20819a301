import { expect, test } from 'vitest';
import type { AssistantMessage } from '../../adapters/models/model.ts';
import { type Opaque, partsOfTurn } from '../../adapters/models/prompt.ts';
import { normalized } from './call-ends.ts';

const model = 'anthropic/claude';

/** A turn that has thought, and then called a tool. */
function thoughtOf(id: string): AssistantMessage {
  const opaque: Opaque = {
    model,
    parts: [
      { type: 'reasoning', text: 'Hm.', signed: { anthropic: { signature: 's' } } },
      { type: 'tool-call', id },
    ],
  };
  return { role: 'assistant', text: '', toolCalls: [{ id, name: 'look', input: '{}' }], opaque };
}

test.each([
  ['was used before', 'call_0'],
  ['is too long', 'x'.repeat(300)],
])('a turn keeps its reasoning when the id of its call %s', (_why, id) => {
  const message = normalized(thoughtOf(id), { n: 3, cutAt: null }, [thoughtOf('call_0')]);

  expect(message.toolCalls[0]?.id).not.toBe(id);
  expect(partsOfTurn(model, message)).toMatchObject([
    { type: 'reasoning', text: 'Hm.' },
    { type: 'tool-call', call: { id: message.toolCalls[0]?.id } },
  ]);
});
