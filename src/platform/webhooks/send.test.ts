import { afterEach, expect, test, vi } from 'vitest';
import { authority, receiveHttps } from '../../../test/fixtures/receiver/receiver.ts';
import { parseAllowList } from '../../adapters/egress/allow-list.ts';
import { Sender } from './send.ts';

afterEach(() => void vi.useRealTimers());

test.each([false, true])(
  'connecting may take more than 5 s of the 10 s for an answer (new connection: %s)',
  async (isFresh) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const receiver = await receiveHttps((_request, response) => void response.end('taken'));
    const isAsked = Promise.withResolvers<void>();
    const addresses = Promise.withResolvers<readonly string[]>();
    const sender = new Sender({
      allowed: parseAllowList('127.0.0.0/8'),
      timeoutMs: 10_000,
      ca: authority,
      resolve: () => {
        isAsked.resolve();
        return addresses.promise;
      },
    });

    const answer = sender.send({
      url: `https://slow.receiver.test:${receiver.port}/`,
      headers: {},
      body: '{}',
      isFresh,
      signal: new AbortController().signal,
    });
    await isAsked.promise;
    vi.advanceTimersByTime(9_900);
    addresses.resolve(['127.0.0.1']);

    expect(await answer).toEqual({
      outcome: 'accepted',
      status: 200,
      error: null,
      response: 'taken',
    });
    await sender.close();
    await receiver.close();
  },
);
