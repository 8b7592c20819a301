/** Reads server-sent events. */

export interface StreamedEvent {
  /** With which the stream can be resumed (`last-event-id`); empty where the platform gives none. */
  readonly id: string;
  readonly event: string;
  /** Parsed JSON. */
  readonly data: unknown;
}

/** The events of a stream as they come. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamedEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event !== null) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** An event; null for a comment. */
function parseEvent(block: string): StreamedEvent | null {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ''));
  }
  const data = fields.get('data');
  if (data === undefined) return null;
  return {
    id: fields.get('id') ?? '',
    event: fields.get('event') ?? 'message',
    data: JSON.parse(data) as unknown,
  };
}
