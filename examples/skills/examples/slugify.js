/**
 * A skill in plain JavaScript, to copy. Put it into the folder that SKILLS_DIR names; in a folder
 * without a package.json of `"type": "module"`, call the file slugify.mjs.
 *
 * @typedef {{ text: string, max_length?: number }} Input
 * @typedef {{ slug: string }} Output
 */

export default {
  category: 'examples',
  name: 'slugify',
  version: 'v1.0',
  displayName: 'Slugify',
  description:
    'Turns a title into a short name for urls and files: "Crème brûlée!" to creme-brulee.',
  parameters: {
    type: 'object',
    required: ['text'],
    additionalProperties: false,
    properties: {
      text: { type: 'string', minLength: 1, maxLength: 1000, description: 'Title to turn.' },
      max_length: {
        type: 'integer',
        minimum: 8,
        maximum: 200,
        default: 60,
        description: 'Characters of the slug at most; it is cut between words.',
      },
    },
  },
  output: {
    type: 'object',
    required: ['slug'],
    additionalProperties: false,
    properties: {
      slug: { type: 'string', description: 'Lower case letters, digits and hyphens.' },
    },
  },
  examples: [
    { input: { text: 'Crème brûlée!' }, output: { slug: 'creme-brulee' } },
    { input: { text: 'One, two & three', max_length: 8 }, output: { slug: 'one-two' } },
  ],

  /**
   * @param {Input} input
   * @returns {Output}
   */
  run({ text, max_length = 60 }) {
    const words = text
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .toLowerCase()
      .match(/[a-z0-9]+/g);
    if (words === null) {
      // `retryable: false` says that another attempt would end the same way.
      const message = 'The text has no Latin letters or digits to make a slug of';
      throw Object.assign(new Error(message), { retryable: false });
    }
    let slug = '';
    for (const word of words) {
      const longer = slug === '' ? word.slice(0, max_length) : `${slug}-${word}`;
      if (longer.length > max_length) break;
      slug = longer;
    }
    return { slug };
  },
};
