import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { ThinkingAttempt } from './attempt.ts';
import { withFiles } from './files-of-calls.ts';

test('a call takes the memory that its files need to be sent, until it has ended', async () => {
  const row = { id: 'f', name: 'a.png', media_type: 'image/png', bytes: 1_000 };
  const taken: number[] = [];
  const take = async (amount: number) => {
    taken.push(amount);
    return () => void taken.push(-amount);
  };
  const files = {
    usable: async () => new Map([['f', row]]),
    open: async () => Readable.from([Buffer.alloc(1_000)]),
  };
  const job = { organization_id: 'acme', for_user: 0, user_id: null };
  const attempt = { parts: { files, fileBytes: { take } }, run: { job } };
  const file = { id: 'f', name: 'a.png', mediaType: 'image/png', tokens: 5_000 };
  const messages = [{ role: 'user', text: 'See', files: [file] }] as const;
  const { signal } = new AbortController();

  const held = await withFiles(
    attempt as unknown as ThinkingAttempt,
    { messages, model: 'a/model', takesFiles: true, signal },
    async () => [...taken],
  );

  expect(held).toEqual([4_000]);
  expect(taken).toEqual([4_000, -4_000]);
});
