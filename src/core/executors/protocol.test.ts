import { describe, expect, test } from 'vitest';
import { LineReader, Outbox } from './lines.ts';
import { readChildLine } from './protocol.ts';

describe('a line of a child', () => {
  test.each([
    '[]',
    '[["done",1,{"a":[1]}],["pong",3,0]]',
    '[["fail",1,"output_invalid","no",false,null,60000],["waiting",1]]',
    '[["log",1,0,"text","{}"],["progress",1,0.5,null],["message",1,"tool","text",null]]',
    '[["ask",1,2,"remember",{},null],["ask",1,2,"end-step",{},3],["stray",null,"text"],["dropped",5]]',
  ])('%s is understood', (line) => {
    expect(readChildLine(line)).toEqual(JSON.parse(line));
  });

  test.each([
    '',
    'null',
    '{}',
    '[1]',
    '[[]]',
    '[["nonsense"]]',
    '[["constructor"]]',
    '[["done"]]',
    '[["done",-1,0]]',
    '[["done",1.5,0]]',
    '[["done","1",0]]',
    '[["done",1,0,0]]',
    '[["waiting",null]]',
    '[["fail",1,"worker_lost","no",false,null,null]]',
    '[["fail",1,"output_invalid",5,false,null,null]]',
    '[["fail",1,"output_invalid","no",false,null,-1]]',
    '[["progress",1,2,null]]',
    '[["message",1,"root","text",null]]',
    '[["message",1,"tool","text"]]',
    '[["ask",1,2,"remember",{}]]',
    '[["ask",1,2,"remember",{},-1]]',
    '[["skill",null]]',
    '[["pong",1e999,0]]',
    '[["done",1,0]] trailing',
  ])('%s is not', (line) => {
    expect(readChildLine(line)).toBeUndefined();
  });

  test('nesting that is too deep is refused, also in large lines', () => {
    const nested = (levels: number) => `[["done",1,${'['.repeat(levels)}${']'.repeat(levels)}]]`;
    expect(readChildLine(nested(64))).toBeDefined();
    expect(readChildLine(nested(70))).toBeUndefined();
    expect(readChildLine(nested(4_000_000))).toBeUndefined();
  });

  test('brackets inside strings are no nesting', () => {
    expect(readChildLine(JSON.stringify([['done', 1, `${'['.repeat(100)}"\\`]]))).toBeDefined();
  });
});

describe('a line reader', () => {
  function read(
    maxBytes: number,
    chunks: readonly string[],
  ): { lines: string[]; isTooLong: boolean } {
    const reader = new LineReader(maxBytes);
    const lines = chunks.flatMap((chunk) => [...reader.take(Buffer.from(chunk, 'latin1'))]);
    return { lines, isTooLong: reader.isTooLong };
  }

  test('puts lines together from chunks of any size', () => {
    const text = 'one\ntwo\n\nthree\n';
    for (const size of [1, 2, 3, 5, 100]) {
      const chunks = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
      expect(read(100, chunks).lines).toEqual(['one', 'two', '', 'three']);
    }
  });

  test('keeps characters whole that two chunks split', () => {
    const bytes = Buffer.from('é😀\n').toString('latin1');
    expect(read(100, [...bytes]).lines).toEqual(['é😀']);
  });

  test('copies chunks that the caller reuses', () => {
    const reader = new LineReader(9);
    const chunk = Buffer.from('ab');
    expect([...reader.take(chunk)]).toEqual([]);
    chunk.write('c\n');
    expect([...reader.take(chunk)]).toEqual(['abc']);
  });

  test('reports a line that is too long, whether it has ended or not', () => {
    expect(read(3, ['abc\nabcd\n'])).toEqual({ lines: ['abc'], isTooLong: true });
    expect(read(3, ['ab', 'cd']).isTooLong).toBe(true);
  });
});

describe('an outbox', () => {
  test('writes the messages of one turn as one line', async () => {
    const written: string[] = [];
    const outbox = new Outbox((line) => written.push(line));
    outbox.push('1');
    outbox.push('2');
    expect(written).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    outbox.push('3');
    outbox.flush();
    outbox.flush();
    expect(written).toEqual(['[1,2]\n', '[3]\n']);
  });

  test('starts a new line before one grows too large', () => {
    const written: string[] = [];
    const outbox = new Outbox((line) => written.push(line));
    for (let i = 0; i < 8; i++) outbox.push(`"${'x'.repeat(300_000)}"`);
    expect(written).toHaveLength(2);
  });
});
