import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { Subscriptions } from './subscriptions.ts';

test('nothing is kept of an organization whose last client has gone', () => {
  const create = () => {
    throw new Error('no server is made');
  };
  const subscriptions = new Subscriptions(create, () => {});
  const first = subscriptions.handlerOf('acme');
  const listen = () => {
    const response = new EventEmitter();
    void first({} as never, response as never, {}).catch(() => {});
    return () => response.emit('close');
  };
  const leaving = [listen(), listen()];
  leaving[0]?.();
  expect(subscriptions.handlerOf('acme')).toBe(first);
  leaving[1]?.();
  expect(subscriptions.handlerOf('acme')).not.toBe(first);
});
