import { EventEmitter } from 'node:events';
import type { FastifyReply } from 'fastify';
import { expect, test } from 'vitest';
import { goneOrStopping } from './prefer.ts';

/** A reply whose connection the test closes. */
function replyWith(raw: { destroyed?: boolean; writableFinished?: boolean } = {}) {
  const response = Object.assign(new EventEmitter(), {
    ...{ destroyed: false, writableFinished: false },
    ...raw,
  });
  return { response, reply: { raw: response } as unknown as FastifyReply };
}

test('a wait is over when the client disconnects, or when the platform stops', () => {
  const stopping = new AbortController();
  const [left, stays] = [replyWith(), replyWith()];
  const signals = [left, stays].map(({ reply }) => goneOrStopping(reply, stopping.signal));

  left.response.emit('close');
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);

  stopping.abort();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test('it is over from the start when the client has gone or the platform is stopping', () => {
  const { reply } = replyWith({ destroyed: true });

  expect(goneOrStopping(reply, new AbortController().signal).aborted).toBe(true);
  expect(goneOrStopping(replyWith().reply, AbortSignal.abort()).aborted).toBe(true);
});

test('the close of an answered response aborts nothing', () => {
  const { reply, response } = replyWith();
  const signal = goneOrStopping(reply, new AbortController().signal);

  response.writableFinished = true;
  response.emit('close');

  expect(signal.aborted).toBe(false);
});
