/**
 * Bytes in the blocks that a tool of a server returns are kept as files of the job, which stand in their place: a picture of a
 * megabyte fits into no output, and models, clients and the console know files. Blocks that cannot be kept stay as they are.
 */
import { fileName } from '../../../kernel/file-name.ts';
import { isObject } from '../../../kernel/json.ts';
import { besideField } from '../definitions.ts';
import type { RemoteRun } from '../remote-run.ts';

/** Blocks of one result whose bytes are kept. */
const filesMax = 20;

type Block = Readonly<Record<string, unknown>>;

/** The output with files in place of the bytes of its blocks. */
export async function withKeptFiles(run: RemoteRun, output: unknown): Promise<unknown> {
  if (!isObject(output)) return output;
  const all: Record<string, unknown> = { ...output };
  let left = filesMax;
  for (const field of ['content', 'contents', besideField]) {
    const blocks = output[field];
    if (!Array.isArray(blocks)) continue;
    const kept: unknown[] = [];
    for (const block of blocks) {
      const bytes = left > 0 ? bytesOf(block) : null;
      if (bytes !== null) left -= 1;
      kept.push(bytes === null ? block : await keptBlock(run, block as Block, bytes));
    }
    all[field] = kept;
  }
  return all;
}

interface BlockBytes {
  readonly base64: string;
  readonly name: string;
}

/** The bytes of a block, or of the contents of a resource; null where it has none. */
function bytesOf(block: unknown): BlockBytes | null {
  if (!isObject(block)) return null;
  const { type, data, mimeType, resource, uri, blob } = block;
  if (type === 'resource') return isObject(resource) ? bytesOf({ ...resource, type: null }) : null;
  if ((type === 'image' || type === 'audio') && typeof data === 'string') {
    return { base64: data, name: nameOf(type, mimeType) };
  }
  if (typeof blob !== 'string') return null;
  return { base64: blob, name: fileName(`${uri}`.replace(/[?#].*$/s, '')) };
}

/** A name for bytes without one: what they are said to be, with the ending of their type. */
function nameOf(kind: string, mimeType: unknown): string {
  const [, subtype = ''] = `${mimeType}`.split('/');
  const ending = /^[a-z0-9]{2,5}/i.exec(subtype)?.[0];
  return ending === undefined ? kind : `${kind}.${ending}`;
}

async function keptBlock(run: RemoteRun, block: Block, { base64, name }: BlockBytes) {
  try {
    const piece = { upload: null, name, base64, isLast: true };
    const file = await run.handlers.onAsk('file-put', piece, run.questionSignal, null);
    // A part of a read resource keeps its address.
    return typeof block['uri'] === 'string' ? { uri: block['uri'], ...(file as object) } : file;
  } catch (error) {
    if (run.questionSignal.aborted) throw error;
    run.log(
      `The ${name} that the tool returned is not kept as a file: ${(error as Error).message}`,
    );
    return block;
  }
}
