/**
 * Text from a template. The template may come from anyone: it sees its data and nothing else (no
 * files, no environment, no prototypes), and is rendered in a thread that can be stopped.
 */

import { defineSkill } from '../../definition.ts';
import { inThread } from '../_support/in-thread.ts';

interface Input {
  readonly template: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly strict?: boolean;
  readonly escape_html?: boolean;
}

interface Output {
  readonly text: string;
}

const templateLengthMax = 200_000;
const renderMsMax = 3_000;
const outputLengthMax = 500_000;
/** What the template may allocate, in LiquidJS's own rough count of characters and items. */
const memoryUnitsMax = 20_000_000;

export default defineSkill<Input, Output>({
  category: 'text',
  name: 'render-template',
  version: 'v1.0',
  displayName: 'Render template',
  description:
    'Fills a Liquid template ({{ name }}, {% for %}, {% if %}, filters) with data. Templates ' +
    'cannot include files.',
  parameters: {
    type: 'object',
    required: ['template'],
    additionalProperties: false,
    properties: {
      template: {
        type: 'string',
        maxLength: templateLengthMax,
        description: 'Liquid template.',
      },
      data: { type: 'object', default: {}, description: 'Values by name.' },
      strict: {
        type: 'boolean',
        default: false,
        description: 'Whether a name or filter that is not known is an error, not empty text.',
      },
      escape_html: {
        type: 'boolean',
        default: false,
        description: 'Whether values are escaped for HTML; `raw` exempts one.',
      },
    },
  },
  output: {
    type: 'object',
    required: ['text'],
    additionalProperties: false,
    properties: { text: { type: 'string', description: 'The rendered text.' } },
  },
  examples: [
    {
      input: {
        template: 'Dear {{ name }},{% for item in items %}\n- {{ item | upcase }}{% endfor %}',
        data: { name: 'Ada', items: ['engine', 'notes'] },
      },
      output: { text: 'Dear Ada,\n- ENGINE\n- NOTES' },
    },
  ],

  run: (input, ctx) =>
    inThread<Output>({
      module: import.meta.url,
      function: 'render',
      input,
      signal: ctx.signal,
      timeoutMs: renderMsMax,
    }),
});

/** Renders the template. Runs in the thread. */
export async function render(input: Input): Promise<Output> {
  const { Liquid } = await import('liquidjs');
  const strict = input.strict ?? false;
  const liquid = new Liquid({
    // With templates in memory, and none of them, nothing is looked up in the file system.
    templates: {},
    ownPropertyOnly: true,
    strictVariables: strict,
    strictFilters: strict,
    timezoneOffset: 0,
    locale: 'en',
    parseLimit: templateLengthMax,
    renderLimit: renderMsMax,
    memoryLimit: memoryUnitsMax,
    ...(input.escape_html === true ? { outputEscape: 'escape' as const } : {}),
  });
  const text = String(await liquid.parseAndRender(input.template, input.data ?? {}));
  if (text.length > outputLengthMax) {
    throw new Error(`The text is longer than ${outputLengthMax} characters`);
  }
  return { text };
}
