/**
 * Rewrites the event stream of a server before the SDK reads it: lines end with a line feed, and only those that belong
 * to a message are left. Of the others the SDK's parser makes an error each, and where a line ends with a carriage return
 * it looks through all that has arrived again for each line. Promises linear time, and turns for other work between the
 * messages that have arrived together.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { refuseHeavy } from './heavy-messages.ts';

/** Messages that the SDK handles in one turn of the event loop: each takes some ten microseconds. */
const messagesAtOnce = 50;
/** Fields that decide what a message is. Comments and `retry` do not. */
const field = /^(?:data|event|id):/;

/** The response with a plain body, where it is an event stream. */
export function withPlainEvents(response: Response): Response {
  const { body, status, headers } = response;
  const isStream = /^text\/event-stream/i.test(headers.get('content-type') ?? '');
  if (!isStream || body === null) return response;
  return new Response(ReadableStream.from(plainEvents(body)), { status, headers });
}

/** @public For tests. */
export async function* plainEvents(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const lines = createLines();
  /** The fields of the event that has not ended. */
  let fields = '';
  let hasData = false;
  for await (const bytes of body) {
    let messages = 0;
    let kept = '';
    for (const line of lines.push(decoder.decode(bytes, { stream: true }))) {
      if (line !== '') {
        if (!field.test(line)) continue;
        refuseHeavy(line);
        fields += `${line}\n`;
        hasData ||= line.length > 'data: '.length && line.startsWith('data');
        continue;
      }
      if (hasData) {
        kept += `${fields}\n`;
        messages += 1;
      }
      [fields, hasData] = ['', false];
      if (messages < messagesAtOnce) continue;
      yield encoder.encode(kept);
      [kept, messages] = ['', 0];
      await yieldToEventLoop();
    }
    if (kept !== '') yield encoder.encode(kept);
  }
}

/** Splits chunks of text into lines, which end with a line feed, a carriage return or both. */
function createLines() {
  /** The line that has not ended. */
  let open = '';
  let endsWithReturn = false;
  return {
    push(text: string): string[] {
      // The first half of a line end has ended the line already.
      const rest = endsWithReturn && text.startsWith('\n') ? text.slice(1) : text;
      if (text !== '') endsWithReturn = text.endsWith('\r');
      const lines = rest.replaceAll('\r\n', '\n').replaceAll('\r', '\n').split('\n');
      lines[0] = open + (lines[0] ?? '');
      open = lines.pop() ?? '';
      return lines;
    },
  };
}
