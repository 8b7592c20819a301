/**
 * Server-sent events as providers send them: text in, the data of whole events out. Bounded, because
 * an event without an end would be kept for ever.
 */

/** An event longer than this is no event. */
const eventCharactersMax = 8 * 1024 * 1024;

export interface EventDataReader {
  /** The data of the events that end in this text. Throws a RangeError on one that is too long. */
  push(text: string): string[];
  /** The data of an event whose closing blank line never came; null when there is none. */
  rest(): string | null;
}

export function createEventDataReader(): EventDataReader {
  /** The line that has not ended yet. */
  let open = '';
  /** Of the event that has not ended yet. */
  let data: string[] = [];
  let characters = 0;

  function takeLine(line: string): string | null {
    if (line === '') return takeEvent();
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    return null;
  }

  function takeEvent(): string | null {
    const whole = data.join('\n');
    data = [];
    characters = 0;
    // Without data it is no event, only a sign of life.
    return whole.trim() === '' ? null : whole;
  }

  return {
    push(text) {
      const lines = text.split('\n');
      lines[0] = open + (lines[0] ?? '');
      open = lines.pop() ?? '';
      const events: string[] = [];
      for (const line of lines) {
        characters += line.length;
        const event = takeLine(line.endsWith('\r') ? line.slice(0, -1) : line);
        if (event !== null) events.push(event);
      }
      if (characters + open.length > eventCharactersMax) {
        throw new RangeError('an event without an end');
      }
      return events;
    },
    rest() {
      takeLine(open.replace(/\r$/, ''));
      open = '';
      return takeEvent();
    },
  };
}
