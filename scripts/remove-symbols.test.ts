import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const isLinuxX64 = process.platform === 'linux' && process.arch === 'x64';
const arm64 = 183;
const x64 = 62;
const exits = { well: [0x31, 0xff], badly: [0xbf, 1, 0, 0, 0] };

/** A program that exits at once, with one mapped section and, after it, a table of symbols. */
function programOf(machine: number, code: readonly number[]): Buffer {
  // mov eax, 60; syscall
  const text = Buffer.from([...code, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]);
  const names = Buffer.from('\0.text\0.symtab\0.shstrtab\0');
  const symbols = Buffer.alloc(4_096, 's');
  const bodies = [
    { name: 1, type: 1, flags: 6, bytes: text },
    { name: 7, type: 2, flags: 0, bytes: symbols },
    { name: 15, type: 3, flags: 0, bytes: names },
  ];
  const head = Buffer.alloc(64 + 56);
  head.write('\x7fELF\x02\x01\x01', 'latin1');
  head.writeUInt16LE(2, 16);
  head.writeUInt16LE(machine, 18);
  head.writeUInt32LE(1, 20);
  head.writeBigUInt64LE(BigInt(0x400000 + head.length), 24);
  head.writeBigUInt64LE(64n, 32);
  [64, 56, 1, 64, bodies.length + 1, bodies.length].forEach((value, at) => {
    head.writeUInt16LE(value, 52 + 2 * at);
  });
  // One mapped segment: the header and the code.
  head.writeUInt32LE(1, 64);
  head.writeUInt32LE(5, 68);
  head.writeBigUInt64LE(0x400000n, 80);
  for (const at of [96, 104]) head.writeBigUInt64LE(BigInt(head.length + text.length), at);
  head.writeBigUInt64LE(0x1000n, 112);
  let end = head.length;
  const table = bodies.map(({ name, type, flags, bytes }) => {
    const section = Buffer.alloc(64);
    section.writeUInt32LE(name, 0);
    section.writeUInt32LE(type, 4);
    section.writeBigUInt64LE(BigInt(flags), 8);
    section.writeBigUInt64LE(BigInt(end), 24);
    section.writeBigUInt64LE(BigInt(bytes.length), 32);
    end += bytes.length;
    return section;
  });
  head.writeBigUInt64LE(BigInt(end), 40);
  return Buffer.concat([head, ...bodies.map(({ bytes }) => bytes), Buffer.alloc(64), ...table]);
}

/** What becomes of a program, and what is reported. */
function removeSymbols(program: Buffer | string) {
  const folder = mkdtempSync(join(tmpdir(), 'skillwright-symbols-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'program');
  writeFileSync(file, program, { mode: 0o755 });
  const script = join(import.meta.dirname, 'remove-symbols.js');
  const { status, stderr } = spawnSync(process.execPath, [script, file], { encoding: 'utf8' });
  expect(status).toBe(0);
  return { file, left: readFileSync(file), stderr };
}

test('a program loses its symbols and keeps what is mapped, also one for another processor', () => {
  const program = programOf(arm64, exits.well);

  const { left, stderr } = removeSymbols(program);

  expect(stderr).toBe('');
  expect(left.length).toBeLessThan(program.length - 4_000);
  const sections = 64 + 56 + 9;
  expect(left.subarray(64, sections)).toEqual(program.subarray(64, sections));
  expect(left.includes('.symtab')).toBe(true);
  expect(left.includes('ssss')).toBe(false);
  expect(removeSymbols(left).left).toEqual(left);
});

test.runIf(isLinuxX64)('a program that would not run stays as it is', () => {
  const good = removeSymbols(programOf(x64, exits.well));
  expect(spawnSync(good.file).status).toBe(0);

  const program = programOf(x64, exits.badly);
  const { left, stderr } = removeSymbols(program);

  expect(left).toEqual(program);
  expect(stderr).toContain('keeps its symbols');
});

test('a file of another kind stays as it is', () => {
  expect(removeSymbols('no program').left.toString()).toBe('no program');
});
