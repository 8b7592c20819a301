import { execSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { WASI } from 'node:wasi';
import { defineSkill } from '../../src/author.ts';

/** Node has it, and the types of the library of JavaScript do not. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: {
    instantiate(program: Buffer, imports: object): Promise<{ instance: object }>;
  };
};

/** A program that ends its process with the exit code 3, past all guards of JavaScript. */
const exiting = Buffer.from(
  [
    '0061736d01000000',
    '01080260017f00600000',
    `02240116${hex('wasi_snapshot_preview1')}09${hex('proc_exit')}0000`,
    '03020101',
    '0503010001',
    `07130206${hex('memory')}020006${hex('_start')}0001`,
    '0a08010600410310000b',
  ].join(''),
  'hex',
);

function hex(text: string): string {
  return Buffer.from(text).toString('hex');
}

function compute(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const never = new Promise(() => {});

/** What a skill does to its executor, by its kind. */
const kinds: Record<string, () => unknown> = {
  'process.exit': () => process.exit(3),
  'exit code of its own': async () => {
    const wasi = new WASI({ version: 'preview1', returnOnExit: false });
    const { instance } = await WebAssembly.instantiate(exiting, {
      wasi_snapshot_preview1: wasi.wasiImport,
    });
    return wasi.start(instance);
  },
  'process.abort': () => process.abort(),
  crash: () => {
    execSync(`kill -s SEGV ${process.pid}`);
    return never;
  },
  'crash later': async () => {
    await pause(50);
    execSync(`kill -s SEGV ${process.pid}`);
    return never;
  },
  'heap full': async () => {
    const kept: unknown[] = [];
    for (;;) {
      for (let i = 0; i < 50_000; i++) kept.push({ i, text: `${i}` });
      await turn();
    }
  },
  'buffers full': async () => {
    const kept: Buffer[] = [];
    for (;;) {
      kept.push(Buffer.alloc(8 * 1_048_576, 1));
      await turn();
    }
  },
  'endless loop': () => compute(Number.POSITIVE_INFINITY),
  'endless loop later': async () => {
    await pause(50);
    compute(Number.POSITIVE_INFINITY);
  },
  'endless loop after its answer': () => {
    setTimeout(compute, 20, Number.POSITIVE_INFINITY);
  },
  'blocked event loop': async () => {
    await pause(50);
    compute(3_500);
    return 'computed';
  },
  'unhandled rejection': () => {
    void Promise.reject(new Error('not handled'));
    return never;
  },
  'no end at its deadline': () => never,
};

export default defineSkill({
  category: 'killers',
  name: 'killer',
  version: 'v1.0',
  displayName: 'Killer',
  description: 'Harms its executor.',
  parameters: { type: 'object', required: ['kind'], properties: { kind: { type: 'string' } } },
  output: {},
  run: async ({ kind }) => (await kinds[kind]?.()) ?? 'done',
});
