import { expect, test } from 'vitest';
import { sideBySide } from './difference.ts';

const patch = `===================================================================
--- accepted
+++ new
@@ -1,4 +1,4 @@
 title: Echo
-description: Echoes.
+description: Echoes twice.
+And more.
 input: {
@@ -9,2 +10,1 @@
-  "a": 1
 }
\\ No newline at end of file
`;

test('what was removed stands beside what was added, and what was left out is a gap', () => {
  expect(sideBySide(patch)).toEqual([
    { kind: 'same', before: 'title: Echo', after: 'title: Echo' },
    { kind: 'changed', before: 'description: Echoes.', after: 'description: Echoes twice.' },
    { kind: 'changed', before: null, after: 'And more.' },
    { kind: 'same', before: 'input: {', after: 'input: {' },
    { kind: 'gap', before: null, after: null },
    { kind: 'changed', before: '  "a": 1', after: null },
    { kind: 'same', before: '}', after: '}' },
  ]);
});

test('a difference that was shortened says so at its end', () => {
  expect(sideBySide('@@ -1 +1 @@\n-a\n+b\n… (shortened)')).toEqual([
    { kind: 'changed', before: 'a', after: 'b' },
    { kind: 'cut', before: null, after: null },
  ]);
});

test('a text that is no difference has no lines', () => {
  expect(sideBySide('The two differ too much to be compared line by line.')).toEqual([]);
});
