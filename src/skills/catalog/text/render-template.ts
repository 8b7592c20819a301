/**
 * Renders a template. The template is untrusted, so it is rendered in a sandboxed process, where it sees
 * its data and nothing else (no files, no environment, no prototypes).
 */

import { defineSkill } from '../../definition.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import type { RenderingOrder } from '../_support/rendering.ts';
import { objectWith } from '../_support/schemas.ts';

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
const timeoutMs = 3_000;

export default defineSkill<Input, Output>({
  category: 'text',
  name: 'render-template',
  version: 'v1.0',
  displayName: 'Render template',
  description:
    'Fills a Liquid template ({{ name }}, {% for %}, {% if %}, filters) with data. Templates ' +
    'cannot include files.',
  parameters: objectWith(['template'], {
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
  }),
  output: objectWith('all', { text: { type: 'string', description: 'The rendered text.' } }),
  examples: [
    {
      input: {
        template: 'Dear {{ name }},{% for item in items %}\n- {{ item | upcase }}{% endfor %}',
        data: { name: 'Ada', items: ['engine', 'notes'] },
      },
      output: { text: 'Dear Ada,\n- ENGINE\n- NOTES' },
    },
  ],

  async run({ template, data = {}, strict = false, escape_html: escapeHtml = false }, ctx) {
    const order: RenderingOrder = { template, data, strict, escapeHtml };
    const text = await inSandbox<string>({
      module: new URL('../_support/rendering.ts', import.meta.url).href,
      function: 'render',
      input: order,
      signal: ctx.signal,
      timeoutMs,
      reusable: true,
    });
    return { text };
  },
});
