/** That a start has the code that V8 compiled before: nothing else shows it but the time. */
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { entryName, freshBundle } from '../../src/apps/start/bundle.ts';
import { CompiledBundle } from '../../src/apps/start/compiled-bundle.ts';

test('the bundle has the code of its program, and V8 takes it', () => {
  const bundle = freshBundle();

  expect(bundle).not.toBeNull();
  expect(new CompiledBundle(dirname(bundle ?? '')).hasCodeFor(entryName)).toBe(true);
});
