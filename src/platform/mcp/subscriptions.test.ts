import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { createSubscriptions } from './subscriptions.ts';

test('nothing is kept of an organization whose last client has gone', () => {
  const create = () => {
    throw new Error('no server is made');
  };
  const { handlerOf } = createSubscriptions(create, () => {});
  const first = handlerOf('acme');
  const listen = () => {
    const response = new EventEmitter();
    void first({} as never, response as never, {}).catch(() => {});
    return () => response.emit('close');
  };
  const leaving = [listen(), listen()];
  leaving[0]?.();
  expect(handlerOf('acme')).toBe(first);
  leaving[1]?.();
  expect(handlerOf('acme')).not.toBe(first);
});
