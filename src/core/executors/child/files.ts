/**
 * `ctx.files` in the child. Bytes travel in pieces, and each is sent after the answer to the one before it, so that neither
 * process holds more of a file than it has to. A run makes one transfer at a time.
 */
import { cutToUnits } from '../../../kernel/cut-text.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import { stepNameCharsMax } from '../../../kernel/step-bounds.ts';
import type { SkillFile, SkillFiles } from '../../skills/definition.ts';
import { type FilePiece, type ReadFile, transferBytes } from '../file-transfers.ts';
import { askJson } from './asks.ts';
import type { Part } from './part.ts';
import { readText } from './step-arguments.ts';
import { isWithinStep } from './step-scope.ts';
import { takeStep } from './steps.ts';

const nameMax = 200;

export function createFiles(part: Part): SkillFiles {
  return {
    async put(name, data) {
      readText(name, nameMax, 'the name of a file');
      const bytes = readBytes(data);
      const put = () => inTurn(part, () => putFile(part, name, bytes));
      if (isWithinStep()) return put();
      return takeStep(part, cutToUnits(`files.put ${name}`, stepNameCharsMax), put);
    },
    async get(id) {
      readText(id, nameMax, 'the id of a file');
      return inTurn(part, () => getFile(part, id));
    },
  };
}

function readBytes(data: unknown): Uint8Array {
  if (typeof data === 'string') return new TextEncoder().encode(data);
  if (data instanceof Uint8Array) return data;
  throw permanentError('the data of a file must be a text or a Uint8Array');
}

function inTurn<T>({ run }: Part, transfer: () => Promise<T>): Promise<T> {
  const done = (run.transfer ?? Promise.resolve()).then(transfer);
  run.transfer = done.catch(() => {});
  return done;
}

async function putFile(part: Part, name: string, bytes: Uint8Array): Promise<SkillFile> {
  let upload: number | null = null;
  for (let from = 0; ; from += transferBytes) {
    const piece = bytes.subarray(from, from + transferBytes);
    const isLast = from + transferBytes >= bytes.length;
    const request: FilePiece = { upload, name, base64: toBase64(piece), isLast };
    // Bytes are sent as they are: a secret that is replaced within base64 would make them unreadable.
    const answer = await askJson(part, 'file-put', JSON.stringify(request));
    if (isLast) return answer as SkillFile;
    upload = answer as number;
  }
}

async function getFile(part: Part, id: string): Promise<SkillFile & { data: Uint8Array }> {
  const ask = async (request: object) =>
    (await askJson(part, 'file-get', JSON.stringify(request))) as ReadFile;
  let { file, base64, reading } = await ask({ id });
  const pieces = [Buffer.from(base64, 'base64')];
  while (reading !== null) {
    ({ base64, reading } = await ask({ reading }));
    pieces.push(Buffer.from(base64, 'base64'));
  }
  return { ...(file as SkillFile), data: new Uint8Array(Buffer.concat(pieces)) };
}

const toBase64 = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');
