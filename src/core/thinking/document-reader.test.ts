import { expect, onTestFinished, test, vi } from 'vitest';
import { type NoAnswer, Sandbox } from '../../adapters/sandbox/sandbox.ts';
import { DocumentReader } from './document-reader.ts';

/** Reads a document in a process that gives no answer. */
function readWithout(outcome: NoAnswer) {
  const ask = vi.spyOn(Sandbox.prototype, 'ask').mockResolvedValueOnce(outcome);
  onTestFinished(() => ask.mockRestore());
  const { signal } = new AbortController();
  return new DocumentReader().read(Buffer.from('<p>Tea at four</p>'), 'acme', signal);
}

test.each(['gone', 'held up'] as const)(
  'a document whose process is %s is to be read again',
  async (outcome) => {
    await expect(readWithout(outcome)).rejects.toMatchObject({
      name: 'ThinkingError',
      retryable: true,
    });
  },
);

test.each(['late', 'exhausted'] as const)(
  'a document whose process is %s is broken',
  async (outcome) => {
    expect(await readWithout(outcome)).toMatchObject({ isBroken: true });
  },
);
