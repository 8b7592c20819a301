/** `createHash` of Node, loaded at the first use, because executors without work need no cryptography. */
export const createHash: typeof import('node:crypto').createHash = (algorithm, options) =>
  process.getBuiltinModule('node:crypto').createHash(algorithm, options);
