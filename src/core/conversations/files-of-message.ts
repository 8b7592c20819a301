/** The files of a message: those that a user names, a model has made or an output names. Pure. */
import { isObject, parsed } from '../../kernel/json.ts';
import { filesNamedIn, filesOfInput } from '../files/references.ts';
import type { MessageRow } from './conversations.store.ts';

/** The ids of the files of a message, each once; urls of a user are among them. */
export function filesOfMessage({
  role,
  content,
  data,
}: Pick<MessageRow, 'role' | 'content' | 'data'>): string[] {
  const value = content.includes('"file') ? parsed(content) : undefined;
  if (role === 'user') return filesOfInput(value, 'task');
  const output = role === 'tool' && isObject(value) ? value['output'] : value;
  return [...new Set([...keptIn(data), ...filesNamedIn(output)])];
}

/** Files as models are sent them, unless guards are still to see the message. */
function keptIn(data: string | null): string[] {
  const message = data === null ? undefined : parsed(data);
  if (!isObject(message) || message['isHeld'] === true) return [];
  const { files } = message;
  return Array.isArray(files) ? files.map(({ id }) => id) : [];
}
