/** What a run says: log lines and messages, within their limits. Nothing is said after the end of the run. */
import { cutToUnits } from '../../../kernel/cut-text.ts';
import { logCharsMax, logLinesMax, messageBytesMax, messagesMax } from '../limits.ts';
import { type MessageRole, messageRoles } from '../protocol.ts';
import { redacted, redactedJson } from '../redaction.ts';
import type { Part, Run } from './part.ts';
import { stepOf } from './step-scope.ts';

export function addLog({ run, platform }: Part, message: unknown, fields: unknown): void {
  if (run.isOver || run.logLines > logLinesMax) return;
  run.logLines += 1;
  const isLast = run.logLines > logLinesMax;
  const text = isLast
    ? `more than ${logLinesMax} lines; the rest is left out`
    : cutToUnits(
        redacted(run, typeof message === 'string' ? message : textOf(message)),
        logCharsMax,
      );
  const json = isLast || fields === undefined ? null : fieldsJson(run, fields);
  platform.progress.flush(run);
  platform.outbox.push(JSON.stringify(['log', run.id, platform.clock.now(), text, json]));
}

export function addMessage(part: Part, role: unknown, content: unknown): void {
  const { run, platform } = part;
  if (run.isOver) return;
  if (!messageRoles.includes(role as MessageRole)) {
    throw new TypeError(`the role of a message is one of ${messageRoles.join(', ')}`);
  }
  if (typeof content !== 'string') throw new TypeError('the content of a message is a string');
  const shown = redacted(run, content);
  if (Buffer.byteLength(shown) > messageBytesMax) {
    throw new RangeError(`a message may have ${messageBytesMax / 1024} KiB of content`);
  }
  if (run.messages >= messagesMax) {
    throw new RangeError(`a run may add ${messagesMax} messages`);
  }
  run.messages += 1;
  platform.progress.flush(run);
  platform.outbox.push(JSON.stringify(['message', run.id, role, shown, stepOf(part)]));
}

/** JSON text of the fields of a log line; values that JSON cannot carry become text. */
function fieldsJson(run: Run, fields: unknown): string {
  const above: unknown[] = [];
  try {
    const json = JSON.stringify(fields, function (this: unknown, _key, value: unknown) {
      if (value === undefined || typeof value === 'function' || typeof value === 'symbol') {
        return textOf(value);
      }
      if (typeof value === 'bigint') return `${value}`;
      if (value === null || typeof value !== 'object') return value;
      while (above.length > 0 && above.at(-1) !== this) above.pop();
      if (above.includes(value)) return '[circular]';
      above.push(value);
      return value instanceof Error ? textOf(value) : value;
    });
    const shown = redactedJson(run, json);
    if (shown.length <= logCharsMax && shown.startsWith('{')) return shown;
    return JSON.stringify({ fields: `${cutToUnits(shown, logCharsMax / 4)}` });
  } catch (error) {
    return JSON.stringify({
      fields: `cannot be shown: ${cutToUnits(redacted(run, textOf(error)), 200)}`,
    });
  }
}

function textOf(value: unknown): string {
  try {
    return typeof value === 'function' ? `[function ${value.name}]` : String(value);
  } catch {
    return '[cannot be shown]';
  }
}
