import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sharedResolver } from './system-resolver.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => void vi.useRealTimers());

/** A resolver whose lookups end when the test answers them. */
function stage() {
  const asked: string[] = [];
  const answers: { name: string; answer: PromiseWithResolvers<readonly string[]> }[] = [];
  const resolve = sharedResolver((name) => {
    asked.push(name);
    const answer = Promise.withResolvers<readonly string[]>();
    answers.push({ name, answer });
    return answer.promise;
  });
  const take = (name: string) => {
    const [one] = answers.splice(
      answers.findIndex((each) => each.name === name),
      1,
    );
    return one?.answer;
  };
  return {
    asked,
    resolve,
    /** Lookups that hold a thread. */
    held: () => answers.map(({ name }) => name),
    async answer(name: string, addresses: readonly string[] = ['192.0.2.1']) {
      take(name)?.resolve(addresses);
      await new Promise(setImmediate);
    },
    async fail(name: string) {
      take(name)?.reject(new Error('ENOTFOUND'));
      await new Promise(setImmediate);
    },
    /** Lets names be slow once. */
    async slow(names: readonly string[]) {
      const lookups = names.map((name) => resolve(name).catch(() => {}));
      vi.advanceTimersByTime(5_000);
      for (const name of names) take(name)?.reject(new Error('EAI_AGAIN'));
      await Promise.all(lookups);
      asked.length = 0;
    },
  };
}

describe('the shared resolver', () => {
  test('looks a name up once for simultaneous callers, and again for the next', async () => {
    const { resolve, answer, asked } = stage();

    const both = Promise.all([resolve('a.example'), resolve('a.example')]);
    await answer('a.example');
    expect(await both).toEqual([['192.0.2.1'], ['192.0.2.1']]);
    const next = resolve('a.example');
    await answer('a.example', ['192.0.2.2']);

    expect(await next).toEqual(['192.0.2.2']);
    expect(asked).toEqual(['a.example', 'a.example']);
  });

  test('looks slow names up one at a time, and other names at once', async () => {
    const { resolve, slow, held, fail } = stage();
    const names = ['a.example', 'b.example', 'c.example'];
    await slow(names);

    const failing = names.map((name) => expect(resolve(name)).rejects.toThrow('ENOTFOUND'));
    await new Promise(setImmediate);
    expect(held()).toEqual(['a.example']);
    void resolve('quick.example');
    expect(held()).toEqual(['a.example', 'quick.example']);

    for (const name of names) await fail(name);
    await Promise.all(failing);
  });

  test('forgets that a name was slow when it answers in time', async () => {
    const { resolve, slow, held, answer } = stage();
    await slow(['a.example', 'b.example']);
    const mended = resolve('a.example');
    await new Promise(setImmediate);
    await answer('a.example');
    await mended;

    void resolve('b.example');
    await new Promise(setImmediate);
    void resolve('a.example');

    expect(held()).toEqual(['b.example', 'a.example']);
  });

  test('does not look up a slow name whose callers have all given up', async () => {
    const { resolve, slow, asked, fail, held } = stage();
    await slow(['a.example', 'b.example']);
    const first = expect(resolve('a.example')).rejects.toThrow('ENOTFOUND');
    const second = expect(resolve('b.example')).rejects.toThrow('took too long');
    await new Promise(setImmediate);

    vi.advanceTimersByTime(10_000);
    await fail('a.example');
    await Promise.all([first, second]);

    expect(asked).toEqual(['a.example']);
    void resolve('b.example');
    await new Promise(setImmediate);
    expect(held()).toEqual(['b.example']);
  });
});
