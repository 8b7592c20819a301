/** The cost of models for a process: packages load late, and print nothing. */
import { execFile } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { callingTools, startScriptedProvider } from '../../../test/support/scripted-provider.ts';

const models = pathToFileURL(`${import.meta.dirname}/models.ts`).href;

/** Runs a program that has `loaded`, the packages loaded so far, and `ask`, which makes a call. */
async function run(program: string, environment: Record<string, string> = {}) {
  const code = `
    import { registerHooks } from 'node:module';
    const packages = new Set();
    registerHooks({
      load(url, context, next) {
        const name = /node_modules\\/((@[^/]+\\/)?[^/]+)/.exec(url)?.[1];
        if (name !== undefined) packages.add(name);
        return next(url, context);
      },
    });
    const loaded = () => [...packages].filter((name) => /^ai$|^@ai-sdk\\/|^zod$/.test(name));
    const { ProviderModels } = await import('${models}');
    const clock = { now: Date.now, monotonic: Date.now };
    const silence = { firstTokenMs: 60_000, betweenMs: 60_000, keepAliveMs: 60_000 };
    const baseUrl = process.env.PROVIDER;
    const models = new ProviderModels({ clock, silence });
    const ask = (model, changes) => models.call({
      model, settings: { apiKey: 'key', baseUrl }, system: 'Be brief.', tools: [], maxOutputTokens: 100,
      messages: [{ role: 'user', text: 'Hello?' }], signal: new AbortController().signal,
      onText() {}, ...changes,
    }).then(({ finish }) => finish, ({ fault }) => fault);
    ${program}
  `;
  const child = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      ...environment,
    },
    // Within the time of a test, which would leave it behind.
    timeout: 55_000,
  });
  return { printed: `${child.stdout}${child.stderr}` };
}

async function startProvider() {
  const provider = await startScriptedProvider();
  onTestFinished(() => provider.close());
  return provider;
}

test('the packages of providers are loaded with the first call of one, and no others', async () => {
  const { openaiBaseUrl } = await startProvider();

  const { printed } = await run(
    `const before = loaded();
    const finish = await ask('anthropic/m', {});
    console.log(JSON.stringify({ before, finish, after: loaded() }));`,
    { PROVIDER: openaiBaseUrl },
  );

  const { before, finish, after } = JSON.parse(printed);
  expect(before).toEqual([]);
  expect(finish).toBe('stop');
  expect(after).toContain('@ai-sdk/anthropic');
  expect(after).not.toContain('@ai-sdk/openai');
  expect(after).not.toContain('@ai-sdk/openai-compatible');
  expect(after).not.toContain('ai');
});

test('nothing is printed during calls, successful or failed', async () => {
  const provider = await startProvider();
  provider.script((request) => {
    switch (request.index % 6) {
      case 0:
        return { text: 'Hi.' };
      case 1:
        return callingTools([{ name: 'weather', input: 'no JSON' }], 'It rains.')(request);
      case 2:
        return { fault: { status: 500 } };
      case 3:
        return { text: 'The sky is blue.', fault: 'malformed' };
      case 4:
        return { text: 'The sky is blue.', fault: 'cut' };
      default:
        return { text: 'Hi.', ignoresStream: true };
    }
  });

  // The SDK warns of a temperature that a model does not support, and of some schemas.
  const { printed } = await run(
    `const tools = [{ name: 'weather', description: 'Tells it.', parameters: { type: 'object' } }];
    const schema = { type: 'object', properties: { a: { type: 'string', minLength: 1 } } };
    const seen = new Set();
    for (const model of ['openai/o3', 'ollama/m', 'anthropic/claude-opus-4-5']) {
      for (let n = 0; n < 6; n += 1) {
        seen.add(await ask(model, n % 2 ? { tools, temperature: 2 } : { schema, temperature: 2 }));
      }
    }
    for (const one of ['stop', 'tool-calls', 'unavailable']) if (!seen.has(one)) throw new Error(one);`,
    { PROVIDER: provider.openaiBaseUrl },
  );

  expect(printed).toBe('');
  expect(provider.requests).toHaveLength(18);
});
