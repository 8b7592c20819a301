/**
 * Renders Liquid templates in a sandboxed process. Each template gets its own realm, where it sees its
 * data and nothing else (no files, no environment, no prototypes).
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { browserCode, createRealms } from '../../../../adapters/sandbox/realms.ts';
import { hashingCode } from './hashing.ts';

export interface RenderingOrder {
  readonly template: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly strict: boolean;
  readonly escapeHtml: boolean;
}

export const templateLengthMax = 200_000;
const limits = {
  templateChars: templateLengthMax,
  /** Milliseconds of elapsed time; the process's limit of processor time ends it first. */
  renderMs: 30_000,
  outputChars: 500_000,
  /** What the template may allocate, in LiquidJS's own rough count of characters and items. */
  memoryUnits: 20_000_000,
};

/** The global that LiquidJS's own code defines in the realm. */
declare const liquidjs: typeof import('liquidjs');

const library = createRequire(import.meta.url).resolve('liquidjs/dist/liquid.browser.umd.js');
const inRealm = createRealms({
  source: [
    readFileSync(library, 'utf8'),
    browserCode,
    hashingCode,
    `const limits = ${JSON.stringify(limits)};`,
    String(main),
  ].join(';\n'),
});

/** Renders the template. Throws an Error that says why it cannot be rendered. */
export function render(order: RenderingOrder): string {
  const answer = inRealm(JSON.stringify(order));
  if ('error' in answer) throw new Error(answer.error);
  return answer.value ?? '';
}

/** Runs in the realm, and may use only itself and the library. */
async function main(input: string): Promise<string> {
  const { template, data, strict, escapeHtml }: RenderingOrder = JSON.parse(input);
  const liquid = new liquidjs.Liquid({
    // An empty set of in-memory templates keeps LiquidJS from reading files.
    templates: {},
    ownPropertyOnly: true,
    strictVariables: strict,
    strictFilters: strict,
    timezoneOffset: 0,
    locale: 'en',
    parseLimit: limits.templateChars,
    renderLimit: limits.renderMs,
    memoryLimit: limits.memoryUnits,
    ...(escapeHtml ? { outputEscape: 'escape' as const } : {}),
  });
  try {
    const text = String(await liquid.parseAndRender(template, data));
    if (text.length > limits.outputChars) {
      throw new Error(`The text is longer than ${limits.outputChars} characters`);
    }
    return text;
  } catch (error) {
    return Promise.reject(error instanceof Error ? error.message : String(error));
  }
}
