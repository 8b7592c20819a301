import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  bundledManifest,
  bundledPlaces,
  declarationsOf,
  isRead,
  type Locked,
  placesRead,
  readPackages,
} from './bundled.ts';

const locked = {
  'node_modules/a': {
    version: '1.0.0',
    dependencies: { b: '^2.0.0', c: '*' },
    optionalDependencies: { 'for-one-system': '1.0.0' },
  },
  'node_modules/b': { version: '1.5.0' },
  'node_modules/a/node_modules/b': { version: '2.3.4', dependencies: { c: '*' } },
  'node_modules/c': {
    version: '3.0.0',
    peerDependencies: { a: '*', rare: '*' },
    peerDependenciesMeta: { rare: { optional: true } },
  },
  'node_modules/for-one-system': { version: '1.0.0' },
  'node_modules/of-development': { version: '1.0.0' },
};

test('what a package needs is found where Node finds it, in the version of the lock file', () => {
  expect(Object.fromEntries(bundledPlaces(locked, ['a']))).toEqual({
    'node_modules/a': '1.0.0',
    'node_modules/a/node_modules/b': '2.3.4',
    'node_modules/c': '3.0.0',
  });
});

test('a package that is not in the lock file is refused', () => {
  expect(() => bundledPlaces(locked, ['a', 'd'])).toThrow('d, which the platform needs');
});

test('npm does not compare its own Node with what they need, since the platform brings one', () => {
  const manifest = { name: 'a', version: '1.0.0', type: 'module', engines: { node: '>=22' } };
  expect(bundledManifest('node_modules/a', manifest)).toEqual({
    name: 'a',
    version: '1.0.0',
    type: 'module',
  });
});

test('types, sources, maps, tests and documents stay behind', () => {
  const needed = ['index.js', 'map.js', 'data.json', 'lib/test/a.js', 'testing.js', 'LICENSE'];
  const others = ['index.d.ts', 'src/index.mts', 'index.js.map', 'test/a.js', 'docs/a.md'];
  const files = [...needed, ...others];
  expect(files.filter((file) => isRead('node_modules/ajv', file))).toEqual(needed);
});

test('of a package that is read as a text, the text comes along, and nothing that it depends on', () => {
  const files = ['package.json', 'LICENSE', 'dist/liquid.browser.umd.js', 'dist/liquid.node.js'];
  expect(files.filter((file) => isRead('node_modules/liquidjs', file))).toEqual(files.slice(0, 3));
  const manifest = { name: 'liquidjs', dependencies: { commander: '*' } };
  expect(bundledManifest('node_modules/liquidjs', manifest)).toEqual({ name: 'liquidjs' });
  const whole = Object.keys(readPackages).filter((name) => readPackages[name] === null);
  const none = Object.fromEntries(whole.map((name) => [`node_modules/${name}`, { version: '1' }]));
  expect(placesRead(none as Locked)).toHaveLength(Object.keys(readPackages).length);
});

test('the declarations that authors compile against come along, as far as they are reached', () => {
  const root = join(import.meta.dirname, '../..');
  const files = declarationsOf(root, 'node_modules/typebox');
  expect(files).toContain('build/schema/index.d.mts');
  expect(files.filter((file) => !file.endsWith('.d.mts'))).toEqual([]);
  expect(declarationsOf(root, 'node_modules/ajv')).toEqual([]);
});
