import { expect, test } from 'vitest';
import { bundledManifest, bundledPlaces, isDeclaration, isNeeded } from './bundled.ts';

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
  expect(bundledManifest(manifest)).toEqual({ name: 'a', version: '1.0.0', type: 'module' });
});

test('types, sources, maps, tests and documents stay behind', () => {
  const needed = ['', 'index.js', 'map.js', 'data.json', 'lib/test/a.js', 'testing.js', 'LICENSE'];
  const others = ['index.d.ts', 'src/index.mts', 'index.js.map', 'test', 'test/a.js', 'docs/a.md'];
  expect([...needed, ...others].filter(isNeeded)).toEqual(needed);
});

test('the declarations that authors compile against come along', () => {
  const file = 'build/schema/index.d.mts';
  expect(isDeclaration('node_modules/typebox', file)).toBe(true);
  expect(isDeclaration('node_modules/typebox', 'build/schema/index.mts')).toBe(false);
  expect(isDeclaration('node_modules/pino', file)).toBe(false);
});
