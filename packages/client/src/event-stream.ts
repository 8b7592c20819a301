/** Server-sent events of a stream of bytes, as the platform writes them. */

export interface StreamedEvent {
  /** With which the stream can be resumed (`last-event-id`). */
  readonly id: string;
  readonly event: string;
  /** Parsed JSON. */
  readonly data: unknown;
}

/** Characters of one event; the platform's are far shorter. */
const eventCharsMax = 16 * 1024 * 1024;

/** Yields the events; `onBytes` is called for all that arrives, comments too. */
export async function* readEvents(
  stream: ReadableStream<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<StreamedEvent> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      onBytes();
      text += decoder.decode(read.value, { stream: true });
      const blocks = text.split(/\r?\n\r?\n/);
      text = blocks.pop() ?? '';
      if (text.length > eventCharsMax) throw new TypeError('An event of the stream is too long');
      for (const block of blocks) {
        const event = eventOf(block);
        if (event !== null) yield event;
      }
    }
  } finally {
    // Also where the reader of the events leaves before their end.
    await reader.cancel().catch(() => {});
  }
}

/** Null for a comment. */
function eventOf(block: string): StreamedEvent | null {
  let id = '';
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id') id = value;
    else if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
  }
  return data.length === 0 ? null : { id, event, data: JSON.parse(data.join('\n')) as unknown };
}
