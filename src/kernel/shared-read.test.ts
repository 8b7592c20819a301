import { expect, test } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { SharedRead } from './shared-read.ts';

/** A reading whose source answers when the test says so. */
function reading() {
  const clock = manualClock();
  const asked: PromiseWithResolvers<number>[] = [];
  const shared = new SharedRead(clock, () => {
    const one = Promise.withResolvers<number>();
    asked.push(one);
    return one.promise;
  });
  return { clock, asked, read: () => shared.get() };
}

test('a value that is read quickly is current', async () => {
  const { asked, read } = reading();
  const first = read();
  asked[0]?.resolve(1);
  const second = first.then(() => {
    const next = read();
    asked[1]?.resolve(2);
    return next;
  });

  expect([await first, await second]).toEqual([1, 2]);
});

test('while the source hangs, callers get the last value and no second read begins', async () => {
  const { clock, asked, read } = reading();
  const first = read();
  asked[0]?.resolve(1);
  await first;

  const whileItHangs = await Promise.all([read(), read(), read()]);
  clock.advance(20_000);
  const later = await read();

  expect([...whileItHangs, later]).toEqual([1, 1, 1, 1]);
  expect(asked).toHaveLength(2);
});

test('a value older than a minute is not returned, and a read that hangs is given up', async () => {
  const { clock, asked, read } = reading();
  const first = read();
  asked[0]?.resolve(1);
  await first;
  await read();

  clock.advance(60_001);
  const old = await read();
  const next = read();
  asked.at(-1)?.resolve(3);

  expect(old).toBeNull();
  expect(asked).toHaveLength(3);
  expect(await next).toBe(3);
});

test('after a failed read the value is unknown at once', async () => {
  const { asked, read } = reading();
  const first = read();
  asked[0]?.resolve(1);
  await first;

  const failed = read();
  asked[1]?.reject(new Error('no'));

  expect(await failed).toBeNull();
});
