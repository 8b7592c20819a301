import { expect, test } from 'vitest';
import { Output } from './io.ts';
import { printValue } from './print.ts';

const printed = (value: unknown, isTTY: boolean) => {
  const texts: string[] = [];
  const stdout = new Output((text) => texts.push(text), { isTTY, hasColors: false });
  printValue({ stdout }, value);
  return texts.join('');
};

test('a terminal gets no character of an output that it would obey, and other programs get all', () => {
  const output = { text: '\u009b31mred \u202efdp.exe' };
  const onTerminal = printed(output, true);
  expect(onTerminal).toContain('"\\u009b31mred \\u202efdp.exe"');
  expect(JSON.parse(onTerminal)).toEqual(output);
  expect(printed(output, false)).toBe(`${JSON.stringify(output)}\n`);
});
