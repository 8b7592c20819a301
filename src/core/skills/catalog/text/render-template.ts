/**
 * Renders a template. The template is untrusted, so it is rendered in a sandboxed process, where it sees
 * its data and nothing else (no files, no environment, no prototypes).
 */

import { extname } from 'node:path';
import { defineSkill } from '../../definition.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import type { RenderingOrder } from '../_support/rendering.ts';
import { anyObject, flag, objectWith } from '../_support/schemas.ts';

const templateLengthMax = 200_000;
const rendering = {
  module: new URL(`../_support/rendering${extname(import.meta.url)}`, import.meta.url).href,
  function: 'render',
  timeoutMs: 3_000,
  reusable: true,
};

const parameters = objectWith(['template'], {
  template: {
    type: 'string',
    maxLength: templateLengthMax,
    description: 'Liquid template.',
  },
  data: anyObject('Values by name.', { default: {} }),
  strict: flag('Whether a name or filter that is not known is an error, not empty text.'),
  escape_html: flag('Whether values are escaped for HTML; `raw` exempts one.'),
});
const output = objectWith('all', { text: { type: 'string', description: 'The rendered text.' } });

export default defineSkill({
  category: 'text',
  name: 'render-template',
  version: 'v1.0',
  displayName: 'Render template',
  description:
    'Fills a Liquid template ({{ name }}, {% for %}, {% if %}, filters) with data. Templates ' +
    'cannot include files.',
  parameters,
  output,
  examples: [
    {
      input: {
        template: 'Dear {{ name }},{% for item in items %}\n- {{ item | upcase }}{% endfor %}',
        data: { name: 'Ada', items: ['engine', 'notes'] },
      },
      output: { text: 'Dear Ada,\n- ENGINE\n- NOTES' },
    },
  ],

  async run({ template, data = {}, strict = false, escape_html: escapeHtml = false }, { signal }) {
    const input: RenderingOrder = { template, data, strict, escapeHtml };
    return { text: await inSandbox<string>({ ...rendering, input, signal }) };
  },
});
