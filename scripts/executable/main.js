/**
 * What the single executable runs first, in every process: it puts the program that it carries into a folder of the user,
 * once for each version, and loads a module of it. Plain JavaScript with Node's own modules alone, because an executable
 * of Node imports no file; a module that it requires does, and that is `src/load.js` of the program.
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { getAsset, getRawAsset } from 'node:sea';
import { pathToFileURL } from 'node:url';
import { zstdDecompressSync } from 'node:zlib';

/** As src/kernel/node-program.ts names it: before the module that a process of the platform runs. */
const runModule = '--run-module';

const [first, module] = process.argv.slice(2);
if (first === runModule && module !== undefined) {
  process.argv.splice(1, 2);
  await load(module);
} else {
  const args = process.argv.slice(2);
  const isStart = args.length === 0 || (args.length === 1 && args[0] === 'start');
  const entry = join(programFolder(), isStart ? 'src/start.js' : 'src/apps/cli/main.js');
  process.argv.splice(1, 1, entry);
  await load(entry);
}

/** Imports a module of a program, that of another version where one process of that one starts another. */
async function load(file) {
  const source = file.slice(0, file.lastIndexOf(`${sep}src${sep}`) + 5);
  const { load } = createRequire(file)(join(source, 'load.js'));
  await load(pathToFileURL(file).href);
}

/** The folder with the program of this executable. Ends the process with one sentence where there can be none. */
function programFolder() {
  const { digest, files } = JSON.parse(getAsset('program.json', 'utf8'));
  const refused = [];
  for (const folder of candidates()) {
    const program = join(folder, digest.slice(0, 32));
    try {
      makeOwn(folder);
      if (!isWhole(program, files)) unpack(folder, program, digest, files);
      return program;
    } catch (error) {
      refused.push(`${folder}: ${error.message}`);
    }
  }
  console.error(
    `Skillwright has no folder for its program. Set XDG_CACHE_HOME to one of this user.\n${refused.join('\n')}`,
  );
  process.exit(1);
}

/** Never a folder that other users may write to, because what lies there is executed. */
function candidates() {
  const { XDG_CACHE_HOME: cache, DATA_DIR: data } = process.env;
  const home = homeOf();
  return [
    ...(cache ? [join(cache, 'skillwright/program')] : []),
    ...(home ? [join(home, '.cache/skillwright/program')] : []),
    resolve(data || 'data', '.program'),
  ];
}

function homeOf() {
  try {
    return homedir();
  } catch {
    return '';
  }
}

function makeOwn(folder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (typeof process.getuid !== 'function') return;
  const { uid, mode } = statSync(folder);
  if (uid !== process.getuid()) throw new Error('belongs to another user');
  if ((mode & 0o022) !== 0) throw new Error('may be written to by other users');
}

/** Whether each file has its size: a machine may have lost its power while they were written. */
function isWhole(program, files) {
  if (!existsSync(program)) return false;
  return files.every(([file, size]) => {
    return statSync(join(program, file), { throwIfNoEntry: false })?.size === size;
  });
}

/** Beside its place first, so that no other process sees a part of it. */
function unpack(folder, program, digest, files) {
  const packed = Buffer.from(getRawAsset('program'));
  if (createHash('sha256').update(packed).digest('hex') !== digest) {
    throw new Error('this executable is damaged');
  }
  // In one piece, else as long again would be spent on joining pieces of 16 KiB.
  const bytes = zstdDecompressSync(packed, {
    chunkSize: files.reduce((sum, [, size]) => sum + size, 0),
  });
  const fresh = mkdtempSync(join(folder, 'new-'));
  try {
    let offset = 0;
    for (const inside of new Set(files.map(([file]) => dirname(file)))) {
      mkdirSync(join(fresh, inside), { recursive: true });
    }
    for (const [file, size] of files) {
      writeFileSync(join(fresh, file), bytes.subarray(offset, offset + size));
      offset += size;
    }
    // What another process has made meanwhile is as good.
    if (isWhole(program, files)) return;
    if (existsSync(program)) renameSync(program, join(fresh, 'broken'));
    renameSync(fresh, program);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
