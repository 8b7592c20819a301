import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RealmAnswer } from './realms.ts';
import { type Sandbox, startSandbox } from './sandbox.ts';

/** The worst program: any JavaScript, in a realm that may even make code of strings. */
const module = `
  import { createRealms } from ${JSON.stringify(new URL('realms.ts', import.meta.url).href)};
  const source = 'async function main(code) { return JSON.stringify(await (0, eval)(code)) ?? null; }';
  const inRealm = createRealms({ source, codeGeneration: true });
  export const run = (code) => inRealm(code);
  export const untouched = () => Object.keys(Object.prototype).length === 0 && typeof process;
`;
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({
    module: `data:text/javascript,${encodeURIComponent(module)}`,
    memoryMb: 64,
  });
});
afterAll(() => sandbox.stop());

async function run(code: string): Promise<RealmAnswer> {
  const answer = await sandbox.ask({ function: 'run', input: code }, 10_000);
  if (typeof answer !== 'object') throw new Error(answer);
  return 'error' in answer ? answer : (answer.value as RealmAnswer);
}

describe('a program in a realm', () => {
  test('computes', async () => {
    expect(await run('[1, 2].map((n) => n * 2)')).toEqual({ value: '[2,4]' });
    expect(await run('undefined')).toEqual({ value: null });
  });

  const asked = 'return [typeof process, typeof require, typeof fetch, typeof setTimeout]';
  test.each([
    `Function('${asked}')()`,
    `(() => {}).constructor('${asked}')()`,
    `this.constructor.constructor('${asked}')()`,
    `globalThis.constructor.constructor('${asked}')()`,
    `main.constructor('${asked}')()`,
    `begin.constructor('${asked}')()`,
    `Object.getPrototypeOf(async () => {}).constructor('${asked}')()`,
    `realmInput.constructor.constructor('${asked}')()`,
    `console.log.constructor('${asked}')()`,
    `(() => { try { null.x } catch (e) { return e.constructor.constructor('${asked}')() } })()`,
    `(() => { const f = () => f(); try { f() } catch (e) { return e.constructor.constructor('${asked}')() } })()`,
  ])('reaches nothing by %s', async (code) => {
    expect(await run(code)).toEqual({
      value: JSON.stringify(Array.from({ length: 4 }, () => 'undefined')),
    });
  });

  test('imports nothing', async () => {
    expect(await run("import('node:fs').then(() => 'imported', (error) => 'refused')")).toEqual({
      error: 'never comes to an end',
    });
  });

  test.each([
    'globalThis.outcome = { toString: () => 1 }; new Promise(() => {})',
    'Promise.prototype.then = () => {}; 1',
    'new Promise(() => {})',
  ])('that never answers is an error: %s', async (code) => {
    expect(await run(code)).toEqual({ error: 'never comes to an end' });
  });

  test.each([
    'throw new Error("broken")',
    'throw { get message() { throw 1; } }',
    'JSON.stringify = () => { throw 1; }; 1',
    'Object.defineProperty(globalThis, "outcome", { get() { throw 1; } }); 1',
  ])('that fails is an error, and no more: %s', async (code) => {
    expect(await run(code)).toHaveProperty('error');
  });

  test('sees no changes of an earlier program', async () => {
    await run('Object.prototype.polluted = 1; Array.prototype.map = null; globalThis.mine = 1; 1');

    expect(await run('[typeof mine, typeof {}.polluted, typeof [].map]')).toEqual({
      value: '["undefined","undefined","function"]',
    });
    expect(await sandbox.ask({ function: 'untouched', input: null }, 5_000)).toEqual({
      value: 'object',
    });
  });
});
